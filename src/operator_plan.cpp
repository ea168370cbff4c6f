#include "operator_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/errors.hpp>

#include "overlap.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {

void check_workspace(std::string_view operator_name, workspace_view workspace, std::size_t needed,
                     device where) {
  if (needed == 0) return;
  if (workspace.data == nullptr || workspace.bytes < needed) {
    throw invalid_argument(fmt::format("{}: workspace has {} bytes; the plan needs {}",
                                       operator_name,
                                       workspace.data == nullptr ? 0 : workspace.bytes, needed));
  }
  if (workspace.where != where) {
    throw invalid_argument(
        fmt::format("{}: workspace is on device {}; expected {}, where the plan "
                    "runs",
                    operator_name, to_string(workspace.where), to_string(where)));
  }
  if (reinterpret_cast<std::uintptr_t>(workspace.data) % workspace_alignment != 0) {
    throw invalid_argument(fmt::format("{}: workspace is not aligned to {} bytes", operator_name,
                                       workspace_alignment));
  }
}

void check_queue(std::string_view operator_name, queue const& on, device where, int plan_threads) {
  if (on.where != where) {
    throw invalid_argument(
        fmt::format("{}: queue is on device {}; expected {}, where the plan "
                    "runs",
                    operator_name, to_string(on.where), to_string(where)));
  }
  if (on.threads < 0 || (plan_threads > 0 && on.threads > plan_threads)) {
    throw invalid_argument(
        fmt::format("{}: queue.threads = {}; expected 0 (all) to {}, the plan's "
                    "threads",
                    operator_name, on.threads, plan_threads));
  }
}

void host_copies::replace(const_tensor_view& view) {
  view.where = {};
  if (view.size() == 0) return;
  auto const span = byte_span_of(view);
  auto& copy = memory_.emplace_back(static_cast<std::size_t>(span.end - span.begin));
  backend_.copy_to_host(copy.data(), static_cast<std::byte const*>(view.data) + span.begin,
                        copy.size(), on_);
  view.data = copy.data() - span.begin;
}

void host_copies::wait() const { backend_.synchronize(on_); }

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
