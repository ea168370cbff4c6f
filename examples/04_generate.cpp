// Continues token ids with a Hugging Face or state-spaces Mamba-2 checkpoint:
//
//   04_generate CHECKPOINT_DIR COUNT ID...

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <mambatile/mambatile.hpp>

int main(int argc, char** argv) try {
  using namespace mambatile;
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s CHECKPOINT_DIR COUNT ID...\n", argv[0]);
    return 2;
  }
  std::vector<std::int32_t> ids;
  for (int i = 3; i < argc; ++i) ids.push_back(static_cast<std::int32_t>(std::atoi(argv[i])));

  // Weights are memory-mapped and used as stored; the cache holds one sequence's states.
  model runs(checkpoint::open(argv[1]), default_backend());
  model_cache cache(runs, 1);
  std::vector<float> logits(static_cast<std::size_t>(runs.config().vocab_size));
  sampler choose({.temperature = 0});  // the likeliest token; see sampling_options for more

  for (int step = 0; step < std::atoi(argv[2]); ++step) {
    // First the whole prompt, then one token at a time.
    sequence_tokens const next{.slot = 0, .ids = ids};
    runs.forward(cache, {&next, 1}, logits_of::last_tokens, logits);
    ids = {choose(logits)};
    std::printf("%s%d", step == 0 ? "" : " ", ids.front());
  }
  std::printf("\n");
  std::fprintf(stderr, "%lld tokens seen, %zu bytes of states\n",
               static_cast<long long>(cache.tokens_seen(0)), cache.bytes());
  return 0;
} catch (mambatile::error const& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
