#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/tensor_error.hpp"
#include "support/execute.hpp"
#include "support/scan_check.hpp"
#include "support/scan_oracle.hpp"
#include "support/scan_views.hpp"
#include "support/tested_backend.hpp"

// What must not change a result: the chunk, the neighbours, the order, the threads, the day.

namespace mambatile::testing {
namespace {

scan_trial full_trial() {
  scan_trial trial;
  trial.problem = {.max_batch = 3,
                   .max_seqlen = 137,
                   .nheads = 6,
                   .headdim = 19,
                   .ngroups = 2,
                   .dstate = 23,
                   .dt_softplus = true,
                   .D = skip::per_head,
                   .has_z = true,
                   .has_dt_bias = true,
                   .has_initial_states = true,
                   .has_final_states = true,
                   .has_total_decay = true,
                   .intermediate_every = 64,
                   .batch_invariant = true};
  return trial;
}

std::vector<dtype> const io_types = {dtype::f32, dtype::bf16};

// The reference works token by token whatever it is asked for.
bool has_chunks() { return tested_backend().name() != "reference"; }

TEST_CASE("scan: any chunk size gives the result", "[properties]") {
  for (int const chunk :
       {1, 2, 7, 8, 15, 16, 24, 32, 40, 50, 64, 100, 128, 136, 137, 200, 256, 1000}) {
    for (auto const* regime : {"normal", "cliff", "bigdecay"}) {
      auto trial = full_trial();
      trial.problem.max_batch = 1;
      trial.problem.chunk_size = chunk;
      trial.regime = regime;
      check_scan(trial);
    }
  }
}

TEST_CASE("scan: a named chunk size shows in the plan's description", "[properties]") {
  if (!has_chunks()) SKIP("the reference has no chunks");
  if (!is_host_backend()) SKIP("the chunk is what the kernels were compiled for");
  auto problem = full_trial().problem;
  problem.max_seqlen = 4096;
  auto const describe = [&](int chunk) {
    problem.chunk_size = chunk;
    return std::string(tested_backend().plan(problem).description());
  };
  CHECK(describe(64) != describe(128));
  CHECK(describe(64).find("64") != std::string::npos);
  CHECK(describe(128).find("128") != std::string::npos);
}

TEST_CASE("scan: the same call gives the same bits", "[properties]") {
  for (auto const io : io_types) {
    auto trial = full_trial();
    trial.problem.io = io;
    auto const first = output_bits(run_scan_trial(trial));
    CHECK(output_bits(run_scan_trial(trial)) == first);
    // The property holds without asking for more.
    trial.problem.batch_invariant = false;
    auto const plain = output_bits(run_scan_trial(trial));
    CHECK(output_bits(run_scan_trial(trial)) == plain);
  }
}

TEST_CASE("scan: bits do not depend on the threads", "[properties]") {
  if (!is_host_backend()) SKIP("threads are a matter of the host");
  for (auto const io : io_types) {
    for (std::int64_t const heads : {1, 6}) {
      auto trial = full_trial();
      trial.problem.io = io;
      trial.problem.nheads = heads;
      trial.problem.ngroups = 1;
      trial.problem.headdim = 67;
      trial.problem.max_batch = 1;
      auto const expected = output_bits(run_scan_trial(trial));
      for (int threads = 1; threads <= 4; ++threads) {
        trial.problem.threads = threads;
        CHECK(output_bits(run_scan_trial(trial)) == expected);
      }
      trial.problem.threads = 0;
      trial.threads = 1;
      CHECK(output_bits(run_scan_trial(trial)) == expected);
    }
  }
}

TEST_CASE("scan: bits do not depend on where tensors lie", "[properties]") {
  for (auto const io : io_types) {
    auto trial = full_trial();
    trial.problem.io = io;
    auto const expected = output_bits(run_scan_trial(trial));
    for (auto const lies : {arrangement::padded, arrangement::swapped}) {
      auto moved = trial;
      moved.inputs = moved.outputs = moved.states = lies;
      CHECK(output_bits(run_scan_trial(moved)) == expected);
    }
    auto reversed = trial;
    reversed.inputs = arrangement::reversed;
    CHECK(output_bits(run_scan_trial(reversed)) == expected);
    auto shared = trial;
    shared.one_buffer = true;
    CHECK(output_bits(run_scan_trial(shared)) == expected);
    auto transposed = trial;
    transposed.states = arrangement::transposed;
    CHECK(output_bits(run_scan_trial(transposed)) == expected);
    auto larger = trial;
    larger.spare_capacity = 1;
    CHECK(output_bits(run_scan_trial(larger)) == expected);
  }
}

// Outputs of a part of the call, run alone; `part` selects it from the arguments of the whole.
template <class Part>
void check_alone(scan_trial const& trial, std::vector<std::uint32_t> const& expected,
                 Part const& part) {
  INFO(repro_line(trial));
  scan_tensors const tensors(trial);
  tensors.upload();
  auto const arguments = part(tensors.arguments());
  execute(problem_for(arguments, trial.problem), arguments);
  tensors.download();
  std::vector<std::uint32_t> got;
  auto const results = part(tensors.results());
  for (auto const& view :
       {results.out, results.final_states, results.intermediate_states, results.total_decay}) {
    auto const bits_of_view = bits(view);
    got.insert(got.end(), bits_of_view.begin(), bits_of_view.end());
  }
  CHECK(got == expected);
}

template <class Part>
std::vector<std::uint32_t> bits_of_part(scan_tensors const& tensors, Part const& part) {
  std::vector<std::uint32_t> all;
  auto const results = part(tensors.results());
  for (auto const& view :
       {results.out, results.final_states, results.intermediate_states, results.total_decay}) {
    auto const bits_of_view = bits(view);
    all.insert(all.end(), bits_of_view.begin(), bits_of_view.end());
  }
  return all;
}

TEST_CASE("scan: a row has the same bits alone and beside others", "[properties]") {
  for (auto const io : io_types) {
    auto trial = full_trial();
    trial.problem.io = io;
    auto const whole = run_scan_trial(trial);
    for (std::int64_t b = 0; b < trial.problem.max_batch; ++b) {
      auto const row = [b](scan_arguments const& all) { return rows_of(all, b, 1); };
      check_alone(trial, bits_of_part(whole, row), row);
    }
  }
}

TEST_CASE("scan: a head has the same bits alone and beside others", "[properties]") {
  if (!is_host_backend()) SKIP("bits may depend on the number of heads on a GPU");
  for (auto const io : io_types) {
    auto trial = full_trial();
    trial.problem.io = io;
    auto const whole = run_scan_trial(trial);
    for (std::int64_t h = 0; h < trial.problem.nheads; ++h) {
      auto const head = [h](scan_arguments const& all) { return heads_of(all, h, 1); };
      check_alone(trial, bits_of_part(whole, head), head);
    }
  }
}

// Sequences packed in one row, in the order given; each is a row of a dense trial.
struct packed_call {
  test_tensor x, dt, B, C, z, cu_seqlens, initial_states, out, final_states, total_decay;
  scan_arguments arguments;
};

void copy_elements(const_tensor_view const& from, tensor_view const& to) {
  auto const source = values(from);
  std::size_t next = 0;
  for_each_offset(to, [&](std::int64_t offset) { test_tensor::set(to, offset, source[next++]); });
}

packed_call pack_rows(scan_tensors const& dense, std::vector<std::int64_t> const& order,
                      std::vector<std::int64_t> const& lengths) {
  auto const host = dense.images();
  auto const rows = static_cast<std::int64_t>(order.size());
  std::int64_t total = 0;
  for (auto const row : order) total += lengths[static_cast<std::size_t>(row)];
  auto const token_tensor = [&](const_tensor_view const& like) {
    std::vector<std::int64_t> shape(like.extents.begin(), like.extents.begin() + like.rank);
    shape[0] = 1;
    shape[1] = total;
    return test_tensor(like.type, shape);
  };
  auto const row_tensor = [&](const_tensor_view const& like) {
    std::vector<std::int64_t> shape(like.extents.begin(), like.extents.begin() + like.rank);
    shape[0] = rows;
    return test_tensor(like.type, shape);
  };
  packed_call call{token_tensor(host.x),
                   token_tensor(host.dt),
                   token_tensor(host.B),
                   token_tensor(host.C),
                   token_tensor(host.z),
                   test_tensor(dtype::i32, {rows + 1}),
                   row_tensor(host.initial_states),
                   token_tensor(host.x),
                   row_tensor(host.final_states),
                   row_tensor(host.total_decay),
                   dense.arguments()};
  std::int64_t begin = 0;
  auto bounds = std::vector<double>{0};
  for (std::int64_t i = 0; i < rows; ++i) {
    auto const row = order[static_cast<std::size_t>(i)];
    auto const length = lengths[static_cast<std::size_t>(row)];
    auto const copy_tokens = [&](const_tensor_view const& from, test_tensor const& to) {
      copy_elements(slice(slice(from, 0, row, 1), 1, 0, length),
                    slice(to.image(), 1, begin, length));
    };
    copy_tokens(host.x, call.x);
    copy_tokens(host.dt, call.dt);
    copy_tokens(host.B, call.B);
    copy_tokens(host.C, call.C);
    copy_tokens(host.z, call.z);
    copy_elements(slice(host.initial_states, 0, row, 1),
                  slice(call.initial_states.image(), 0, i, 1));
    begin += length;
    bounds.push_back(static_cast<double>(begin));
  }
  std::size_t next = 0;
  call.cu_seqlens.fill([&] { return bounds[next++]; });
  for (auto const* tensor :
       {&call.x, &call.dt, &call.B, &call.C, &call.z, &call.cu_seqlens, &call.initial_states,
        &call.out, &call.final_states, &call.total_decay}) {
    tensor->upload();
  }
  call.arguments.x = call.x.view();
  call.arguments.dt = call.dt.view();
  call.arguments.B = call.B.view();
  call.arguments.C = call.C.view();
  call.arguments.z = call.z.view();
  call.arguments.cu_seqlens = call.cu_seqlens.view();
  call.arguments.initial_states = call.initial_states.view();
  call.arguments.out = call.out.view();
  call.arguments.final_states = call.final_states.view();
  call.arguments.total_decay = call.total_decay.view();
  return call;
}

TEST_CASE("scan: a packed sequence has the bits of its own dense call, in any order",
          "[properties]") {
  std::vector<std::int64_t> const lengths = {137, 1, 64, 0, 33};
  for (auto const io : io_types) {
    auto trial = full_trial();
    trial.problem.io = io;
    trial.problem.max_batch = 5;
    trial.problem.intermediate_every = 0;
    scan_tensors const dense(trial);
    dense.upload();
    std::vector<std::int64_t> order = {0, 1, 2, 3, 4};
    for (int round = 0; round < 3; ++round) {
      auto const packed = pack_rows(dense, order, lengths);
      execute(problem_for(packed.arguments, trial.problem), packed.arguments);
      for (auto const* output : {&packed.out, &packed.final_states, &packed.total_decay}) {
        output->download();
      }
      std::int64_t begin = 0;
      for (std::size_t i = 0; i < order.size(); ++i) {
        auto const row = order[i];
        auto const length = lengths[static_cast<std::size_t>(row)];
        auto const place = static_cast<std::int64_t>(i);
        std::vector<std::uint32_t> got = bits(slice(packed.out.result(), 1, begin, length));
        for (auto const& view : {slice(packed.final_states.result(), 0, place, 1),
                                 slice(packed.total_decay.result(), 0, place, 1)}) {
          auto const part = bits(view);
          got.insert(got.end(), part.begin(), part.end());
        }
        begin += length;
        INFO("sequence " << row << " of length " << length << " at place " << i);
        check_alone(trial, got, [&](scan_arguments const& all) {
          return tokens_of(rows_of(all, row, 1), 0, length);
        });
      }
      std::rotate(order.begin(), order.begin() + 2, order.end());
      std::swap(order[0], order[3]);
    }
  }
}

TEST_CASE("scan: NaN stays in its row, sequence and head", "[properties]") {
  auto const fill_nan = [](tensor_view const& host) {
    for_each_offset(host, [&](std::int64_t offset) {
      test_tensor::set(host, offset, std::numeric_limits<double>::quiet_NaN());
    });
  };
  auto const run = [](scan_trial const& trial, scan_tensors const& tensors) {
    INFO(repro_line(trial));
    tensors.upload();
    execute(trial.planned_problem(), tensors.arguments(), trial.threads);
    tensors.download();
    tensors.check_guards();
  };
  for (auto const io : io_types) {
    auto trial = full_trial();
    trial.problem.io = io;
    SECTION(std::string("rows, ") + std::string(to_string(io))) {
      auto const clean = run_scan_trial(trial);
      scan_tensors const dirty(trial);
      for (auto const* input :
           {&dirty.x, &dirty.dt, &dirty.B, &dirty.C, &dirty.z, &dirty.initial_states}) {
        fill_nan(slice(input->image(), 0, 1, 1));
      }
      run(trial, dirty);
      for (std::int64_t const b : {0, 2}) {
        auto const row = [b](scan_arguments const& all) { return rows_of(all, b, 1); };
        CHECK(bits_of_part(dirty, row) == bits_of_part(clean, row));
      }
      auto const poisoned = values(rows_of(dirty.results(), 1, 1).out);
      CHECK(std::all_of(poisoned.begin(), poisoned.end(),
                        [](double value) { return value != value; }));
    }
    SECTION(std::string("heads, ") + std::string(to_string(io))) {
      auto const clean = run_scan_trial(trial);
      scan_tensors const dirty(trial);
      // All that head 2 alone reads.
      for (auto const* input : {&dirty.x, &dirty.dt, &dirty.z}) {
        fill_nan(slice(input->image(), 2, 2, 1));
      }
      fill_nan(slice(dirty.initial_states.image(), 1, 2, 1));
      for (auto const* input : {&dirty.A, &dirty.D, &dirty.dt_bias}) {
        fill_nan(slice(input->image(), 0, 2, 1));
      }
      run(trial, dirty);
      for (std::int64_t const h : {0, 1, 3, 4, 5}) {
        auto const head = [h](scan_arguments const& all) { return heads_of(all, h, 1); };
        INFO("head " << h);
        CHECK(bits_of_part(dirty, head).size() == bits_of_part(clean, head).size());
        CHECK(bits_of_part(dirty, head) == bits_of_part(clean, head));
      }
    }
    SECTION(std::string("sequences, ") + std::string(to_string(io))) {
      auto packed = trial;
      packed.problem.max_batch = 1;
      packed.problem.pack = packing::cu_seqlens;
      packed.lengths = {40, 7, 0, 60, 20};
      packed.problem.max_sequences = 5;
      packed.problem.intermediate_every = 0;
      auto const clean = run_scan_trial(packed);
      scan_tensors const dirty(packed);
      for (auto const* input : {&dirty.x, &dirty.dt, &dirty.B, &dirty.C, &dirty.z}) {
        fill_nan(slice(input->image(), 1, 40, 7));
      }
      fill_nan(slice(dirty.initial_states.image(), 0, 1, 1));
      run(packed, dirty);
      auto const others = [](scan_tensors const& tensors) {
        auto const results = tensors.results();
        std::vector<std::uint32_t> all;
        for (auto const& view :
             {slice(results.out, 1, 0, 40), slice(results.out, 1, 47, 90),
              slice(results.final_states, 0, 0, 1), slice(results.final_states, 0, 2, 3),
              slice(results.total_decay, 0, 0, 1), slice(results.total_decay, 0, 2, 3)}) {
          auto const part = bits(view);
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      };
      CHECK(others(dirty) == others(clean));
    }
    SECTION(std::string("sequences of one row, ") + std::string(to_string(io))) {
      auto packed = trial;
      packed.problem.pack = packing::seq_idx;
      packed.problem.max_batch = 1;
      packed.lengths = {50, 30, 57};
      packed.problem.intermediate_every = 0;
      packed.problem.has_total_decay = false;
      auto const clean = run_scan_trial(packed);
      scan_tensors const dirty(packed);
      for (auto const* input : {&dirty.x, &dirty.dt, &dirty.B, &dirty.C, &dirty.z}) {
        fill_nan(slice(input->image(), 1, 50, 30));
      }
      run(packed, dirty);
      // A chunk may hold several sequences: their neighbours' NaN must not get through.
      auto const others = [](scan_tensors const& tensors) {
        auto const results = tensors.results();
        auto all = bits(slice(results.out, 1, 0, 50));
        for (auto const& view : {slice(results.out, 1, 80, 57), results.final_states}) {
          auto const part = bits(view);
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      };
      CHECK(others(dirty) == others(clean));
    }
  }
}

}  // namespace
}  // namespace mambatile::testing
