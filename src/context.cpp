#include <mambatile/context.hpp>

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <tuple>
#include <utility>

#include <mambatile/backend.hpp>
#include <mambatile/conv1d.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>

namespace mambatile {
inline namespace v0 {
namespace {

// Plans kept per operator. Serving loops see a few shapes; more than this is a stream of new ones.
constexpr std::size_t plans_kept = 32;

template <class Problem>
using plan_list = std::list<operator_plan<Problem>>;

}  // namespace

struct context::storage {
  backend const* served_by;
  device where;
  std::tuple<plan_list<scan_problem>, plan_list<state_update_problem>, plan_list<conv1d_problem>,
             plan_list<conv1d_update_problem>, plan_list<gated_rms_norm_problem>>
      plans;  // most recently used first
  buffer memory;
};

context::context() : context(default_backend()) {}

context::context(backend const& served_by) : context(served_by, device{served_by.kind(), 0}) {}

context::context(backend const& served_by, device where) : storage_(std::make_unique<storage>()) {
  storage_->served_by = &served_by;
  storage_->where = where;
}

context::context(context&&) noexcept = default;
context& context::operator=(context&&) noexcept = default;
context::~context() = default;

backend const& context::served_by() const noexcept { return *storage_->served_by; }
device context::where() const noexcept { return storage_->where; }

template <class Problem>
operator_plan<Problem> const& context::plan(Problem const& problem) {
  auto& kept = std::get<plan_list<Problem>>(storage_->plans);
  auto const found = std::find_if(kept.begin(), kept.end(), [&](auto const& candidate) {
    return candidate.problem() == problem;
  });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
  } else {
    kept.push_front(served_by().plan(problem, where()));
    if (kept.size() > plans_kept) kept.pop_back();
  }
  return kept.front();
}

template MAMBATILE_EXPORT operator_plan<scan_problem> const& context::plan(scan_problem const&);
template MAMBATILE_EXPORT operator_plan<state_update_problem> const& context::plan(
    state_update_problem const&);
template MAMBATILE_EXPORT operator_plan<conv1d_problem> const& context::plan(conv1d_problem const&);
template MAMBATILE_EXPORT operator_plan<conv1d_update_problem> const& context::plan(
    conv1d_update_problem const&);
template MAMBATILE_EXPORT operator_plan<gated_rms_norm_problem> const& context::plan(
    gated_rms_norm_problem const&);

workspace_view context::workspace(std::size_t bytes, queue on) {
  auto& memory = storage_->memory;
  if (memory.bytes() < bytes) {
    // The old memory may still be in use by what is queued.
    if (memory.bytes() != 0) served_by().synchronize(on);
    memory = buffer();
    memory = served_by().allocate(where(), bytes);
  }
  return memory.workspace();
}

void context::clear() noexcept {
  std::apply([](auto&... kept) { (kept.clear(), ...); }, storage_->plans);
  storage_->memory = buffer();
}

namespace {

template <class Arguments, class Options>
void run(context& with, Arguments const& arguments, Options const& options, queue on) {
  auto const& plan = with.plan(make_problem(arguments, options));
  plan.execute(arguments, with.workspace(plan.workspace_bytes(), on), on);
}

}  // namespace

void chunk_scan(context& with, scan_arguments const& arguments, scan_options const& options,
                queue on) {
  run(with, arguments, options, on);
}

void chunk_scan(context& with, scan_arguments const& arguments, scan_options const& options) {
  run(with, arguments, options, queue{.where = with.where()});
}

void state_update(context& with, state_update_arguments const& arguments,
                  state_update_options const& options, queue on) {
  run(with, arguments, options, on);
}

void state_update(context& with, state_update_arguments const& arguments,
                  state_update_options const& options) {
  run(with, arguments, options, queue{.where = with.where()});
}

void causal_conv1d(context& with, conv1d_arguments const& arguments, conv1d_options const& options,
                   queue on) {
  run(with, arguments, options, on);
}

void causal_conv1d(context& with, conv1d_arguments const& arguments,
                   conv1d_options const& options) {
  run(with, arguments, options, queue{.where = with.where()});
}

void causal_conv1d_update(context& with, conv1d_update_arguments const& arguments,
                          conv1d_update_options const& options, queue on) {
  run(with, arguments, options, on);
}

void causal_conv1d_update(context& with, conv1d_update_arguments const& arguments,
                          conv1d_update_options const& options) {
  run(with, arguments, options, queue{.where = with.where()});
}

void gated_rms_norm(context& with, gated_rms_norm_arguments const& arguments,
                    gated_rms_norm_options const& options, queue on) {
  run(with, arguments, options, on);
}

void gated_rms_norm(context& with, gated_rms_norm_arguments const& arguments,
                    gated_rms_norm_options const& options) {
  run(with, arguments, options, queue{.where = with.where()});
}

}  // namespace v0
}  // namespace mambatile
