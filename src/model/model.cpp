#include <mambatile/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <mambatile/errors.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/mixer.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/take_rows.hpp>

#include "model/device_weights.hpp"
#include "model/model_cache.hpp"
#include "model/passes.hpp"
#include "workspace_layout.hpp"

namespace mambatile {
inline namespace v0 {
namespace {

// Rows of logits computed at a time; bounds the buffers between the last layer and the caller.
constexpr std::int64_t most_head_rows = 256;

mixer_problem block_problem(model_config const& config, model_options const& options,
                            layer_weights const& weights) {
  mixer_problem block;
  block.max_tokens = options.max_tokens;
  block.max_sequences = options.max_sequences;
  block.hidden_size = config.hidden_size;
  block.nheads = config.nheads;
  block.headdim = config.headdim;
  block.ngroups = config.ngroups;
  block.dstate = config.dstate;
  block.conv_width = config.conv_width;
  block.hidden = config.residual_in_f32 ? dtype::f32 : options.io;
  block.io = options.io;
  block.out = block.hidden;
  block.projection = weights.input_projection.type;
  block.state = options.state;
  block.has_projection_bias = config.projection_bias;
  block.has_conv_bias = config.conv_bias;
  block.D = config.D_per_channel ? skip::per_channel : skip::per_head;
  block.gated_norm = config.gated_norm;
  block.norm_before_gate = config.norm_before_gate;
  block.norm_group_size = config.norm_group_size;
  block.norm_eps = config.norm_eps;
  block.dt_limit = config.dt_limit;
  block.accumulate = true;
  block.threads = options.threads;
  return block;
}

gated_rms_norm_problem norm_problem(model_config const& config, model_options const& options,
                                    dtype io, std::int64_t rows) {
  gated_rms_norm_problem norm;
  norm.max_rows = rows;
  norm.channels = config.hidden_size;
  norm.io = io;
  norm.eps = config.norm_eps;
  norm.threads = options.threads;
  return norm;
}

model_options checked(model_options const& options) {
  auto const refuse = [](char const* field, std::int64_t value) {
    throw invalid_argument(fmt::format("model: {} = {}, but it must be at least 1", field, value));
  };
  if (options.max_tokens < 1) refuse("max_tokens", options.max_tokens);
  if (options.max_sequences < 1) refuse("max_sequences", options.max_sequences);
  return options;
}

}  // namespace

struct model::storage {
  checkpoint source;
  backend const* served_by;
  device where;
  model_options options;
  model_config const& config;
  dtype residual_type;
  detail::device_weights weights;
  std::int64_t head_rows;

  // Blocks differ where a checkpoint mixes types; equal ones share a mixer.
  std::vector<mixer> mixers;
  std::vector<std::size_t> mixer_of_layer;
  take_rows_plan embed;
  gated_rms_norm_plan input_norm;
  take_rows_plan take_last;
  gated_rms_norm_plan final_norm;
  matmul_plan head;

  detail::workspace_layout layout;
  std::size_t residual_at = 0;  // (max_tokens, hidden_size)
  std::size_t normed_at = 0;    // (max_tokens, hidden_size)
  std::size_t ids_at = 0;       // (max_tokens), i32
  std::size_t cu_seqlens_at = 0;
  std::size_t source_at = 0;
  std::size_t target_at = 0;
  std::size_t rows_at = 0;         // (head_rows), i32
  std::size_t last_at = 0;         // (head_rows, hidden_size), f32
  std::size_t last_normed_at = 0;  // (head_rows, hidden_size), f32
  std::size_t logits_at = 0;       // devices: (head_rows, vocab_size), f32
  std::size_t operators_at = 0;
  std::size_t operators_bytes = 0;
  buffer memory;

  storage(checkpoint from, backend const& by, device on, model_options const& asked)
      : source(std::move(from)),
        served_by(&by),
        where(on),
        options(checked(asked)),
        config(source.config()),
        residual_type(config.residual_in_f32 ? dtype::f32 : options.io),
        weights(source.weights(), by, on),
        head_rows(std::min(options.max_tokens, most_head_rows)),
        embed(by.plan(take_rows_problem{.max_rows = options.max_tokens,
                                        .row_length = config.hidden_size,
                                        .source = source.weights().embedding.type,
                                        .out = residual_type,
                                        .threads = options.threads},
                      on)),
        input_norm(by.plan(norm_problem(config, options, residual_type, options.max_tokens), on)),
        take_last(by.plan(take_rows_problem{.max_rows = head_rows,
                                            .row_length = config.hidden_size,
                                            .source = residual_type,
                                            .out = dtype::f32,
                                            .threads = options.threads},
                          on)),
        final_norm(by.plan(norm_problem(config, options, dtype::f32, head_rows), on)),
        head(by.plan(matmul_problem{.max_rows = head_rows,
                                    .in_features = config.hidden_size,
                                    .out_features = config.vocab_size,
                                    .weight = source.weights().head.type,
                                    .threads = options.threads},
                     on)) {
    for (auto const& layer : source.weights().layers) {
      auto const problem = block_problem(config, options, layer);
      auto const same = std::find_if(mixers.begin(), mixers.end(), [&](mixer const& planned) {
        return planned.problem() == problem;
      });
      mixer_of_layer.push_back(static_cast<std::size_t>(same - mixers.begin()));
      if (same == mixers.end()) mixers.emplace_back(by, on, problem);
    }
    book();
    memory = by.allocate(on, layout.bytes());
  }

  void book() {
    auto const tokens = static_cast<std::size_t>(options.max_tokens);
    auto const sequences = static_cast<std::size_t>(options.max_sequences);
    auto const hidden = static_cast<std::size_t>(config.hidden_size);
    auto const rows = static_cast<std::size_t>(head_rows);
    residual_at = layout.book(tokens * hidden * size_of(residual_type));
    normed_at = layout.book(tokens * hidden * size_of(residual_type));
    ids_at = layout.book(tokens * sizeof(std::int32_t));
    cu_seqlens_at = layout.book((sequences + 1) * sizeof(std::int32_t));
    source_at = layout.book(sequences * sizeof(std::int32_t));
    target_at = layout.book(sequences * sizeof(std::int32_t));
    rows_at = layout.book(rows * sizeof(std::int32_t));
    last_at = layout.book(rows * hidden * sizeof(float));
    last_normed_at = layout.book(rows * hidden * sizeof(float));
    if (where.kind != device_kind::host) {
      logits_at = layout.book(rows * static_cast<std::size_t>(config.vocab_size) * sizeof(float));
    }
    operators_bytes = std::max({embed.workspace_bytes(), input_norm.workspace_bytes(),
                                take_last.workspace_bytes(), final_norm.workspace_bytes(),
                                head.workspace_bytes()});
    for (auto const& planned : mixers) {
      operators_bytes = std::max(operators_bytes, planned.workspace_bytes());
    }
    operators_at = layout.book(operators_bytes);
  }

  [[nodiscard]] queue on() const { return queue{.where = where}; }
  [[nodiscard]] workspace_view scratch() const {
    return {detail::piece_at(memory.workspace(), operators_at), operators_bytes, where};
  }
  [[nodiscard]] tensor_view matrix(std::size_t at, dtype type, std::int64_t rows,
                                   std::int64_t columns) const {
    auto view = make_view(static_cast<float*>(nullptr), {rows, columns}, where);
    view.data = detail::piece_at(memory.workspace(), at);
    view.type = type;
    return view;
  }
  /// Copies indices to their place in the workspace.
  [[nodiscard]] tensor_view indices(std::size_t at, std::span<std::int32_t const> values) const {
    auto* const place = static_cast<std::int32_t*>(detail::piece_at(memory.workspace(), at));
    served_by->copy_to_device(place, values.data(), values.size_bytes(), on());
    return make_view(place, {static_cast<std::int64_t>(values.size())}, where);
  }

  void run_layers(detail::token_pass const& pass, model_cache::storage const& cache) const;
  void run_head(std::span<std::int32_t const> rows, std::int64_t tokens, float* logits) const;
};

void model::storage::run_layers(detail::token_pass const& pass,
                                model_cache::storage const& cache) const {
  auto const tokens = static_cast<std::int64_t>(pass.ids.size());
  auto const residual = matrix(residual_at, residual_type, tokens, config.hidden_size);
  auto const normed = matrix(normed_at, residual_type, tokens, config.hidden_size);
  auto const ids = indices(ids_at, pass.ids);
  auto const sources = indices(source_at, pass.sources);
  auto const targets = indices(target_at, pass.targets);
  auto const cu_seqlens =
      pass.is_decode() ? tensor_view{} : indices(cu_seqlens_at, pass.cu_seqlens);

  embed.execute({.source = weights.embedding(), .index = ids, .out = residual}, scratch(), on());
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    auto const at = static_cast<std::size_t>(i);
    input_norm.execute({.x = residual, .weight = weights.input_norm(at), .out = normed}, scratch(),
                       on());
    mixers[mixer_of_layer[at]].execute(weights.layer(at),
                                       {.hidden = normed,
                                        .cu_seqlens = cu_seqlens,
                                        .state_source = sources,
                                        .state_target = targets,
                                        .conv_states = cache.conv_states(i),
                                        .ssm_states = cache.ssm_states(i),
                                        .out = residual},
                                       scratch(), on());
  }
}

// Logits of rows of the residual stream, which holds `tokens` rows.
void model::storage::run_head(std::span<std::int32_t const> rows, std::int64_t tokens,
                              float* logits) const {
  auto const residual = matrix(residual_at, residual_type, tokens, config.hidden_size);
  auto const vocab = config.vocab_size;
  while (!rows.empty()) {
    auto const part = rows.first(std::min(rows.size(), static_cast<std::size_t>(head_rows)));
    auto const count = static_cast<std::int64_t>(part.size());
    auto const last = matrix(last_at, dtype::f32, count, config.hidden_size);
    auto const normed = matrix(last_normed_at, dtype::f32, count, config.hidden_size);
    bool const on_host = where.kind == device_kind::host;
    auto const out =
        on_host ? make_view(logits, {count, vocab}) : matrix(logits_at, dtype::f32, count, vocab);
    take_last.execute({.source = residual, .index = indices(rows_at, part), .out = last}, scratch(),
                      on());
    final_norm.execute({.x = last, .weight = weights.final_norm(), .out = normed}, scratch(), on());
    head.execute({.x = normed, .weight = weights.head(vocab), .out = out}, scratch(), on());
    if (!on_host) {
      served_by->copy_to_host(logits, out.data,
                              static_cast<std::size_t>(count * vocab) * sizeof(float), on());
      served_by->synchronize(on());
    }
    logits += count * vocab;
    rows = rows.subspan(part.size());
  }
}

model::model(checkpoint from, backend const& served_by, model_options const& options)
    : model(std::move(from), served_by, device{served_by.kind(), 0}, options) {}

model::model(checkpoint from, backend const& served_by, device where, model_options const& options)
    : storage_(std::make_unique<storage>(std::move(from), served_by, where, options)) {}

model::model(model&&) noexcept = default;
model& model::operator=(model&&) noexcept = default;
model::~model() = default;

model_config const& model::config() const noexcept { return storage_->config; }
model_options const& model::options() const noexcept { return storage_->options; }
backend const& model::served_by() const noexcept { return *storage_->served_by; }
device model::where() const noexcept { return storage_->where; }
std::size_t model::workspace_bytes() const noexcept { return storage_->memory.bytes(); }

std::size_t model::bytes_per_sequence() const noexcept {
  auto const& config = storage_->config;
  auto const conv = static_cast<std::size_t>(config.conv_channels() * (config.conv_width - 1)) *
                    size_of(storage_->options.io);
  auto const ssm = static_cast<std::size_t>(config.inner_size() * config.dstate) *
                   size_of(storage_->options.state);
  return static_cast<std::size_t>(config.num_layers) * (conv + ssm);
}

std::string model::description() const {
  std::string text;
  for (auto const& planned : storage_->mixers) text += planned.description() + "\n";
  return text +
         fmt::format("head {}: {}", matmul_problem::operator_name, storage_->head.description());
}

std::int64_t model::logits_rows(std::span<sequence_tokens const> batch, logits_of wanted) noexcept {
  std::int64_t rows = 0;
  for (auto const& sequence : batch) {
    auto const tokens = static_cast<std::int64_t>(sequence.ids.size());
    rows += wanted == logits_of::all_tokens ? tokens : std::min<std::int64_t>(tokens, 1);
  }
  return rows;
}

void model::forward(model_cache& cache, std::span<sequence_tokens const> batch, logits_of wanted,
                    std::span<float> logits) {
  auto& states = *cache.storage_;
  auto const& own = *storage_;
  if (states.served_by != own.served_by || states.where != own.where ||
      states.config != own.config || states.io != own.options.io ||
      states.state != own.options.state) {
    throw invalid_argument("model: the cache was made for another model, backend or types");
  }
  if (wanted > logits_of::all_tokens) {
    throw invalid_argument(
        fmt::format("model: wanted = {}, but it must be one of last_tokens, all_tokens",
                    static_cast<int>(wanted)));
  }
  detail::check_batch(batch, states.slots, own.config.vocab_size);
  auto const rows = logits_rows(batch, wanted);
  auto const needed = static_cast<std::size_t>(rows * own.config.vocab_size);
  if (logits.size() != needed) {
    throw invalid_argument(fmt::format("model: logits has {} elements; {} rows of {} are {}",
                                       logits.size(), rows, own.config.vocab_size, needed));
  }
  detail::pass_maker passes(batch, own.options.max_tokens, own.options.max_sequences, wanted);
  float* next = logits.data();
  while (auto const* pass = passes.next(states.tokens_seen)) {
    own.run_layers(*pass, states);
    own.run_head(pass->wanted_rows, static_cast<std::int64_t>(pass->ids.size()), next);
    next += static_cast<std::int64_t>(pass->wanted_rows.size()) * own.config.vocab_size;
    for (std::size_t i = 0; i < pass->targets.size(); ++i) {
      states.tokens_seen[static_cast<std::size_t>(pass->targets[i])] +=
          pass->cu_seqlens[i + 1] - pass->cu_seqlens[i];
    }
  }
}

}  // namespace v0
}  // namespace mambatile
