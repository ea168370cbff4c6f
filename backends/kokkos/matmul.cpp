#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <mambatile/matmul.hpp>

#include "convert.hpp"
#include "matmul_kernels.hpp"
#include "operators.hpp"
#include "runtime.hpp"
#include "scan_pack.hpp"
#include "scan_tiles.hpp"
#include "tuning_matmul.hpp"
#include "workspace_layout.hpp"

namespace mambatile {
inline namespace v0 {
namespace kokkos {
namespace {

// Parameter `index` of up to a pack of outputs, any type and stride.
[[nodiscard]] pack parameters(const_tensor_view const& view, std::int64_t index,
                              std::int64_t count) noexcept {
  alignas(sizeof(pack)) float lanes[pack_width] = {};
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, pack_width); ++i) {
    lanes[i] = element_at(view.data, view.type, (index + i) * view.stride(0));
  }
  return load(lanes);
}

class matmul_plan_implementation final : public detail::plan_implementation<matmul_problem> {
 public:
  explicit matmul_plan_implementation(matmul_problem const& problem)
      : problem_(problem),
        threads_(plan_threads(problem.threads)),
        share_bytes_(detail::round_to_alignment(
            static_cast<std::size_t>(std::max(dot_scratch(problem), tile_scratch(problem))) *
            sizeof(float))),
        description_(fmt::format("kokkos {} {}x{} tiles, dot products up to {} rows, {} threads",
                                 pack_abi_name, product_rows, panel_width, matmul_tuned.dot_rows,
                                 threads_)) {}

  void execute(matmul_arguments const& arguments, workspace_view workspace,
               queue const& on) const override {
    auto const outputs = problem_.out_features;
    if (arguments.x.extent(0) == 0 || outputs == 0) return;
    auto const panels = (outputs + panel_width - 1) / panel_width;
    auto const wanted = on.threads == 0 ? threads_ : on.threads;
    auto const shares = static_cast<int>(std::min<std::int64_t>(wanted, panels));
    bool const dots = arguments.x.extent(0) <= matmul_tuned.dot_rows;
    for_each_share(shares, [&](int share) noexcept {
      matmul_part const part{problem_, arguments,
                             std::min(outputs, panels * share / shares * panel_width),
                             std::min(outputs, panels * (share + 1) / shares * panel_width)};
      auto* const scratch = static_cast<float*>(
          detail::piece_at(workspace, static_cast<std::size_t>(share) * share_bytes_));
      if (dots) {
        run_dots(part, scratch);
      } else {
        run_tiles(part, scratch);
      }
    });
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return static_cast<std::size_t>(threads_) * share_bytes_;
  }
  [[nodiscard]] std::string_view description() const noexcept override { return description_; }
  [[nodiscard]] int threads() const noexcept override { return threads_; }

 private:
  matmul_problem problem_;
  int threads_;
  std::size_t share_bytes_;
  std::string description_;
};

class take_rows_plan_implementation final : public detail::plan_implementation<take_rows_problem> {
 public:
  explicit take_rows_plan_implementation(take_rows_problem const& problem)
      : problem_(problem), threads_(plan_threads(problem.threads)) {}

  void execute(take_rows_arguments const& arguments, workspace_view /*workspace*/,
               queue const& on) const override {
    auto const rows = arguments.index.extent(0);
    auto const wanted = on.threads == 0 ? threads_ : on.threads;
    auto const shares = static_cast<int>(std::min<std::int64_t>(wanted, rows));
    auto const* const index = static_cast<std::int32_t const*>(arguments.index.data);
    visit_type(problem_.source, [&]<class Source>(Source const*) {
      visit_type(problem_.out, [&]<class Out>(Out const*) {
        for_each_share(shares, [&](int share) noexcept {
          for (auto row = rows * share / shares; row < rows * (share + 1) / shares; ++row) {
            auto const* const from =
                static_cast<Source const*>(arguments.source.data) +
                static_cast<std::int64_t>(index[row * arguments.index.stride(0)]) *
                    arguments.source.stride(0);
            auto* const to = static_cast<Out*>(arguments.out.data) + row * arguments.out.stride(0);
            for (std::int64_t i = 0; i < problem_.row_length; i += pack_width) {
              auto const left = problem_.row_length - i;
              store_up_to(to + i, load_up_to(from + i, left), left);
            }
          }
        });
      });
    });
  }

  [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::string_view description() const noexcept override {
    return "kokkos row copies";
  }
  [[nodiscard]] int threads() const noexcept override { return threads_; }

 private:
  take_rows_problem problem_;
  int threads_;
};

}  // namespace

void finish_outputs(matmul_part const& part, std::int64_t first_row, std::int64_t rows,
                    std::int64_t first_output, std::int64_t count, float const* sums,
                    std::int64_t sums_pitch) noexcept {
  auto const& problem = part.problem;
  auto const& out = part.arguments.out;
  pack const input_scale(problem.input_scale);
  visit_type(problem.out, [&]<class Element>(Element const*) {
    for (std::int64_t i = 0; i < count; i += pack_width) {
      auto const left = count - i;
      auto const bias =
          problem.has_bias ? parameters(part.arguments.bias, first_output + i, left) : pack(0.0F);
      auto const scale = problem.has_column_scale
                             ? parameters(part.arguments.column_scale, first_output + i, left)
                             : pack(1.0F);
      auto* to = static_cast<Element*>(out.data) + first_row * out.stride(0) + first_output + i;
      for (std::int64_t row = 0; row < rows; ++row, to += out.stride(0)) {
        pack value = (input_scale * load(sums + row * sums_pitch + i) + bias) * scale;
        if (problem.accumulate) value = value + load_up_to<Element>(to, left);
        store_up_to(to, value, left);
      }
    }
  });
}

support matmul_support(matmul_problem const& /*problem*/) { return {true, {}}; }

std::shared_ptr<detail::plan_implementation<matmul_problem> const> make_matmul_plan(
    matmul_problem const& problem) {
  return std::make_shared<matmul_plan_implementation const>(problem);
}

support take_rows_support(take_rows_problem const& /*problem*/) { return {true, {}}; }

std::shared_ptr<detail::plan_implementation<take_rows_problem> const> make_take_rows_plan(
    take_rows_problem const& problem) {
  return std::make_shared<take_rows_plan_implementation const>(problem);
}

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
