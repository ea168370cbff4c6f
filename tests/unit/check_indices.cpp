#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/mambatile.hpp>

#include "backend_implementation.hpp"
#include "operator_plan.hpp"

// check_indices where index arrays lie on a device. The device here is a range of addresses that
// faults when the host touches it; what it holds is kept aside.

namespace mambatile::testing {
namespace {

template <class Problem>
class idle_plan final : public detail::plan_implementation<Problem> {
 public:
  void execute(typename Problem::arguments_type const& /*arguments*/, workspace_view /*workspace*/,
               queue const& /*on*/) const override {}
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::string_view description() const noexcept override { return "idle"; }
};

template <class Problem>
std::shared_ptr<detail::plan_implementation<Problem> const> make_idle_plan() {
  return std::make_shared<idle_plan<Problem> const>();
}

class far_backend final : public detail::backend_implementation {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 20U;

  far_backend()
      : base_(static_cast<std::byte*>(
            ::mmap(nullptr, capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        contents_(capacity) {}
  ~far_backend() override { ::munmap(base_, capacity); }

  [[nodiscard]] std::string_view name() const noexcept override { return "far"; }
  [[nodiscard]] device_kind kind() const noexcept override { return device_kind::cuda; }
  [[nodiscard]] support is_available() const override { return {true, {}}; }
  [[nodiscard]] int device_count() const override { return 1; }
  [[nodiscard]] state_layout preferred_state_layout() const noexcept override {
    return state_layout::dstate_innermost;
  }
  [[nodiscard]] std::string capabilities() const override { return {}; }

  [[nodiscard]] void* allocate(device /*where*/, std::size_t bytes,
                               std::size_t alignment) const override {
    used_ = (used_ + alignment - 1) / alignment * alignment;
    auto* const result = base_ + used_;
    used_ += bytes;
    return used_ <= capacity ? result : nullptr;
  }
  void deallocate(device /*where*/, void* /*data*/,
                  std::size_t /*alignment*/) const noexcept override {}
  void copy_to_device(void* target, void const* source, std::size_t bytes,
                      queue const& /*on*/) const override {
    std::memcpy(contents_.data() + (static_cast<std::byte*>(target) - base_), source, bytes);
  }
  // As a copy on a stream: there only after synchronize.
  void copy_to_host(void* target, void const* source, std::size_t bytes,
                    queue const& /*on*/) const override {
    pending_.push_back({target, static_cast<std::byte const*>(source) - base_, bytes});
  }
  void synchronize(queue const& /*on*/) const override {
    for (auto const& copy : pending_) {
      std::memcpy(copy.target, contents_.data() + copy.from, copy.bytes);
    }
    pending_.clear();
  }

  using detail::all_operators::plan;
  using detail::all_operators::supports;
  support supports(scan_problem const&, device) const override { return {true, {}}; }
  support supports(state_update_problem const&, device) const override { return {true, {}}; }
  support supports(conv1d_problem const&, device) const override { return {true, {}}; }
  support supports(conv1d_update_problem const&, device) const override { return {true, {}}; }
  support supports(take_rows_problem const&, device) const override { return {true, {}}; }
  std::shared_ptr<detail::plan_implementation<scan_problem> const> plan(scan_problem const&,
                                                                        device) const override {
    return make_idle_plan<scan_problem>();
  }
  std::shared_ptr<detail::plan_implementation<state_update_problem> const> plan(
      state_update_problem const&, device) const override {
    return make_idle_plan<state_update_problem>();
  }
  std::shared_ptr<detail::plan_implementation<conv1d_problem> const> plan(conv1d_problem const&,
                                                                          device) const override {
    return make_idle_plan<conv1d_problem>();
  }
  std::shared_ptr<detail::plan_implementation<conv1d_update_problem> const> plan(
      conv1d_update_problem const&, device) const override {
    return make_idle_plan<conv1d_update_problem>();
  }
  std::shared_ptr<detail::plan_implementation<take_rows_problem> const> plan(
      take_rows_problem const&, device) const override {
    return make_idle_plan<take_rows_problem>();
  }

 private:
  struct pending {
    void* target;
    std::ptrdiff_t from;
    std::size_t bytes;
  };
  std::byte* base_;
  mutable std::vector<std::byte> contents_;
  mutable std::size_t used_ = 0;
  mutable std::vector<pending> pending_;
};

// Tensors on the far device.
class far_tensors {
 public:
  far_tensors() : on_(implementation_) {}

  [[nodiscard]] backend const& on() const { return on_; }

  /// Uninitialised.
  template <class Element>
  [[nodiscard]] tensor_view make(std::initializer_list<std::int64_t> extents) {
    auto view = make_view(static_cast<Element*>(nullptr), extents, there);
    view.data = take(static_cast<std::size_t>(view.size()) * sizeof(Element));
    return view;
  }
  /// Backwards in memory, with a gap after each entry.
  [[nodiscard]] const_tensor_view indices(std::vector<std::int32_t> const& values) {
    auto const count = static_cast<std::int64_t>(values.size());
    std::vector<std::int32_t> stored(2 * values.size(), 12345);
    for (std::size_t i = 0; i < values.size(); ++i) stored[2 * (values.size() - 1 - i)] = values[i];
    auto const bytes = stored.size() * sizeof(std::int32_t);
    auto* const data = static_cast<std::int32_t*>(take(bytes));
    implementation_.copy_to_device(data, stored.data(), bytes, {.where = there});
    return make_view(static_cast<std::int32_t const*>(data + 2 * (count - 1)), {count}, {-2},
                     there);
  }

 private:
  static constexpr device there{device_kind::cuda, 0};
  [[nodiscard]] void* take(std::size_t bytes) { return implementation_.allocate(there, bytes, 64); }

  far_backend implementation_;
  backend on_;
};

template <class Arguments, class Options>
std::string complaint(far_tensors const& tensors, Arguments const& arguments,
                      Options const& options) {
  auto const problem = make_problem(arguments, options);
  auto const plan = tensors.on().plan(problem, device{device_kind::cuda, 0});
  try {
    plan.check_indices(arguments);
    return {};
  } catch (invalid_argument const& refusal) {
    return refusal.what();
  }
}

bool says(std::string const& message, std::string_view part) {
  INFO("message: " << message);
  return message.find(part) != std::string::npos;
}

TEST_CASE("check_indices: chunk_scan on a device", "[unit]") {
  far_tensors tensors;
  scan_arguments arguments;
  arguments.x = tensors.make<float>({1, 9, 2, 3});
  arguments.out = tensors.make<float>({1, 9, 2, 3});
  arguments.dt = tensors.make<float>({1, 9, 2});
  arguments.A = tensors.make<float>({2});
  arguments.B = tensors.make<float>({1, 9, 1, 4});
  arguments.C = tensors.make<float>({1, 9, 1, 4});
  auto const pool = tensors.make<float>({5, 2, 3, 4});
  arguments.initial_states = pool;
  arguments.final_states = pool;
  arguments.cu_seqlens = tensors.indices({0, 4, 4, 9});
  arguments.state_source = tensors.indices({-1, 2, 0});
  arguments.state_target = tensors.indices({4, 2, -1});
  CHECK(complaint(tensors, arguments, scan_options{}).empty());

  auto wrong = arguments;
  wrong.cu_seqlens = tensors.indices({0, 5, 4, 9});
  CHECK(says(complaint(tensors, wrong, scan_options{}), "cu_seqlens[2] = 4 is less than"));
  wrong = arguments;
  wrong.state_source = tensors.indices({-1, 5, 0});
  CHECK(says(complaint(tensors, wrong, scan_options{}), "state_source[1] = 5 is out of range"));
  wrong = arguments;
  wrong.state_target = tensors.indices({4, 4, -1});
  CHECK(says(complaint(tensors, wrong, scan_options{}), "are both slot 4"));
  wrong = arguments;
  wrong.state_target = tensors.indices({2, 3, -1});
  CHECK(says(complaint(tensors, wrong, scan_options{}), "reads slot 2"));
  wrong = arguments;
  wrong.out.extents[1] = 8;
  CHECK(says(complaint(tensors, wrong, scan_options{}), "out has shape"));
}

TEST_CASE("check_indices: seq_idx on a device", "[unit]") {
  far_tensors tensors;
  scan_arguments arguments;
  arguments.x = tensors.make<float>({2, 3, 1, 2});
  arguments.out = tensors.make<float>({2, 3, 1, 2});
  arguments.dt = tensors.make<float>({2, 3, 1});
  arguments.A = tensors.make<float>({1});
  arguments.B = tensors.make<float>({2, 3, 1, 4});
  arguments.C = tensors.make<float>({2, 3, 1, 4});
  auto const rows = [&](std::vector<std::int32_t> const& values) {
    auto view = tensors.indices(values);
    view.rank = 2;
    view.extents = {2, 3};
    view.strides = {-6, -2};
    return view;
  };
  arguments.seq_idx = rows({0, 1, 1, -1, 3, 7});
  CHECK(complaint(tensors, arguments, scan_options{}).empty());
  arguments.seq_idx = rows({0, 1, 1, 8, -1, 7});
  CHECK(says(complaint(tensors, arguments, scan_options{}), "seq_idx[1, 2] = 7 is less than 8"));
}

TEST_CASE("check_indices: state_update on a device", "[unit]") {
  far_tensors tensors;
  state_update_arguments arguments;
  arguments.x = tensors.make<float>({2, 1, 3});
  arguments.out = tensors.make<float>({2, 1, 3});
  arguments.dt = tensors.make<float>({2, 1});
  arguments.A = tensors.make<float>({1});
  arguments.B = tensors.make<float>({2, 1, 4});
  arguments.C = tensors.make<float>({2, 1, 4});
  arguments.initial_states = tensors.make<float>({2, 3, 1, 3, 4});
  arguments.num_accepted = tensors.indices({1, 3});
  state_update_options const options{};
  CHECK(complaint(tensors, arguments, options).empty());
  arguments.num_accepted = tensors.indices({1, 4});
  CHECK(says(complaint(tensors, arguments, options), "num_accepted[1] = 4, but it must be 1 to 3"));
}

TEST_CASE("check_indices: convolutions on a device", "[unit]") {
  far_tensors tensors;
  conv1d_update_arguments update;
  update.x = tensors.make<float>({2, 3, 5});
  update.out = tensors.make<float>({2, 3, 5});
  update.weight = tensors.make<float>({5, 4});
  update.initial_states = tensors.make<float>({2, 5, 6});
  update.final_states = tensors.make<float>({2, 5, 6});
  update.cache_seqlens = tensors.indices({4, 2});
  update.num_accepted = tensors.indices({1, 2});
  update.num_previous = tensors.indices({2, 2});
  CHECK(complaint(tensors, update, conv1d_update_options{}).empty());
  update.num_previous = tensors.indices({2, 1});
  CHECK(says(complaint(tensors, update, conv1d_update_options{}), "num_accepted[1] = 2"));

  conv1d_arguments whole;
  whole.x = tensors.make<float>({2, 3, 5});
  whole.out = tensors.make<float>({2, 3, 5});
  whole.weight = tensors.make<float>({5, 4});
  whole.final_states = tensors.make<float>({7, 5, 3});
  whole.state_target = tensors.indices({6, 0});
  CHECK(complaint(tensors, whole, conv1d_options{}).empty());
  whole.state_target = tensors.indices({7, 0});
  CHECK(says(complaint(tensors, whole, conv1d_options{}), "state_target[0] = 7 is out of range"));
}

TEST_CASE("check_indices: take_rows on a device, and empty index arrays", "[unit]") {
  far_tensors tensors;
  take_rows_arguments arguments{tensors.make<float>({4, 6}), tensors.indices({3, 0, 1}),
                                tensors.make<float>({3, 6})};
  CHECK(complaint(tensors, arguments, 0).empty());
  arguments.index = tensors.indices({3, 4, 1});
  CHECK(says(complaint(tensors, arguments, 0), "index[1] = 4 is out of range"));
  arguments.index.extents[0] = arguments.out.extents[0] = 0;
  arguments.index.data = nullptr;
  CHECK(complaint(tensors, arguments, 0).empty());
}

}  // namespace
}  // namespace mambatile::testing
