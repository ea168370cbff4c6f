#include "evaluation/scan_inputs.hpp"

#include <cmath>

#include "evaluation/random_numbers.hpp"

namespace mambatile::evaluation {
namespace {

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
  auto const normal = [&] { return static_cast<float>(random.normal()); };
  auto const half_normal = [&] { return static_cast<float>(0.5 * random.normal()); };
  auto const step = [&] { return static_cast<float>(random.log_uniform(1e-3, 1e-1)); };
  for (auto* tensor : {&x, &B, &C}) fill(*tensor, half_normal);
  fill(A, [&] { return static_cast<float>(-random.uniform(1.0, 16.0)); });
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
