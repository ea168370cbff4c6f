#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mambatile/safetensors.hpp>
#include <mambatile/scan.hpp>

#include "evaluation/host_tensor.hpp"

// A scan described by a safetensors file: inputs, options and, where the file has them, the
// expected outputs.
//
// Tensors: x, dt, A, B, C and, optional, D, z, dt_bias, initial_states, cu_seqlens, seq_idx,
// state_source, state_target; expected: y, final_states. Metadata: dt_softplus ("true", "false"),
// dt_limit ("[lo, hi]", hi may be "inf"), chunk_size (a hint), regime (which tolerances apply).

namespace mambatile::evaluation {

class scan_case {
 public:
  /// Reads the file. x, z, B and C are converted to `io` where it is given, else they must be
  /// stored in one type. D and dt_bias are f32 unless stored in the io type; dt and the states keep
  /// their type where the library has it, and are f32 else.
  /// @throws file_error.
  explicit scan_case(std::filesystem::path const& path, std::optional<dtype> io = std::nullopt);

  /// All inputs, on the host; outputs are absent.
  [[nodiscard]] scan_arguments const& inputs() const noexcept { return inputs_; }
  [[nodiscard]] scan_options const& options() const noexcept { return options_; }
  [[nodiscard]] dtype io() const noexcept { return inputs_.x.type; }
  [[nodiscard]] dtype state_type() const noexcept {
    return inputs_.initial_states ? inputs_.initial_states.type : dtype::f32;
  }
  /// Shape of final_states.
  [[nodiscard]] std::vector<std::int64_t> final_states_shape() const;
  /// Of each row of final_states, whether the scan writes it: in a pool, the slots in state_target.
  [[nodiscard]] std::vector<bool> written_states() const;
  /// Tokens that belong to a sequence; those of padding do not.
  [[nodiscard]] std::int64_t tokens() const noexcept;
  /// Tokens of a row that the scan writes: all but what lies beyond the last of cu_seqlens.
  [[nodiscard]] std::int64_t written_seqlen() const noexcept;

  /// (b, l, h, p) f32; absent where the file has none.
  [[nodiscard]] const_tensor_view const& expected_out() const noexcept { return expected_out_; }
  [[nodiscard]] const_tensor_view const& expected_final_states() const noexcept {
    return expected_final_states_;
  }

  [[nodiscard]] std::string const& regime() const noexcept { return regime_; }
  /// Names of tensors in the file that a scan has no use for.
  [[nodiscard]] std::vector<std::string> const& unused_tensors() const noexcept { return unused_; }

 private:
  [[nodiscard]] const_tensor_view load(std::string const& name, std::optional<dtype> as);
  [[nodiscard]] const_tensor_view load_optional(std::string const& name, std::optional<dtype> as);
  [[nodiscard]] const_tensor_view load_parameter(std::string const& name);
  [[nodiscard]] dtype stored_io() const;
  void read_metadata();
  void check_states_size() const;

  safetensors_file file_;
  std::vector<host_tensor> converted_;
  scan_arguments inputs_;
  scan_options options_;
  const_tensor_view expected_out_;
  const_tensor_view expected_final_states_;
  std::string regime_ = "normal";
  std::vector<std::string> unused_;
};

}  // namespace mambatile::evaluation
