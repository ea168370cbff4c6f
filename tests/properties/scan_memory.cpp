#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/scan_shapes.hpp"
#include "support/allocation_count.hpp"
#include "support/execute.hpp"
#include "support/random_numbers.hpp"
#include "support/scan_check.hpp"
#include "support/tested_backend.hpp"

// What a scan needs of memory, and how far apart its elements may be.

namespace mambatile::testing {
namespace {

scan_problem model_problem(std::int64_t seqlen,
                           evaluation::scan_shape const& shape = {"", 8, 64, 1, 128}) {
  return {.max_batch = 2,
          .max_seqlen = seqlen,
          .nheads = shape.nheads,
          .headdim = shape.headdim,
          .ngroups = shape.ngroups,
          .dstate = shape.dstate,
          .has_initial_states = true,
          .has_final_states = true};
}

// The number behind `key` in a plan's description; 0 where it has none.
std::int64_t described(std::string_view description, std::string_view key) {
  auto const place = description.find(key);
  if (place == std::string_view::npos) return 0;
  auto const digits = description.substr(place + key.size());
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// What a plan may need: for each thread a state and a chunk's tiles, and the states of a call, all
// in 8 bytes; and a little for index arrays and alignment.
std::int64_t workspace_bound(scan_plan const& plan) {
  auto const& problem = plan.problem();
  auto const threads = std::max<std::int64_t>(plan.threads(), 1);
  auto const chunk = std::max<std::int64_t>(described(plan.description(), "chunk="), 1);
  auto const state = problem.headdim * problem.dstate;
  auto const rows = std::max(problem.max_batch, problem.max_sequences);
  return 8 * (threads * (state + chunk * (problem.headdim + 3 * problem.dstate + chunk)) +
              rows * problem.nheads * state) +
         4096 * threads;
}

void check_workspace_of(scan_problem problem, packing pack) {
  problem.pack = pack;
  if (pack == packing::cu_seqlens) {
    problem.max_batch = 1;
    problem.max_sequences = 3;
  }
  auto const plan = tested_backend().plan(problem);
  INFO(to_string(problem) << ": " << plan.description());
  auto const bytes = plan.workspace_bytes();
  problem.max_seqlen = 1'000'000'000;
  CHECK(tested_backend().plan(problem).workspace_bytes() == bytes);
  CHECK(static_cast<std::int64_t>(bytes) <= workspace_bound(plan));
}

TEST_CASE("scan: the workspace does not grow with the text", "[properties]") {
  if (!is_host_backend()) SKIP("a bound for the host's backends");
  for (auto const& shape : evaluation::scan_shapes) {
    for (auto const pack : {packing::dense, packing::cu_seqlens, packing::seq_idx}) {
      for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
        auto problem = model_problem(1000, shape);
        problem.io = problem.state = io;
        check_workspace_of(problem, pack);
        problem.D = skip::per_channel;
        problem.D_type = problem.dt_bias_type = problem.dt = io;
        problem.has_z = problem.has_dt_bias = problem.dt_softplus = true;
        problem.has_state_source = problem.has_state_target = problem.has_total_decay = true;
        problem.intermediate_every = 48;
        check_workspace_of(problem, pack);
      }
    }
  }
}

struct call_form {
  packing pack = packing::dense;
  dtype io = dtype::f32;
  dtype state = dtype::f32;
  bool one_buffer = false;
};

// What one execute takes from the heap, after a first one that may start threads.
allocations allocations_of_execute(call_form const& form, std::int64_t scale) {
  scan_trial trial;
  trial.problem = model_problem(300 * scale);
  trial.problem.headdim = 19;
  trial.problem.dstate = 21;
  trial.problem.pack = form.pack;
  trial.problem.io = trial.problem.dt = form.io;
  trial.problem.D_type = trial.problem.dt_bias_type = form.io;
  trial.problem.state = form.state;
  trial.one_buffer = form.one_buffer;
  trial.inputs = form.one_buffer ? arrangement::packed : arrangement::padded;
  trial.problem.D = skip::per_head;
  trial.problem.has_z = trial.problem.has_dt_bias = true;
  trial.problem.has_state_source = trial.problem.has_state_target = true;
  trial.problem.has_total_decay = true;
  trial.problem.intermediate_every = 64;
  for (std::int64_t i = 0; i < scale; ++i) {
    for (std::int64_t const length : {100, 57, 143}) trial.lengths.push_back(length);
  }
  if (form.pack == packing::cu_seqlens) {
    trial.problem.max_batch = 1;
    trial.problem.max_sequences = 3 * scale;
  }
  scan_tensors const tensors(trial);
  tensors.upload();
  auto const arguments = tensors.arguments();
  auto const plan = tested_backend().plan(trial.problem);
  auto const memory = tested_backend().allocate(plan.where(), plan.workspace_bytes());
  plan.execute(arguments, memory.workspace());
  auto const before = allocations_so_far();
  plan.execute(arguments, memory.workspace());
  return allocations_so_far() - before;
}

// With a workspace that does not grow with the text, this is also why no path converts a whole
// tensor to another type: there is nowhere to put one.
TEST_CASE("scan: execute takes nothing from the heap that grows with the problem", "[properties]") {
  if (!is_host_backend()) SKIP("counted on the host");
  // A parallel loop's own bookkeeping, whatever the problem.
  constexpr std::int64_t most = 8;
  constexpr std::int64_t most_bytes = 4096;
  for (auto const pack : {packing::dense, packing::cu_seqlens, packing::seq_idx}) {
    for (auto const& form : {call_form{pack}, call_form{pack, dtype::bf16, dtype::f16},
                             call_form{pack, dtype::f16, dtype::bf16},
                             call_form{pack, dtype::f32, dtype::f32, true}}) {
      INFO(to_string(pack) << " " << to_string(form.io) << " " << to_string(form.state));
      auto const small = allocations_of_execute(form, 1);
      INFO("a small problem: " << small.count << " allocations, " << small.bytes << " bytes");
      CHECK(small.count <= most);
      CHECK(small.bytes <= most_bytes);
      bool const same = allocations_of_execute(form, 4) == small;
      CHECK(same);
    }
  }
}

TEST_CASE("scan: a million tokens", "[properties]") {
  scan_trial trial;
  trial.problem = {.max_batch = 1,
                   .max_seqlen = 1'000'003,
                   .nheads = 1,
                   .headdim = 1,
                   .ngroups = 1,
                   .dstate = 8,
                   .has_final_states = true};
  if (is_host_backend()) {
    auto const plan = tested_backend().plan(trial.problem);
    // Whole registers and lines, where the numbers alone would be less.
    CHECK(plan.workspace_bytes() <= static_cast<std::size_t>(plan.threads()) << 18U);
  }
  check_scan(trial);
}

#if defined(__SANITIZE_THREAD__)
constexpr bool can_map_sparsely = false;
#else
constexpr bool can_map_sparsely = true;
#endif

// Address space that costs memory only where it is touched.
class sparse_memory {
 public:
  explicit sparse_memory(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
  }
  sparse_memory(sparse_memory const&) = delete;
  sparse_memory& operator=(sparse_memory const&) = delete;
  ~sparse_memory() { ::munmap(data_, bytes_); }
  template <class Element>
  [[nodiscard]] Element* as() const noexcept {
    return static_cast<Element*>(data_);
  }

 private:
  std::size_t bytes_;
  void* data_;
};

// Elements beyond 2^32: an index of 32 bits, signed or not, lands in another row.
template <class Element>
void check_far_rows() {
  constexpr std::int64_t pitch = 65536;
  constexpr std::int64_t seqlen = 66048;
  constexpr std::int64_t heads = 2, headdim = 3, dstate = 4;
  sparse_memory const far(static_cast<std::size_t>(seqlen * pitch) * sizeof(Element));
  constexpr std::int64_t width = 2 * heads * headdim + 2 * dstate + heads;
  std::vector<Element> near(static_cast<std::size_t>(seqlen * width));
  std::vector<float> const A = {-1.5F, -4.0F};
  random_numbers numbers(5);
  for (std::int64_t l = 0; l < seqlen; ++l) {
    for (std::int64_t column = 0; column < width; ++column) {
      bool const is_step = column >= width - heads;
      Element const value(
          static_cast<float>(is_step ? numbers.log_uniform(1e-3, 1e-1) : 0.5 * numbers.normal()));
      far.as<Element>()[l * pitch + column] = value;
      near[static_cast<std::size_t>(l * width + column)] = value;
    }
  }
  auto const run = [&](Element* rows, std::int64_t stride) {
    std::int64_t begin = 0;
    auto const columns = [&](std::int64_t outer, std::int64_t inner) {
      auto const view =
          make_view(rows + begin, {1, seqlen, outer, inner}, {seqlen * stride, stride, inner, 1});
      begin += outer * inner;
      return view;
    };
    scan_arguments arguments;
    arguments.x = columns(heads, headdim);
    arguments.out = columns(heads, headdim);
    arguments.B = columns(1, dstate);
    arguments.C = columns(1, dstate);
    arguments.dt = make_view(rows + begin, {1, seqlen, heads}, {seqlen * stride, stride, 1});
    arguments.A = make_view(A.data(), {heads});
    execute(make_problem(arguments), arguments);
  };
  run(far.as<Element>(), pitch);
  run(near.data(), width);
  std::int64_t different = 0;
  for (std::int64_t l = 0; l < seqlen; ++l) {
    auto const* const row = far.as<Element>() + l * pitch;
    auto const same =
        std::equal(row, row + width, near.data() + l * width, [](Element left, Element right) {
          return static_cast<float>(left) == static_cast<float>(right);
        });
    different += same ? 0 : 1;
  }
  CHECK(different == 0);
}

TEST_CASE("scan: rows that are 65536 elements apart", "[properties]") {
  if (!is_host_backend()) SKIP("address space is mapped on the host");
  if (!can_map_sparsely) SKIP("ThreadSanitizer keeps shadow memory for all of it");
  check_far_rows<float>();
  check_far_rows<bfloat16>();
}

}  // namespace
}  // namespace mambatile::testing
