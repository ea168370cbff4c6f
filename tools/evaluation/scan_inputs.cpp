#include "evaluation/scan_inputs.hpp"

#include <cmath>
#include <numbers>

namespace mambatile::evaluation {
namespace {

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(seed) {}

  // In (0, 1]. splitmix64 (Steele, Lea, Flood 2014).
  float uniform() noexcept {
    std::uint64_t word = state_ += 0x9e3779b97f4a7c15U;
    word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9U;
    word = (word ^ (word >> 27U)) * 0x94d049bb133111ebU;
    word ^= word >> 31U;
    return (static_cast<float>(word >> 40U) + 1.0F) * 0x1p-24F;
  }
  float uniform(float low, float high) noexcept { return low + (high - low) * uniform(); }

  // Box and Muller's two at a time.
  float normal() noexcept {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    float const radius = std::sqrt(-2.0F * std::log(uniform()));
    float const angle = 2.0F * std::numbers::pi_v<float> * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::uint64_t state_;
  float spare_ = 0;
  bool has_spare_ = false;
};

template <class Next>
void fill(host_tensor& tensor, Next const& next) {
  switch (tensor.view().type) {
    case dtype::bf16:
      for (auto& value : tensor.elements<bfloat16>()) value = bfloat16(next());
      return;
    case dtype::f16:
      for (auto& value : tensor.elements<float16>()) value = float16(next());
      return;
    default:
      for (auto& value : tensor.elements<float>()) value = next();
  }
}

float inverse_softplus(float value) noexcept { return value + std::log(-std::expm1(-value)); }

}  // namespace

scan_inputs::scan_inputs(scan_inputs_request const& request) {
  auto const& [name, h, p, g, n, default_batch] = request.shape;
  auto const b = request.batch;
  auto const l = request.seqlen;
  x = host_tensor(request.io, {b, l, h, p});
  B = host_tensor(request.io, {b, l, g, n});
  C = host_tensor(request.io, {b, l, g, n});
  dt = host_tensor(dtype::f32, {b, l, h});
  A = host_tensor(dtype::f32, {h});
  D = host_tensor(dtype::f32, {h});
  dt_bias = host_tensor(dtype::f32, {h});
  if (request.with_z) z = host_tensor(request.io, {b, l, h, p});
  if (request.with_initial_states) initial_states = host_tensor(request.state, {b, h, p, n});

  random_numbers random(request.seed);
  auto const normal = [&] { return random.normal(); };
  auto const half_normal = [&] { return 0.5F * random.normal(); };
  auto const step = [&] { return std::exp(random.uniform(std::log(1e-3F), std::log(1e-1F))); };
  for (auto* tensor : {&x, &B, &C}) fill(*tensor, half_normal);
  fill(A, [&] { return -random.uniform(1.0F, 16.0F); });
  fill(D, normal);
  fill(dt_bias, [&] { return inverse_softplus(step()); });
  auto const biases = dt_bias.elements<float>();
  std::size_t head = 0;
  fill(dt, [&] {
    float const raw = inverse_softplus(step()) - biases[head];
    head = (head + 1) % biases.size();
    return raw;
  });
  if (request.with_z) fill(z, normal);
  if (request.with_initial_states) fill(initial_states, normal);

  arguments.x = x.view();
  arguments.dt = dt.view();
  arguments.A = A.view();
  arguments.B = B.view();
  arguments.C = C.view();
  arguments.D = D.view();
  arguments.dt_bias = dt_bias.view();
  if (request.with_z) arguments.z = z.view();
  if (request.with_initial_states) {
    arguments.initial_states = initial_states.view();
    if (request.layout == state_layout::headdim_innermost) {
      // The same memory, read as (b, h, n, p): the values are random either way.
      arguments.initial_states.strides = {h * p * n, p * n, 1, p};
    }
  }
  options.dt_softplus = true;
}

}  // namespace mambatile::evaluation
