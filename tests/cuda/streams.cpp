#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <catch2/catch_test_macros.hpp>

#include "support/guarded_memory.hpp"
#include "support/scan_check.hpp"
#include "support/tested_backend.hpp"
#include "support/update_check.hpp"

// Calls in graphs, on several streams and from several threads: the bits of one call alone.

namespace mambatile::testing {
namespace {

class stream {
 public:
  stream() { REQUIRE(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking) == cudaSuccess); }
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { static_cast<void>(cudaStreamDestroy(handle_)); }
  [[nodiscard]] cudaStream_t get() const noexcept { return handle_; }
  [[nodiscard]] queue on() const { return {.where = tested_device(), .native = handle_}; }

 private:
  cudaStream_t handle_ = nullptr;
};

// A trial's tensors with what its plan needs, run by whoever holds it.
template <class Problem, class Tensors>
class ready_call {
 public:
  template <class Trial>
  explicit ready_call(Trial const& trial)
      : tensors_(trial),
        plan_(tested_backend().plan(trial.planned_problem(), tested_device())),
        workspace_(plan_.workspace_bytes()) {
    workspace_.upload();
    tensors_.upload();
  }
  void enqueue(queue const& on) const {
    plan_.execute(tensors_.arguments(), {workspace_.data(), workspace_.bytes(), plan_.where()}, on);
  }
  [[nodiscard]] std::vector<std::uint32_t> bits_of_results() const {
    tensors_.download();
    tensors_.check_guards();
    auto const results = tensors_.results();
    auto all = bits(results.out);
    if (results.final_states) {
      auto const states = bits(results.final_states);
      all.insert(all.end(), states.begin(), states.end());
    }
    return all;
  }
  void upload() const { tensors_.upload(); }

 private:
  Tensors tensors_;
  operator_plan<Problem> plan_;
  guarded_memory workspace_;
};

using ready_scan = ready_call<scan_problem, scan_tensors>;
using ready_update = ready_call<state_update_problem, update_tensors>;

std::vector<scan_trial> scan_trials() {
  scan_trial trial;
  trial.problem = {.max_batch = 2,
                   .max_seqlen = 700,
                   .nheads = 6,
                   .headdim = 40,
                   .ngroups = 2,
                   .dstate = 48,
                   .io = dtype::bf16,
                   .dt_softplus = true,
                   .D = skip::per_head,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true};
  std::vector<scan_trial> trials = {trial};
  trial.lengths = {64, 130, 1, 300};
  trial.problem.pack = packing::seq_idx;
  trials.push_back(trial);
  trial.problem.pack = packing::cu_seqlens;
  trial.problem.max_batch = 1;
  trial.problem.max_sequences = 4;
  trials.push_back(trial);
  trial.problem.io = dtype::f32;
  trials.push_back(trial);
  return trials;
}

update_trial slots_trial() {
  update_trial trial;
  trial.problem = {.max_batch = 5,
                   .max_seqlen = 3,
                   .nheads = 6,
                   .headdim = 40,
                   .ngroups = 2,
                   .dstate = 48,
                   .io = dtype::bf16,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .has_state_source = true,
                   .has_state_target = true};
  return trial;
}

// Eager, then captured by a stream that has not run it before, and replayed twice.
template <class Ready, class Trial>
void check_graph(Trial const& trial) {
  INFO(to_string(trial));
  stream const alone;
  Ready const eager(trial);
  eager.enqueue(alone.on());
  REQUIRE(cudaStreamSynchronize(alone.get()) == cudaSuccess);
  auto const expected = eager.bits_of_results();

  stream const captured;
  Ready const call(trial);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  REQUIRE(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  call.enqueue(captured.on());
  REQUIRE(cudaStreamEndCapture(captured.get(), &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
  for (int round = 0; round < 2; ++round) {
    call.upload();
    REQUIRE(cudaGraphLaunch(replay, captured.get()) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(captured.get()) == cudaSuccess);
    CHECK(call.bits_of_results() == expected);
  }
  static_cast<void>(cudaGraphExecDestroy(replay));
  static_cast<void>(cudaGraphDestroy(graph));
}

TEST_CASE("cuda: a graph's replay gives the eager call's bits", "[cuda]") {
  for (auto const& trial : scan_trials()) check_graph<ready_scan>(trial);
  check_graph<ready_update>(slots_trial());
}

TEST_CASE("cuda: threads with streams of their own do not meet", "[cuda]") {
  auto trial = scan_trials().front();
  std::vector<std::unique_ptr<ready_scan>> calls;
  std::vector<std::unique_ptr<stream>> streams;
  std::vector<std::vector<std::uint32_t>> expected;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    trial.seed = seed;
    calls.push_back(std::make_unique<ready_scan>(trial));
    streams.push_back(std::make_unique<stream>());
    calls.back()->enqueue(streams.back()->on());
    REQUIRE(cudaStreamSynchronize(streams.back()->get()) == cudaSuccess);
    expected.push_back(calls.back()->bits_of_results());
  }
  CHECK(expected[0] != expected[1]);
  std::vector<std::exception_ptr> thrown(2);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (int round = 0; round < 50; ++round) calls[i]->enqueue(streams[i]->on());
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(thrown[i] == nullptr);
    REQUIRE(cudaStreamSynchronize(streams[i]->get()) == cudaSuccess);
    CHECK(calls[i]->bits_of_results() == expected[i]);
  }
}

TEST_CASE("cuda: the caller's device stays current", "[cuda]") {
  int before = -1;
  int after = -2;
  REQUIRE(cudaGetDevice(&before) == cudaSuccess);
  static_cast<void>(run_update_trial(slots_trial()));
  REQUIRE(cudaGetDevice(&after) == cudaSuccess);
  CHECK(before == after);
}

TEST_CASE("cuda: more rows and sequences than a grid has blocks along y", "[cuda]") {
  update_trial rows;
  rows.problem = {.max_batch = 65537,
                  .nheads = 1,
                  .headdim = 3,
                  .dstate = 4,
                  .has_initial_states = true,
                  .has_final_states = true};
  check_update(rows);

  scan_trial sequences;
  sequences.problem = {.max_batch = 1,
                       .max_seqlen = 65600,
                       .max_sequences = 65600,
                       .nheads = 1,
                       .headdim = 2,
                       .dstate = 4,
                       .has_final_states = true,
                       .pack = packing::cu_seqlens};
  sequences.lengths.assign(65600, 1);
  check_scan(sequences);
}

}  // namespace
}  // namespace mambatile::testing
