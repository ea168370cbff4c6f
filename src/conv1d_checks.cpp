#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/conv1d.hpp>
#include <mambatile/errors.hpp>

#include "argument_checks.hpp"
#include "conv1d_forms.hpp"
#include "operator_checks.hpp"
#include "overlap.hpp"
#include "problem_checks.hpp"
#include "sequence_rules.hpp"
#include "state_ends.hpp"

// Written once, for the update; a causal_conv1d is checked as the update that it is, under its own
// name.

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

using problem_type = conv1d_update_problem;
using arguments_type = conv1d_update_arguments;

void validate_as_update(std::string_view operator_name, problem_type const& problem) {
  problem_checker const checker(operator_name);
  checker.not_negative("max_batch", problem.max_batch);
  checker.not_negative("max_seqlen", problem.max_seqlen);
  validate_packing(checker, problem);
  checker.not_negative("max_targets", problem.max_targets);
  checker.not_negative("channels", problem.channels);
  checker.not_negative("state_len", problem.state_len);
  checker.not_negative("threads", problem.threads);
  checker.product("max_batch * max_targets", {problem.max_batch, problem.max_targets});
  checker.product("max_sequences * max_targets", {problem.max_sequences, problem.max_targets});
  checker.product("channels * state_len", {problem.channels, problem.state_len});
  if (problem.width < 1) {
    checker.fail(fmt::format("width = {}, but it must be at least 1", problem.width));
  }
  checker.floating("io", problem.io);
  checker.parameter_type("weight", problem.weight, problem.io);
  checker.parameter_type("bias", problem.bias, problem.io);
  checker.parameter_type("state", problem.state, problem.io);
  checker.enumerator("act", problem.act, activation::silu);

  bool const has_states = problem.has_initial_states || problem.has_final_states;
  if (has_states && problem.state_len < problem.width - 1) {
    checker.fail(fmt::format("state_len = {}, but states must hold at least width - 1 = {} inputs",
                             problem.state_len, problem.width - 1));
  }
  if (problem.circular && !has_states) {
    checker.fail("circular = true needs has_initial_states or has_final_states = true");
  }
  if (problem.circular && problem.state_len < 1) {
    checker.fail("state_len = 0, but a ring (circular = true) needs at least one column");
  }
  validate_pools(checker, problem);
  if (problem.has_num_accepted && !problem.has_initial_states) {
    checker.fail("has_num_accepted = true needs has_initial_states = true, what it goes back in");
  }
  if (problem.per_token_source && !problem.has_num_accepted) {
    checker.fail("per_token_source = true needs has_num_accepted = true, which picks the state");
  }
  if (problem.source_has_start && !problem.per_token_source) {
    checker.fail("source_has_start = true needs per_token_source = true, the states it is one of");
  }
  if (problem.has_num_previous && !problem.has_num_accepted) {
    checker.fail("has_num_previous = true needs has_num_accepted = true");
  }
  if (problem.per_token_target && !problem.has_final_states) {
    checker.fail("per_token_target = true needs has_final_states = true, where the states go");
  }
  if (!problem.per_token_target && problem.max_targets != 0) {
    checker.fail(
        fmt::format("max_targets = {} belongs to per_token_target = true", problem.max_targets));
  }
  validate_skip_padding(checker, problem);
}

std::size_t check_bytes_as_update(problem_type const& problem, device where) {
  if (!problem.has_state_target || where.kind != device_kind::host) return 0;
  auto const rows = problem.pack == packing::cu_seqlens ? problem.max_sequences : problem.max_batch;
  return slot_scratch_bytes(problem.per_token_target ? rows * problem.max_targets : rows);
}

void check_presence(argument_checker const& checker, problem_type const& problem,
                    arguments_type const& arguments) {
  auto const flag = [&](std::string_view name, const_tensor_view const& view,
                        std::string_view field, bool expected) {
    checker.presence({name, view}, expected, field, expected);
  };
  flag("bias", arguments.bias, "has_bias", problem.has_bias);
  flag("initial_states", arguments.initial_states, "has_initial_states",
       problem.has_initial_states);
  flag("final_states", arguments.final_states, "has_final_states", problem.has_final_states);
  flag("state_source", arguments.state_source, "has_state_source", problem.has_state_source);
  flag("state_target", arguments.state_target, "has_state_target", problem.has_state_target);
  flag("cache_seqlens", arguments.cache_seqlens, "circular", problem.circular);
  flag("num_accepted", arguments.num_accepted, "has_num_accepted", problem.has_num_accepted);
  flag("num_previous", arguments.num_previous, "has_num_previous", problem.has_num_previous);
  check_packing_presence(checker, problem, arguments);
}

void check_overlaps(argument_checker const& checker, arguments_type const& arguments) {
  std::array<named_tensor, 11> const inputs = {{
      {"x", arguments.x},
      {"weight", arguments.weight},
      {"bias", arguments.bias},
      {"cu_seqlens", arguments.cu_seqlens},
      {"seq_idx", arguments.seq_idx},
      {"state_source", arguments.state_source},
      {"state_target", arguments.state_target},
      {"cache_seqlens", arguments.cache_seqlens},
      {"num_accepted", arguments.num_accepted},
      {"num_previous", arguments.num_previous},
      {"initial_states", arguments.initial_states},
  }};
  std::array<named_tensor, 2> const outputs = {
      {{"out", arguments.out}, {"final_states", arguments.final_states}}};
  checker.overlaps(outputs, inputs);
}

struct previous_tokens {
  std::string_view name;
  std::int64_t count;
};

// Tokens of the row in the previous call, and what says so.
previous_tokens previous_of(problem_type const& problem, arguments_type const& arguments,
                            std::int64_t row) {
  auto const count = tokens_before(problem, arguments, row);
  if (problem.has_num_previous) return {"num_previous", count};
  return {problem.pack == packing::cu_seqlens ? "tokens of the row" : "seqlen", count};
}

void check_speculation(argument_checker const& checker, problem_type const& problem,
                       arguments_type const& arguments, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    if (is_padding(problem, arguments, row)) continue;
    std::int64_t rejected = 0;
    if (problem.has_num_accepted) {
      std::int64_t const accepted = index_at(arguments.num_accepted, row);
      auto const [name, previous] = previous_of(problem, arguments, row);
      if (previous < 0) {
        checker.fail(fmt::format("{}[{}] = {}, but it must not be negative", name, row, previous));
      }
      if (problem.per_token_source) {
        bool const slots = problem.has_state_source;
        check_accepted(
            checker, accepted_of(problem, arguments), row,
            slots ? "state_source" : "initial_states",
            slots ? arguments.state_source.extent(1) : arguments.initial_states.extent(1));
      } else if (accepted < 0) {
        checker.fail(
            fmt::format("num_accepted[{}] = {}, but it must be at least 0", row, accepted));
      }
      if (counts_back(problem) && accepted > previous) {
        checker.fail(
            fmt::format("num_accepted[{}] = {} is more than the previous call had; {} = {}", row,
                        accepted, name, previous));
      }
      rejected = counts_back(problem) ? previous - accepted : 0;
      if (!problem.per_token_source && rejected + problem.width - 1 > problem.state_len) {
        checker.fail(fmt::format(
            "num_accepted[{}] = {} takes back {} tokens, which needs state_len >= width - 1 + {} = "
            "{}, but state_len = {}",
            row, accepted, rejected, rejected, rejected + problem.width - 1, problem.state_len));
      }
    }
    if (problem.circular && index_at(arguments.cache_seqlens, row) < rejected) {
      checker.fail(fmt::format("cache_seqlens[{}] = {}, but it must be at least {}{}", row,
                               index_at(arguments.cache_seqlens, row), rejected,
                               rejected == 0 ? "" : ", the tokens taken back by num_accepted"));
    }
  }
}

void check_indices_as_update(std::string_view operator_name, problem_type const& problem,
                             arguments_type arguments, void* scratch) {
  argument_checker const checker(operator_name, device{});
  arguments.x = with_token_axis(arguments.x);
  auto const rows = rows_of(problem, arguments);
  if (problem.pack == packing::cu_seqlens) {
    check_cu_seqlens(checker, arguments.cu_seqlens, arguments.x.extent(1));
    auto const columns = problem.has_state_target ? arguments.state_target.extent(1)
                                                  : arguments.final_states.extent(1);
    for (std::int64_t row = 0; problem.per_token_target && row < rows; ++row) {
      auto const tokens =
          index_at(arguments.cu_seqlens, row + 1) - index_at(arguments.cu_seqlens, row);
      if (tokens > columns) {
        checker.fail(fmt::format(
            "cu_seqlens gives sequence {} {} tokens, but {} has room for the "
            "states of {}",
            row, tokens, problem.has_state_target ? "state_target" : "final_states", columns));
      }
    }
  }
  if (problem.pack == packing::seq_idx) check_seq_idx(checker, arguments.seq_idx);
  check_pool_slots(checker, problem, arguments);
  check_speculation(checker, problem, arguments, rows);
  check_slot_ends(checker, arguments, accepted_of(problem, arguments), scratch);
}

void check_as_update(std::string_view operator_name, problem_type const& problem,
                     arguments_type arguments, device where) {
  argument_checker const checker(operator_name, where);
  check_one_packing(checker, arguments);
  check_presence(checker, problem, arguments);
  bool const has_token_axis =
      arguments.x.rank != 2 || operator_name == conv1d_problem::operator_name;
  if (has_token_axis) {
    checker.rank({"x", arguments.x}, 3, "(batch, seqlen, channels)");
    checker.rank({"out", arguments.out}, 3, "(batch, seqlen, channels)");
  } else {
    checker.rank({"out", arguments.out}, 2, "(batch, channels)");
    arguments.x = with_token_axis(arguments.x);
    arguments.out = with_token_axis(arguments.out);
  }
  expected_axis const batch{"batch", arguments.x.extent(0)};
  expected_axis const seqlen{"seqlen", arguments.x.extent(1)};
  expected_axis const channels{"channels", problem.channels};
  expected_axis const width{"width", problem.width};
  checker.tensor({"x", arguments.x}, problem.io, {batch, seqlen, channels});
  checker.tensor({"weight", arguments.weight}, problem.weight, {channels, width});
  if (problem.has_bias) checker.tensor({"bias", arguments.bias}, problem.bias, {channels});
  checker.tensor({"out", arguments.out}, problem.io, {batch, seqlen, channels});
  checker.capacity("batch", batch.extent, "max_batch", problem.max_batch);
  checker.capacity("seqlen", seqlen.extent, "max_seqlen", problem.max_seqlen);

  check_packing_tensors(checker, problem, arguments, batch, seqlen);
  auto const rows = rows_of(problem, arguments);
  std::array<expected_axis, 2> const inner = {
      {{"channels", problem.channels}, {"state_len", problem.state_len}}};
  if (problem.has_initial_states) {
    check_state_end(checker, problem.state,
                    {.states = {"initial_states", arguments.initial_states},
                     .slots = {"state_source", arguments.state_source},
                     .has_slots = problem.has_state_source,
                     .per_token = problem.per_token_source},
                    rows, inner);
  }
  if (problem.has_final_states) {
    check_state_end(checker, problem.state,
                    {.states = {"final_states", arguments.final_states},
                     .slots = {"state_target", arguments.state_target},
                     .has_slots = problem.has_state_target,
                     .per_token = problem.per_token_target,
                     .columns = problem.pack == packing::cu_seqlens ? -1 : seqlen.extent},
                    rows, inner);
    if (problem.per_token_target) {
      checker.capacity("tokens with a state of their own",
                       problem.has_state_target ? arguments.state_target.extent(1)
                                                : arguments.final_states.extent(1),
                       "max_targets", problem.max_targets);
    }
  }
  for (named_tensor const& tensor : {named_tensor{"cache_seqlens", arguments.cache_seqlens},
                                     {"num_accepted", arguments.num_accepted},
                                     {"num_previous", arguments.num_previous}}) {
    if (tensor.view) checker.tensor(tensor, dtype::i32, {{"rows", rows}});
  }
  check_overlaps(checker, arguments);
}

}  // namespace

void validate(conv1d_problem const& problem) {
  validate_as_update(conv1d_problem::operator_name, as_update(problem));
}

void validate(conv1d_update_problem const& problem) {
  validate_as_update(conv1d_update_problem::operator_name, problem);
}

std::size_t check_bytes(conv1d_problem const& problem, device where) {
  return check_bytes_as_update(as_update(problem), where);
}

std::size_t check_bytes(conv1d_update_problem const& problem, device where) {
  return check_bytes_as_update(problem, where);
}

void check(conv1d_problem const& problem, conv1d_arguments const& arguments, device where) {
  check_as_update(conv1d_problem::operator_name, as_update(problem), as_update(arguments), where);
}

void check(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
           device where) {
  check_as_update(conv1d_update_problem::operator_name, problem, arguments, where);
}

void check_indices(conv1d_problem const& problem, conv1d_arguments const& arguments,
                   void* scratch) {
  check_indices_as_update(conv1d_problem::operator_name, as_update(problem), as_update(arguments),
                          scratch);
}

void check_indices(conv1d_update_problem const& problem, conv1d_update_arguments const& arguments,
                   void* scratch) {
  check_indices_as_update(conv1d_update_problem::operator_name, problem, arguments, scratch);
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
