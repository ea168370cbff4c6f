#include "state_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "convert.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// Calls line(from, to, from_step, to_step, count, channel, element) for the lines of two states,
// along the axis that is innermost in the target. The last two name the line's first element.
template <class Source, class Target, class Line>
void for_each_line(state_ref const& from, state_ref const& to, state_extent const& extent,
                   Line const& line) noexcept {
  auto const* const source = static_cast<Source const*>(from.data);
  auto* const target = static_cast<Target*>(to.data);
  if (to.is_by_channel()) {
    for (std::int64_t n = 0; n < extent.dstate; ++n) {
      line(source + n * from.dstate_stride, target + n * to.dstate_stride, from.headdim_stride,
           to.headdim_stride, extent.channels, std::int64_t{0}, n);
    }
  } else {
    for (std::int64_t p = 0; p < extent.channels; ++p) {
      line(source + p * from.headdim_stride, target + p * to.headdim_stride, from.dstate_stride,
           to.dstate_stride, extent.dstate, p, std::int64_t{0});
    }
  }
}

}  // namespace

void copy_state(state_ref const& from, state_ref const& to, state_extent const& extent) noexcept {
  visit_type(from.type, [&]<class Source>(Source const*) {
    visit_type(to.type, [&]<class Target>(Target const*) {
      for_each_line<Source, Target>(
          from, to, extent,
          [](Source const* source, Target* target, std::int64_t source_step,
             std::int64_t target_step, std::int64_t count, std::int64_t, std::int64_t) {
            std::int64_t i = 0;
            if (source_step == 1 && target_step == 1) {
              for (; i + pack_width <= count; i += pack_width) store(target + i, load(source + i));
            }
            for (; i < count; ++i) {
              target[i * target_step] = Target(static_cast<float>(source[i * source_step]));
            }
          });
    });
  });
}

void copy_state_stochastically(state_ref const& from, state_ref const& to,
                               state_extent const& extent, detail::rounding_key key,
                               std::int64_t first) noexcept {
  visit_type(to.type, [&]<class Target>(Target const*) {
    if constexpr (sizeof(Target) == 2) {
      bool const by_channel = to.is_by_channel();
      for_each_line<float, Target>(
          from, to, extent,
          [&](float const* source, Target* target, std::int64_t source_step,
              std::int64_t target_step, std::int64_t count, std::int64_t p, std::int64_t n) {
            auto element = static_cast<std::uint32_t>((first + p) * extent.dstate + n);
            auto const next = static_cast<std::uint32_t>(by_channel ? extent.dstate : 1);
            for (std::int64_t i = 0; i < count; ++i) {
              target[i * target_step] = detail::round_stochastically<Target>(
                  source[i * source_step], detail::rounding_word(key, element));
              element += next;
            }
          });
    }
  });
}

void clear_state(state_ref const& to, state_extent const& extent) noexcept {
  visit_type(to.type, [&]<class Target>(Target const*) {
    for_each_line<Target, Target>(to, to, extent,
                                  [](Target const*, Target* target, std::int64_t, std::int64_t step,
                                     std::int64_t count, std::int64_t, std::int64_t) {
                                    for (std::int64_t i = 0; i < count; ++i)
                                      target[i * step] = Target(0.0F);
                                  });
  });
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
