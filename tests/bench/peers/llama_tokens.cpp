// Tokens per second of llama.cpp on a GGUF file, and of mambatile on the checkpoint it was made
// from: a prompt of given length in one batch, then greedy decoding, in turn, round by round.
// Prints a JSON line each, with the ids decoded, and how far the prompt's last logits are apart.
//
//   mambatile_bench_llama MODEL.gguf [--checkpoint DIR] [--threads N] [--prompt N] [--generate N]
//                         [--rounds N] [--io f32|bf16|f16] [--ids 1,2,3]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <llama.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <mambatile/mambatile.hpp>

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void log_errors(ggml_log_level level, char const* text, void*) {
  if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
}

struct free_model {
  void operator()(llama_model* model) const noexcept { llama_model_free(model); }
};
struct free_context {
  void operator()(llama_context* context) const noexcept { llama_free(context); }
};

// One of the two, with a sequence going on.
class contestant {
 public:
  contestant() = default;
  contestant(contestant const&) = delete;
  contestant& operator=(contestant const&) = delete;
  virtual ~contestant() = default;

  [[nodiscard]] virtual char const* name() const = 0;
  virtual void forget() = 0;
  /// Logits of the last of these tokens; valid until the next call.
  virtual std::span<float const> feed(std::vector<std::int32_t>& ids) = 0;
};

class llama_contestant final : public contestant {
 public:
  llama_contestant(std::string const& path, int threads, int prompt, int generate) {
    llama_log_set(log_errors, nullptr);
    llama_backend_init();
    model_.reset(llama_model_load_from_file(path.c_str(), llama_model_default_params()));
    if (!model_) throw std::runtime_error("llama.cpp cannot load " + path);
    auto parameters = llama_context_default_params();
    parameters.n_ctx = static_cast<std::uint32_t>(prompt + generate + 8);
    parameters.n_batch = static_cast<std::uint32_t>(std::max(prompt, 1));
    parameters.n_ubatch = parameters.n_batch;
    parameters.n_threads = threads;
    parameters.n_threads_batch = threads;
    context_.reset(llama_init_from_model(model_.get(), parameters));
    if (!context_) throw std::runtime_error("llama.cpp cannot make a context");
  }

  [[nodiscard]] char const* name() const override { return "llama.cpp"; }
  [[nodiscard]] int vocabulary() const {
    return llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
  }
  void forget() override { llama_memory_clear(llama_get_memory(context_.get()), true); }
  std::span<float const> feed(std::vector<std::int32_t>& ids) override {
    auto const batch = llama_batch_get_one(ids.data(), static_cast<std::int32_t>(ids.size()));
    if (llama_decode(context_.get(), batch) != 0) throw std::runtime_error("llama_decode failed");
    llama_synchronize(context_.get());
    return {llama_get_logits_ith(context_.get(), -1), static_cast<std::size_t>(vocabulary())};
  }

 private:
  std::unique_ptr<llama_model, free_model> model_;
  std::unique_ptr<llama_context, free_context> context_;
};

class our_contestant final : public contestant {
 public:
  our_contestant(std::string const& folder, mambatile::model_options const& options)
      : model_(mambatile::checkpoint::open(folder), mambatile::default_backend(), options),
        cache_(model_, 1),
        logits_(static_cast<std::size_t>(model_.config().vocab_size)) {}

  [[nodiscard]] char const* name() const override { return "mambatile"; }
  void forget() override { cache_.reset(0); }
  std::span<float const> feed(std::vector<std::int32_t>& ids) override {
    mambatile::sequence_tokens const sequence{0, ids};
    model_.forward(cache_, {&sequence, 1}, mambatile::logits_of::last_tokens, logits_);
    return logits_;
  }

 private:
  mambatile::model model_;
  mambatile::model_cache cache_;
  std::vector<float> logits_;
};

struct measurement {
  std::vector<double> prefill;  // seconds, one a round
  std::vector<double> decode;
  std::vector<std::int32_t> decoded;
  std::vector<float> prompt_logits;
};

void run_round(contestant& who, std::vector<std::int32_t>& prompt, int generate, bool counts,
               measurement& result) {
  who.forget();
  double start = seconds_now();
  auto logits = who.feed(prompt);
  double const prefill = seconds_now() - start;
  result.prompt_logits.assign(logits.begin(), logits.end());
  result.decoded.clear();
  start = seconds_now();
  for (int i = 0; i < generate; ++i) {
    auto const best = std::ranges::max_element(logits) - logits.begin();
    std::vector<std::int32_t> next = {static_cast<std::int32_t>(best)};
    result.decoded.push_back(next.front());
    logits = who.feed(next);
  }
  if (!counts) return;
  result.prefill.push_back(prefill);
  result.decode.push_back(seconds_now() - start);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double relative_difference(std::vector<float> const& one, std::vector<float> const& other) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    double const gap = double{one[i]} - double{other[i]};
    difference += gap * gap;
    norm += double{other[i]} * double{other[i]};
  }
  return std::sqrt(difference / norm);
}

int run(int argc, char** argv) {
  CLI::App program("Tokens per second of llama.cpp and mambatile");
  std::string path;
  std::string folder;
  std::string io = "f32";
  int threads = 2;
  int prompt = 512;
  int generate = 64;
  int rounds = 5;
  std::vector<std::int32_t> ids;
  program.add_option("model", path, "GGUF file")->required()->check(CLI::ExistingFile);
  program.add_option("--checkpoint", folder, "The checkpoint it was made from")
      ->check(CLI::ExistingDirectory);
  program.add_option("--threads", threads, "Threads")->check(CLI::PositiveNumber);
  program.add_option("--prompt", prompt, "Tokens of the prompt")->check(CLI::PositiveNumber);
  program.add_option("--generate", generate, "Tokens to decode")->check(CLI::PositiveNumber);
  program.add_option("--rounds", rounds, "Timed rounds after one that warms up")
      ->check(CLI::PositiveNumber);
  program.add_option("--io", io, "Type of mambatile's activations")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  program.add_option("--ids", ids, "The prompt itself, instead of made-up ids")->delimiter(',');
  CLI11_PARSE(program, argc, argv);
  if (!ids.empty()) prompt = static_cast<int>(ids.size());

  std::vector<std::unique_ptr<contestant>> contestants;
  auto llama = std::make_unique<llama_contestant>(path, threads, prompt, generate);
  // The same ids that a Python or shell script can make up: a small linear generator.
  std::uint64_t state = 1;
  while (static_cast<int>(ids.size()) < prompt) {
    state = (state * 1103515245U + 12345U) % 2147483648U;
    ids.push_back(
        static_cast<std::int32_t>(state % static_cast<std::uint64_t>(llama->vocabulary())));
  }
  contestants.push_back(std::move(llama));
  if (!folder.empty()) {
    mambatile::model_options options;
    options.threads = threads;
    options.io = io == "bf16"  ? mambatile::dtype::bf16
                 : io == "f16" ? mambatile::dtype::f16
                               : mambatile::dtype::f32;
    contestants.push_back(std::make_unique<our_contestant>(folder, options));
  }

  std::vector<measurement> results(contestants.size());
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      run_round(*contestants[i], ids, generate, round > 0, results[i]);
    }
  }
  auto const rate = [](int tokens, double seconds) { return tokens / seconds; };
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    auto const& result = results[i];
    fmt::print(
        "{{\"name\": \"{}\", \"model\": \"{}\", \"threads\": {}, \"prompt\": {}, "
        "\"generate\": {}, \"prefill_tokens_per_second\": {:.1f}, "
        "\"prefill_tokens_per_second_median\": {:.1f}, \"decode_tokens_per_second\": {:.2f}, "
        "\"decode_tokens_per_second_median\": {:.2f}, \"decoded\": [{}]}}\n",
        contestants[i]->name(), path, threads, prompt, generate,
        rate(prompt, std::ranges::min(result.prefill)), rate(prompt, median(result.prefill)),
        rate(generate, std::ranges::min(result.decode)), rate(generate, median(result.decode)),
        fmt::join(result.decoded, ", "));
  }
  if (results.size() == 2) {
    fmt::print("{{\"prompt_logits_relative_difference\": {:.2e}, \"same_ids_decoded\": {}}}\n",
               relative_difference(results[1].prompt_logits, results[0].prompt_logits),
               results[0].decoded == results[1].decoded);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (std::exception const& error) {
  std::fputs(fmt::format("mambatile_bench_llama: {}\n", error.what()).c_str(), stderr);
  return 3;
}
