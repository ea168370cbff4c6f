#include "scan_steps.hpp"

#include <cmath>
#include <cstdint>

#include "convert.hpp"
#include "step_size.hpp"
#include "tuning_scan.hpp"
#include "vector_math.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {

namespace {

// e to this is 0 in f64 too. A step beyond it counts as it, so that the running sum keeps digits
// for the steps behind.
constexpr double forgets_all = -1000.0;

}  // namespace

void compute_deltas(void const* dt, dtype type, std::int64_t stride, std::int64_t count,
                    step_rule const& rule, float* delta) noexcept {
  visit_type(type, [&]<class Element>(Element const*) {
    auto const* raw = static_cast<Element const*>(dt);
    for (std::int64_t i = 0; i < count; ++i) {
      delta[i] = static_cast<float>(raw[i * stride]) + rule.bias;
    }
  });
  // Whole packs; the lanes beyond are scratch.
  for (std::int64_t i = 0; i < count; i += pack_width) {
    store(delta + i, step_size(load(delta + i), rule.softplus, rule.limit));
  }
}

void compute_decays(std::int64_t count, float A, piece_steps& steps) noexcept {
  // In double: a large decay followed by tiny ones must not cost the tiny ones their digits.
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    double const exponent = static_cast<double>(steps.delta[i]) * static_cast<double>(A);
    sum += exponent < forgets_all ? forgets_all : exponent;
    steps.high[i] = static_cast<float>(sum);
    steps.low[i] = static_cast<float>(sum - static_cast<double>(steps.high[i]));
  }
  steps.total = sum;
  steps.factored = std::abs(sum) <= factoring_bound;
  pack const last_high(count == 0 ? 0.0F : steps.high[count - 1]);
  pack const last_low(count == 0 ? 0.0F : steps.low[count - 1]);
  for (std::int64_t i = 0; i < count; i += pack_width) {
    pack const high = load(steps.high + i);
    pack const low = load(steps.low + i);
    // exp(high + low) to first order in low.
    pack const row = exp(high);
    store(steps.row + i, select(row > pack(0.0F), fma(row, low, row), row));
    // The low part is small against 1 only where the sum is small; a difference of large sums takes
    // it into the exponent, where both of its parts are exact or nearly so.
    pack weight;
    if (steps.factored) {
      weight = exp(-high);
      weight = select(weight > pack(0.0F), fma(weight, -low, weight), weight);
    } else {
      weight = exp((last_high - high) + (last_low - low));
    }
    store(steps.weight + i, weight * load(steps.delta + i));
  }
  steps.decay = count == 0 ? 1.0F : steps.row[count - 1];
}

void compute_token_decays(std::int64_t count, float A, piece_steps& steps) noexcept {
  steps.total = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    double const exponent = static_cast<double>(steps.delta[i]) * static_cast<double>(A);
    steps.total += exponent;
    steps.high[i] = static_cast<float>(exponent);
  }
  for (std::int64_t i = 0; i < count; i += pack_width) {
    store(steps.row + i, exp(load(steps.high + i)));
    store(steps.weight + i, load(steps.delta + i));
  }
}

void weigh_products(piece_steps const& steps, std::int64_t count, float const* products,
                    float* target, std::int64_t stride) noexcept {
  for (std::int64_t j = 0; j < count; ++j) {
    pack const high_j(steps.high[j]);
    pack const low_j(steps.low[j]);
    pack const delta_j(steps.delta[j]);
    for (std::int64_t i = j / pack_width * pack_width; i < count; i += pack_width) {
      // Where i < j the exponent is positive and the result may be anything: it is not read.
      pack const difference = (load(steps.high + i) - high_j) + (load(steps.low + i) - low_j);
      store(target + j * stride + i, load(products + j * stride + i) * (exp(difference) * delta_j));
    }
  }
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
