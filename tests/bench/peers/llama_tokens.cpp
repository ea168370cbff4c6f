// Tokens per second of llama.cpp on a GGUF file: a prompt of given length in one batch, then greedy
// decoding. Prints one JSON line, with the ids that it decoded.
//
//   mambatile_bench_llama MODEL.gguf [--threads N] [--prompt N] [--generate N] [--rounds N]
//                         [--ids 1,2,3]

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <llama.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

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

class runner {
 public:
  runner(std::string const& path, int threads, int prompt, int generate) {
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

  [[nodiscard]] int vocabulary() const {
    return llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
  }
  void forget() { llama_memory_clear(llama_get_memory(context_.get()), true); }
  /// Seconds for these tokens; logits of the last one are there afterwards.
  double feed(std::vector<llama_token>& ids) {
    double const start = seconds_now();
    auto const batch = llama_batch_get_one(ids.data(), static_cast<std::int32_t>(ids.size()));
    if (llama_decode(context_.get(), batch) != 0) throw std::runtime_error("llama_decode failed");
    llama_synchronize(context_.get());
    return seconds_now() - start;
  }
  [[nodiscard]] llama_token most_likely() {
    float const* const logits = llama_get_logits_ith(context_.get(), -1);
    return static_cast<llama_token>(std::max_element(logits, logits + vocabulary()) - logits);
  }

 private:
  std::unique_ptr<llama_model, free_model> model_;
  std::unique_ptr<llama_context, free_context> context_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  CLI::App program("Tokens per second of llama.cpp");
  std::string path;
  int threads = 2;
  int prompt = 512;
  int generate = 64;
  int rounds = 5;
  std::vector<llama_token> ids;
  program.add_option("model", path, "GGUF file")->required()->check(CLI::ExistingFile);
  program.add_option("--threads", threads, "Threads")->check(CLI::PositiveNumber);
  program.add_option("--prompt", prompt, "Tokens of the prompt")->check(CLI::PositiveNumber);
  program.add_option("--generate", generate, "Tokens to decode")->check(CLI::PositiveNumber);
  program.add_option("--rounds", rounds, "Timed rounds after one that warms up")
      ->check(CLI::PositiveNumber);
  program.add_option("--ids", ids, "The prompt itself, instead of made-up ids")->delimiter(',');
  CLI11_PARSE(program, argc, argv);
  if (!ids.empty()) prompt = static_cast<int>(ids.size());

  runner model(path, threads, prompt, generate);
  // The same ids that a Python or shell script can make up: a small linear generator.
  std::uint64_t state = 1;
  while (static_cast<int>(ids.size()) < prompt) {
    state = (state * 1103515245U + 12345U) % 2147483648U;
    ids.push_back(static_cast<llama_token>(state % static_cast<std::uint64_t>(model.vocabulary())));
  }

  std::vector<double> prefill_seconds;
  std::vector<double> decode_seconds;
  std::vector<llama_token> decoded;
  for (int round = 0; round <= rounds; ++round) {
    model.forget();
    decoded.clear();
    double const prefill = model.feed(ids);
    double decode = 0;
    for (int i = 0; i < generate; ++i) {
      double const start = seconds_now();
      std::vector<llama_token> next = {model.most_likely()};
      decoded.push_back(next.front());
      model.feed(next);
      decode += seconds_now() - start;
    }
    if (round == 0) continue;
    prefill_seconds.push_back(prefill);
    decode_seconds.push_back(decode);
  }
  auto const rate = [](int tokens, double seconds) { return tokens / seconds; };
  fmt::print(
      "{{\"peer\": \"llama.cpp\", \"model\": \"{}\", \"threads\": {}, \"prompt\": {}, "
      "\"generate\": {}, \"prefill_tokens_per_second\": {:.1f}, "
      "\"prefill_tokens_per_second_median\": {:.1f}, \"decode_tokens_per_second\": {:.2f}, "
      "\"decode_tokens_per_second_median\": {:.2f}, \"decoded\": [{}]}}\n",
      path, threads, prompt, generate, rate(prompt, std::ranges::min(prefill_seconds)),
      rate(prompt, median(prefill_seconds)), rate(generate, std::ranges::min(decode_seconds)),
      rate(generate, median(decode_seconds)), fmt::join(decoded, ", "));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (std::exception const& error) {
  std::fputs(fmt::format("mambatile_bench_llama: {}\n", error.what()).c_str(), stderr);
  return 3;
}
