#pragma once

#include <array>
#include <memory>
#include <string_view>

#include <mambatile/scan.hpp>

#include "evaluation/scan_inputs.hpp"

// The scan of one shape in the forms that calls take: plain (states in and out), and one option
// more each.

namespace mambatile::program {

inline constexpr std::array<std::string_view, 8> scan_variants = {
    "plain", "zero-state", "z", "seq_idx", "cu_seqlens", "slots", "snapshots", "unaligned"};

/// Everything one variant's call needs, on the host.
class scan_workload {
 public:
  scan_workload(std::string_view variant, evaluation::scan_inputs_request const& request);

  /// All tensors, outputs included.
  [[nodiscard]] scan_arguments const& arguments() const noexcept { return arguments_; }
  [[nodiscard]] scan_options const& options() const noexcept { return inputs_.options; }
  /// Bytes of all tensors.
  [[nodiscard]] double tensor_bytes() const noexcept;

 private:
  [[nodiscard]] tensor_view allocate(dtype type, std::initializer_list<std::int64_t> shape);
  [[nodiscard]] tensor_view allocate_states(std::int64_t rows);
  void add_packing(std::string_view variant);
  void add_slots();
  void add_snapshots();
  void shift_all();

  evaluation::scan_inputs_request request_;
  evaluation::scan_inputs inputs_;
  std::vector<evaluation::host_tensor> memory_;
  scan_arguments arguments_;
};

}  // namespace mambatile::program
