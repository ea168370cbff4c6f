#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "conv1d_call.hpp"
#include "conv1d_rows.hpp"
#include "operator_plan.hpp"
#include "operators.hpp"
#include "runtime.hpp"
#include "shares.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {

conv1d_scratch_shape::conv1d_scratch_shape(conv1d_update_problem const& problem) noexcept
    : channels((problem.channels + pack_width - 1) / pack_width * pack_width),
      history(std::max(problem.state_len, problem.width - 1)),
      tokens(std::max<std::int64_t>(conv1d_tuned.staged_tokens, history)) {}

std::size_t conv1d_scratch_shape::bytes(conv1d_update_problem const& problem) const noexcept {
  auto const floats = (problem.width + 1) * channels + (history + 2 * tokens) * conv1d_tuned.block;
  return detail::round_to_alignment(static_cast<std::size_t>(floats) * sizeof(float) +
                                    static_cast<std::size_t>(history) * sizeof(std::int64_t));
}

conv1d_scratch::conv1d_scratch(conv1d_scratch_shape const& of, conv1d_update_problem const& problem,
                               void* memory) noexcept
    : shape(of),
      weights(static_cast<float*>(memory)),
      bias(weights + problem.width * of.channels),
      line(bias + of.channels),
      results(line + (of.history + of.tokens) * conv1d_tuned.block),
      places(reinterpret_cast<std::int64_t*>(results + of.tokens * conv1d_tuned.block)) {}

namespace {

[[nodiscard]] conv1d_order order_of(conv1d_update_arguments const& arguments) noexcept {
  auto const is_dense = [&](int axis) {
    auto const& x = arguments.x;
    auto const& out = arguments.out;
    return x.extent(axis) <= 1 || (x.stride(axis) == 1 && out.stride(axis) == 1);
  };
  if (arguments.x.extent(2) > 1 && is_dense(2)) return conv1d_order::channels;
  return is_dense(1) ? conv1d_order::tokens : conv1d_order::neither;
}

template <class Problem>
class conv1d_plan_implementation final : public detail::plan_implementation<Problem> {
 public:
  explicit conv1d_plan_implementation(conv1d_update_problem const& problem)
      : problem_(problem), shape_(problem), threads_(plan_threads(problem.threads)) {
    description_ = fmt::format("kokkos {} tile={} threads={}", pack_abi_name,
                               conv1d_tuned.token_tile, threads_);
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return shape_.bytes(problem_) * static_cast<std::size_t>(threads_);
  }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }
  [[nodiscard]] int threads() const noexcept override { return threads_; }

  void execute(typename Problem::arguments_type const& arguments, workspace_view workspace,
               queue const& on) const override {
    conv1d_call call{problem_, {}, conv1d_order::neither};
    if constexpr (std::is_same_v<Problem, conv1d_problem>) {
      call.arguments = detail::as_update(arguments);
    } else {
      call.arguments = arguments;
    }
    call.arguments.x = detail::with_token_axis(call.arguments.x);
    call.arguments.out = detail::with_token_axis(call.arguments.out);
    call.order = order_of(call.arguments);

    auto const rows = detail::rows_of(problem_, call.arguments);
    if (rows == 0 || problem_.channels == 0) return;
    auto const scratch_of = [&](int share) {
      return conv1d_scratch(shape_, problem_,
                            static_cast<char*>(workspace.data) +
                                static_cast<std::size_t>(share) * shape_.bytes(problem_));
    };
    std::int64_t tokens = 0;
    for (std::int64_t row = 0; row < rows; ++row) tokens += length_of(call, row);
    int const shares =
        useful_shares(tokens * problem_.channels, on.threads == 0 ? threads_ : on.threads,
                      conv1d_tuned.share_outputs);

    // Short work is split by channels, which also keeps a row's state with its tokens; so is work
    // whose channels are long runs of tokens.
    auto const unit = call.order == conv1d_order::tokens ? 1 : std::int64_t{pack_width};
    auto const units = (problem_.channels + unit - 1) / unit;
    bool const by_tokens = shares > 1 && tokens >= shares * conv1d_tuned.share_tokens &&
                           (call.order != conv1d_order::tokens || units < shares);
    auto const channels_of = [&](int share) {
      auto const range = range_of_share(units, shares, share);
      return channel_range{range.begin * unit, std::min(range.end * unit, problem_.channels)};
    };
    if (!by_tokens) {
      for_each_share(shares, [&](int share) noexcept {
        auto const channels = channels_of(share);
        if (channels.begin >= channels.end) return;
        auto const scratch = scratch_of(share);
        load_weights(call, channels, scratch);
        for (std::int64_t row = 0; row < rows; ++row) run_row(call, row, channels, scratch);
      });
      return;
    }
    for_each_share(shares, [&](int share) noexcept {
      auto const scratch = scratch_of(share);
      channel_range const all{0, problem_.channels};
      load_weights(call, all, scratch);
      write_outputs_between(call, range_of_share(tokens, shares, share), all, scratch);
    });
    // Only now nobody reads initial states any more.
    if (!problem_.has_final_states) return;
    for_each_share(shares, [&](int share) noexcept {
      auto const channels = channels_of(share);
      if (channels.begin >= channels.end) return;
      auto const scratch = scratch_of(share);
      for (std::int64_t row = 0; row < rows; ++row) write_states(call, row, channels, scratch);
    });
  }

 private:
  [[nodiscard]] static std::int64_t length_of(conv1d_call const& call, std::int64_t row) noexcept {
    auto const tokens = detail::row_of(call.problem, call.arguments, row);
    return tokens.end - tokens.begin;
  }

  // The outputs of a range of all rows' tokens, counted through.
  static void write_outputs_between(conv1d_call const& call, work_range const& range,
                                    channel_range const& channels,
                                    conv1d_scratch const& scratch) noexcept {
    auto const rows = detail::rows_of(call.problem, call.arguments);
    std::int64_t before = 0;
    for (std::int64_t row = 0; row < rows && before < range.end; ++row) {
      auto const tokens = detail::row_of(call.problem, call.arguments, row);
      auto const length = tokens.end - tokens.begin;
      auto const first = std::max<std::int64_t>(range.begin - before, 0);
      auto const last = std::min(range.end - before, length);
      if (first < last) {
        write_outputs(call, row, tokens.begin + first, tokens.begin + last, channels, scratch);
      }
      before += length;
    }
  }

  conv1d_update_problem problem_;
  conv1d_scratch_shape shape_;
  int threads_;
  std::string description_;
};

}  // namespace

std::shared_ptr<detail::plan_implementation<conv1d_problem> const> make_conv1d_plan(
    conv1d_problem const& problem) {
  return std::make_shared<conv1d_plan_implementation<conv1d_problem> const>(
      detail::as_update(problem));
}

std::shared_ptr<detail::plan_implementation<conv1d_update_problem> const> make_conv1d_update_plan(
    conv1d_update_problem const& problem) {
  return std::make_shared<conv1d_plan_implementation<conv1d_update_problem> const>(problem);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
