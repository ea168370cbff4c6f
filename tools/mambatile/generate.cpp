#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <mambatile/mambatile.hpp>

#include "command.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile generate: continues sequences of token ids with a checkpoint.

namespace mambatile::program {
namespace {

struct settings {
  std::filesystem::path checkpoint;
  std::vector<std::string> ids;
  std::filesystem::path ids_file;
  std::int64_t count = 16;
  sampling_options sampling;
  std::string backend;
  model_options options;
  std::filesystem::path state_in;
  std::filesystem::path state_out;
};

// "1,2,3" or "1 2 3".
std::vector<std::int32_t> parse_ids(std::string text, std::string const& where) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream words(text);
  std::vector<std::int32_t> ids;
  for (std::string word; words >> word;) {
    std::size_t used = 0;
    long value = -1;
    try {
      value = std::stol(word, &used);
    } catch (std::exception const&) {
      used = 0;
    }
    if (used != word.size() || value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
      throw invalid_argument(fmt::format("generate: {}: \"{}\" is not a token id", where, word));
    }
    ids.push_back(static_cast<std::int32_t>(value));
  }
  return ids;
}

std::vector<std::vector<std::int32_t>> prompts_of(settings const& chosen) {
  std::vector<std::vector<std::int32_t>> prompts;
  for (auto const& text : chosen.ids) prompts.push_back(parse_ids(text, "--ids"));
  if (!chosen.ids_file.empty()) {
    std::ifstream file(chosen.ids_file);
    if (!file) throw file_error(chosen.ids_file.string() + ": cannot be read");
    for (std::string line; std::getline(file, line);) {
      auto ids = parse_ids(line, chosen.ids_file.string());
      if (!ids.empty()) prompts.push_back(std::move(ids));
    }
  }
  if (prompts.empty() || std::any_of(prompts.begin(), prompts.end(),
                                     [](auto const& prompt) { return prompt.empty(); })) {
    throw invalid_argument("generate: no token ids were given; use --ids or --ids-file");
  }
  return prompts;
}

void check_states(settings const& chosen, std::size_t sequences) {
  if ((!chosen.state_in.empty() || !chosen.state_out.empty()) && sequences != 1) {
    throw invalid_argument(fmt::format(
        "generate: --state-in and --state-out hold one sequence, but {} were given", sequences));
  }
}

// Ids go to stdout as they come: one line a sequence. A single sequence streams; several are
// printed when all are done, so that lines do not mix.
class output {
 public:
  explicit output(std::size_t sequences) : lines_(sequences) {}

  void add(std::size_t sequence, std::int32_t id) {
    auto const word = fmt::format("{}{}", lines_[sequence].empty() ? "" : " ", id);
    lines_[sequence] += word;
    if (lines_.size() != 1) return;
    fmt::print("{}", word);
    std::fflush(stdout);
  }
  void finish() const {
    if (lines_.size() == 1) {
      fmt::print("\n");
      return;
    }
    for (auto const& line : lines_) fmt::print("{}\n", line);
  }

 private:
  std::vector<std::string> lines_;
};

void report(char const* what, std::int64_t tokens, double seconds) {
  fmt::print(stderr, "{}: {} tokens in {:.3f} s, {:.1f} tokens/s\n", what, tokens, seconds,
             static_cast<double>(tokens) / std::max(seconds, 1e-9));
}

void generate(settings const& chosen) {
  auto const prompts = prompts_of(chosen);
  check_states(chosen, prompts.size());
  auto const stored = checkpoint::open(chosen.checkpoint, [](std::string_view remark) {
    fmt::print(stderr, "mambatile: {}\n", printable(remark));
  });
  model runs(stored, chosen_backend(chosen.backend), chosen.options);
  model_cache cache(runs, static_cast<std::int64_t>(prompts.size()));
  fmt::print(stderr, "{} on {}: weights {}, states {}, workspace {}\n",
             printable(chosen.checkpoint.string()), runs.served_by().name(),
             bytes_text(static_cast<double>(stored.file_bytes())),
             bytes_text(static_cast<double>(cache.bytes())),
             bytes_text(static_cast<double>(runs.workspace_bytes())));
  if (!chosen.state_in.empty()) cache.load(0, chosen.state_in);

  auto const vocab = static_cast<std::size_t>(runs.config().vocab_size);
  auto const& ends = runs.config().end_of_sequence;
  std::vector<sequence_tokens> batch;
  std::vector<std::size_t> open;  // sequences that go on, in the batch's order
  std::int64_t prompt_tokens = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    batch.push_back({static_cast<std::int64_t>(i), prompts[i]});
    open.push_back(i);
    prompt_tokens += static_cast<std::int64_t>(prompts[i].size());
  }
  std::vector<float> logits(prompts.size() * vocab);
  auto started = seconds_now();
  runs.forward(cache, batch, logits_of::last_tokens, logits);
  report("prompt", prompt_tokens, seconds_now() - started);

  // One stream of draws for each sequence: what one generates does not depend on the others.
  std::vector<sampler> samplers;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    auto sampling = chosen.sampling;
    sampling.seed += i;
    samplers.emplace_back(sampling);
  }
  output lines(prompts.size());
  std::vector<std::int32_t> next(prompts.size());
  std::int64_t generated = 0;
  started = seconds_now();
  for (std::int64_t step = 0; step < chosen.count && !open.empty(); ++step) {
    std::vector<std::size_t> still_open;
    batch.clear();
    for (std::size_t row = 0; row < open.size(); ++row) {
      auto const sequence = open[row];
      auto const id = samplers[sequence](std::span(logits).subspan(row * vocab, vocab));
      lines.add(sequence, id);
      ++generated;
      bool const ended = std::find(ends.begin(), ends.end(), id) != ends.end();
      // A saved state, which is that of the only sequence, has seen all that was printed: the id
      // that ends a sequence too, and after the loop's last step its id.
      if (ended && chosen.state_out.empty()) continue;
      next[sequence] = id;
      batch.push_back({static_cast<std::int64_t>(sequence), std::span(&next[sequence], 1)});
      if (!ended) still_open.push_back(sequence);
    }
    open = std::move(still_open);
    logits.resize(batch.size() * vocab);
    if (!batch.empty()) runs.forward(cache, batch, logits_of::last_tokens, logits);
  }
  lines.finish();
  report("generated", generated, seconds_now() - started);
  if (!chosen.state_out.empty()) cache.save(0, chosen.state_out);
}

}  // namespace

void add_generate_command(CLI::App& program) {
  auto const chosen = std::make_shared<settings>();
  auto* const command =
      program.add_subcommand("generate", "Continue sequences of token ids with a checkpoint");
  command->footer(
      "Token ids go in and out: no tokenizer is built in. The ids of a text come from the\n"
      "checkpoint's tokenizer.json with the tool of your choice, such as Python's tokenizers.");
  command->add_option("checkpoint", chosen->checkpoint, "Directory with config.json and weights")
      ->required();
  command->add_option("--ids", chosen->ids, "Token ids, as 1,2,3; again for a further sequence")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--ids-file", chosen->ids_file, "A file with the ids of a sequence a line");
  command->add_option("-n,--count", chosen->count, "Tokens to generate")->check(at_least(0));
  command->add_option("--temperature", chosen->sampling.temperature, "0 takes the likeliest token");
  command->add_option("--top-k", chosen->sampling.top_k, "Only the k likeliest; 0 takes all");
  command->add_option("--top-p", chosen->sampling.top_p, "Only the likeliest that sum to p");
  command->add_option("--seed", chosen->sampling.seed, "The same seed draws the same tokens")
      ->check(at_least(0));
  add_backend_option(*command, chosen->backend);
  add_model_options(*command, chosen->options);
  command->add_option("--state-in", chosen->state_in, "Go on from a saved state");
  command->add_option("--state-out", chosen->state_out, "Save the state reached");
  command->callback([chosen] { generate(*chosen); });
}

}  // namespace mambatile::program
