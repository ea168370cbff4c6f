#include "support/scan_views.hpp"

namespace mambatile::testing {

scan_arguments tokens_of(scan_arguments arguments, std::int64_t begin, std::int64_t count) {
  for (auto* input : {&arguments.x, &arguments.dt, &arguments.B, &arguments.C, &arguments.z,
                      &arguments.seq_idx}) {
    *input = slice(*input, 1, begin, count);
  }
  arguments.out = slice(arguments.out, 1, begin, count);
  return arguments;
}

scan_arguments rows_of(scan_arguments arguments, std::int64_t begin, std::int64_t count) {
  for (auto* input : {&arguments.x, &arguments.dt, &arguments.B, &arguments.C, &arguments.z,
                      &arguments.seq_idx, &arguments.initial_states}) {
    *input = slice(*input, 0, begin, count);
  }
  for (auto* output : {&arguments.out, &arguments.final_states, &arguments.intermediate_states,
                       &arguments.total_decay}) {
    *output = slice(*output, 0, begin, count);
  }
  return arguments;
}

scan_arguments heads_of(scan_arguments arguments, std::int64_t begin, std::int64_t count) {
  auto const heads_per_group = arguments.x.extent(2) / arguments.B.extent(2);
  auto const groups = (count + heads_per_group - 1) / heads_per_group;
  for (auto* input : {&arguments.B, &arguments.C}) {
    *input = slice(*input, 2, begin / heads_per_group, groups);
  }
  for (auto* input : {&arguments.x, &arguments.z, &arguments.dt}) {
    *input = slice(*input, 2, begin, count);
  }
  for (auto* input : {&arguments.A, &arguments.D, &arguments.dt_bias}) {
    *input = slice(*input, 0, begin, count);
  }
  arguments.initial_states = slice(arguments.initial_states, 1, begin, count);
  arguments.out = slice(arguments.out, 2, begin, count);
  arguments.final_states = slice(arguments.final_states, 1, begin, count);
  arguments.intermediate_states = slice(arguments.intermediate_states, 2, begin, count);
  arguments.total_decay = slice(arguments.total_decay, 1, begin, count);
  return arguments;
}

scan_problem problem_for(scan_arguments const& arguments, scan_problem const& like) {
  return make_problem(arguments, {.dt_softplus = like.dt_softplus,
                                  .dt_limit = like.dt_limit,
                                  .intermediate_every = like.intermediate_every,
                                  .math = like.math,
                                  .batch_invariant = like.batch_invariant,
                                  .chunk_size = like.chunk_size,
                                  .threads = like.threads});
}

}  // namespace mambatile::testing
