#include "benchmark/peer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <ggml-cpu.h>
#include <ggml.h>

#include <fmt/format.h>

#include "evaluation/host_tensor.hpp"

namespace mambatile::benchmark {
namespace {

using evaluation::host_tensor;

// A graph whose tensors' memory is ours: ggml allocates only its descriptions.
class graph {
 public:
  explicit graph(std::size_t nodes, int threads)
      : context_(ggml_init({(2 * nodes + 64) * (ggml_tensor_overhead() + 64) +
                                ggml_graph_overhead_custom(2 * nodes + 64, false),
                            nullptr, true})),
        graph_(ggml_new_graph_custom(context_, 2 * nodes + 64, false)),
        threads_(threads) {}
  graph(graph const&) = delete;
  graph& operator=(graph const&) = delete;
  ~graph() {
    if (pool_ != nullptr) ggml_threadpool_free(pool_);
    ggml_free(context_);
  }

  [[nodiscard]] ggml_context* context() const noexcept { return context_; }

  /// ggml lists extents from the innermost axis outwards.
  [[nodiscard]] ggml_tensor* tensor(void const* data, ggml_type type,
                                    std::initializer_list<std::int64_t> extents) {
    auto* made = ggml_new_tensor(context_, type, static_cast<int>(extents.size()), extents.begin());
    made->data = const_cast<void*>(data);  // operands are not written
    return made;
  }
  void add(ggml_tensor* result) { ggml_build_forward_expand(graph_, result); }

  /// After the last add.
  void plan() {
    auto parameters = ggml_threadpool_params_default(threads_);
    pool_ = ggml_threadpool_new(&parameters);
    plan_ = ggml_graph_plan(graph_, threads_, pool_);
    work_.resize(plan_.work_size);
    plan_.work_data = work_.data();
  }
  void compute() {
    if (ggml_graph_compute(graph_, &plan_) != GGML_STATUS_SUCCESS) {
      throw std::runtime_error("ggml_graph_compute failed");
    }
  }

 private:
  ggml_context* context_;
  ggml_cgraph* graph_;
  int threads_;
  ggml_threadpool* pool_ = nullptr;
  ggml_cplan plan_ = {};
  std::vector<std::uint8_t> work_;
};

/// dt + dt_bias: ggml's scan takes the sum.
host_tensor biased_dt(scan_arguments const& arguments) {
  auto const& dt = arguments.dt;
  host_tensor result(dtype::f32, {dt.extent(0), dt.extent(1), dt.extent(2)});
  auto const values = result.elements<float>();
  auto const* const raw = static_cast<float const*>(dt.data);
  auto const* const bias = static_cast<float const*>(arguments.dt_bias.data);
  auto const heads = static_cast<std::size_t>(dt.extent(2));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = raw[i] + (bias != nullptr ? bias[i % heads] : 0.0F);
  }
  return result;
}

class ggml_scan final : public peer_run {
 public:
  explicit ggml_scan(peer_scan_request const& request)
      : arguments_(request.arguments),
        dt_(biased_dt(request.arguments)),
        graph_(static_cast<std::size_t>(request.layers * request.repeats) * 4, request.threads) {
    auto const& x = arguments_.x;
    auto const b = x.extent(0);
    auto const l = x.extent(1);
    auto const h = x.extent(2);
    auto const p = x.extent(3);
    auto const g = arguments_.B.extent(2);
    auto const n = arguments_.B.extent(3);
    for (auto const& view : {x, arguments_.dt, arguments_.B, arguments_.C}) {
      if (view.type != dtype::f32) throw std::invalid_argument("ggml's scan takes f32 only");
    }

    state_size_ = b * h * p * n;
    result_size_ = x.size() + state_size_;
    states_ = host_tensor(dtype::f32, {request.layers, b, h, p, n});
    load_states(request.layers);
    // One output where its states are copied on at once, as a graph allocator would reuse it.
    auto const outputs = request.write_back ? 1 : request.layers;
    results_ = host_tensor(dtype::f32, {outputs, result_size_});
    std::ranges::fill(results_.elements<float>(), 0.0F);
    rows_.resize(static_cast<std::size_t>(b));
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<std::int32_t>(i);
    final_in_results_ = !request.write_back;

    auto* const tensor_x = graph_.tensor(x.data, GGML_TYPE_F32, {p, h, l, b});
    auto* const tensor_dt = graph_.tensor(dt_.view().data, GGML_TYPE_F32, {h, l, b});
    auto* const tensor_A = graph_.tensor(arguments_.A.data, GGML_TYPE_F32, {1, h});
    auto* const tensor_B = graph_.tensor(arguments_.B.data, GGML_TYPE_F32, {n, g, l, b});
    auto* const tensor_C = graph_.tensor(arguments_.C.data, GGML_TYPE_F32, {n, g, l, b});
    auto* const tensor_rows = graph_.tensor(rows_.data(), GGML_TYPE_I32, {b});
    for (std::int64_t layer = 0; layer < request.layers; ++layer) {
      auto* const state_data = states_.elements<float>().data() + layer * state_size_;
      auto* const result_data =
          results_.elements<float>().data() + (layer % outputs) * result_size_;
      for (std::int64_t repeat = 0; repeat < request.repeats; ++repeat) {
        auto* const state = graph_.tensor(state_data, GGML_TYPE_F32, {n, p, h, b});
        auto* const result = ggml_ssm_scan(graph_.context(), state, tensor_x, tensor_dt, tensor_A,
                                           tensor_B, tensor_C, tensor_rows, 1);
        result->data = result_data;
        graph_.add(result);
        if (!request.write_back) continue;
        auto* const fresh = graph_.tensor(result_data + x.size(), GGML_TYPE_F32, {state_size_});
        auto* const copied = ggml_cpy(graph_.context(), fresh,
                                      graph_.tensor(state_data, GGML_TYPE_F32, {state_size_}));
        copied->data = state_data;
        graph_.add(copied);
      }
    }
    graph_.plan();
  }

  void run() override { graph_.compute(); }

  [[nodiscard]] const_tensor_view out() override {
    auto const& x = arguments_.x;
    out_ = host_tensor(dtype::f32, {x.extent(0), x.extent(1), x.extent(2), x.extent(3)});
    auto const values = out_.elements<float>();
    std::copy_n(results_.elements<float>().begin(), values.size(), values.begin());
    if (arguments_.D) {
      auto const* const data = static_cast<float const*>(x.data);
      auto const* const D = static_cast<float const*>(arguments_.D.data);
      auto const p = static_cast<std::size_t>(x.extent(3));
      auto const h = static_cast<std::size_t>(x.extent(2));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += D[i / p % h] * data[i];
    }
    return out_.view();
  }

  [[nodiscard]] const_tensor_view final_states() override {
    auto const& x = arguments_.x;
    auto const* const data = final_in_results_ ? results_.elements<float>().data() + x.size()
                                               : states_.elements<float>().data();
    return make_state_view(data, x.extent(0), x.extent(2), x.extent(3), arguments_.B.extent(3));
  }

 private:
  void load_states(std::int64_t layers) {
    auto const values = states_.elements<float>();
    auto const& given = arguments_.initial_states;
    if (!given) {
      std::ranges::fill(values, 0.0F);
      return;
    }
    auto* target = values.data();
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (std::int64_t row = 0; row < given.extent(0); ++row) {
        for (std::int64_t head = 0; head < given.extent(1); ++head) {
          for (std::int64_t p = 0; p < given.extent(2); ++p) {
            for (std::int64_t n = 0; n < given.extent(3); ++n) {
              *target++ = static_cast<float const*>(
                  given.data)[row * given.stride(0) + head * given.stride(1) + p * given.stride(2) +
                              n * given.stride(3)];
            }
          }
        }
      }
    }
  }

  scan_arguments arguments_;
  host_tensor dt_, states_, results_, out_;
  std::vector<std::int32_t> rows_;
  std::int64_t state_size_ = 0;
  std::int64_t result_size_ = 0;
  bool final_in_results_ = true;
  graph graph_;
};

// ggml_ssm_conv, ggml_add, ggml_silu. The operator wants its input with tokens innermost and the
// state in front of them.
class ggml_conv1d final : public peer_run {
 public:
  explicit ggml_conv1d(peer_conv1d_request const& request)
      : batch_(request.x.extent(0)),
        seqlen_(request.x.extent(1)),
        channels_(request.x.extent(2)),
        graph_(16, request.threads) {
    auto const width = request.weight.extent(1);
    auto const tokens = seqlen_ + width - 1;
    input_ = host_tensor(dtype::f32, {batch_, channels_, tokens});
    out_ = host_tensor(dtype::f32, {batch_, seqlen_, channels_});
    auto const at = [](const_tensor_view const& view, std::int64_t i, std::int64_t j,
                       std::int64_t k) {
      return static_cast<float const*>(
          view.data)[i * view.stride(0) + j * view.stride(1) + k * view.stride(2)];
    };
    float* target = input_.elements<float>().data();
    for (std::int64_t row = 0; row < batch_; ++row) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        for (std::int64_t k = 0; k < width - 1; ++k) {
          *target++ = request.initial_states ? at(request.initial_states, row, c, k) : 0.0F;
        }
        for (std::int64_t t = 0; t < seqlen_; ++t) *target++ = at(request.x, row, t, c);
      }
    }

    auto* const input =
        graph_.tensor(input_.view().data, GGML_TYPE_F32, {tokens, channels_, batch_});
    auto* const weight = graph_.tensor(request.weight.data, GGML_TYPE_F32, {width, channels_});
    auto* const bias = graph_.tensor(request.bias.data, GGML_TYPE_F32, {channels_});
    auto* const convolved = ggml_ssm_conv(graph_.context(), input, weight);
    // One buffer for the three, as a graph allocator would lay out a chain of operators.
    convolved->data = out_.view().data;
    auto* const biased = ggml_add(graph_.context(), convolved, bias);
    biased->data = out_.view().data;
    auto* const activated = ggml_silu(graph_.context(), biased);
    activated->data = out_.view().data;
    graph_.add(activated);
    graph_.plan();
  }

  void run() override { graph_.compute(); }
  [[nodiscard]] const_tensor_view out() override { return out_.view(); }

 private:
  std::int64_t batch_, seqlen_, channels_;
  host_tensor input_, out_;
  graph graph_;
};

class ggml final : public peer {
 public:
  ggml() { ggml_cpu_init(); }
  [[nodiscard]] std::string_view name() const noexcept override { return "ggml"; }
  [[nodiscard]] std::string description() const override {
    return fmt::format("ggml {} ({}), {}, {}", ggml_version(), ggml_commit(),
                       MAMBATILE_PEERS_PACKAGE, MAMBATILE_PEERS_COMPILED_WITH);
  }
  [[nodiscard]] std::unique_ptr<peer_run> scan(peer_scan_request const& request) const override {
    return std::make_unique<ggml_scan>(request);
  }
  [[nodiscard]] std::unique_ptr<peer_run> conv1d(
      peer_conv1d_request const& request) const override {
    return std::make_unique<ggml_conv1d>(request);
  }
};

}  // namespace

peer const* ggml_peer() noexcept {
  static ggml const instance;
  return &instance;
}

}  // namespace mambatile::benchmark
