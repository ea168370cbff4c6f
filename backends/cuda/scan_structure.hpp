#pragma once

#include <cstdint>
#include <string>

#include <mambatile/plan.hpp>
#include <mambatile/scan.hpp>

#include "device_properties.hpp"
#include "scan_call.hpp"

// How chunk_scan is done: a pure function of problem and device.

namespace mambatile {
inline namespace v0 {
namespace gpu {

/// Which tile kernels run.
enum class scan_kernels : std::uint8_t {
  tuned_bf16,    ///< bf16, fast and exact decays
  general_bf16,  ///< everything else by type: any option
  general_f16,
  general_tf32,
  general_f32,
};

struct scan_structure {
  scan_kernels kernels = scan_kernels::general_f32;
  int columns = 64;               ///< of a slab of dstate
  int slabs = 1;                  ///< launches of the forward pass
  int segment_chunks = 1;         ///< chunks that one block walks
  int splits = 1;                 ///< blocks per segment in the search for its end state
  bool pass_states = false;       ///< a kernel of its own turns end contributions into states
  bool keep_last = false;         ///< last segments' end states are needed too
  bool several_segments = false;  ///< some sequence may have more than one

  [[nodiscard]] bool general() const noexcept { return kernels != scan_kernels::tuned_bf16; }
};

/// Whether the backend can do it at all.
[[nodiscard]] support supports_scan(scan_problem const& problem);
[[nodiscard]] scan_structure choose_structure(scan_problem const& problem,
                                              device_properties const& device);
/// Sizes of a call: `batch` rows of `seqlen` tokens, or `sequences` packed in one row.
[[nodiscard]] scan_sizes sizes_of(scan_problem const& problem, scan_structure const& structure,
                                  std::int64_t batch, std::int64_t seqlen, std::int64_t sequences);
[[nodiscard]] std::string describe(scan_structure const& structure);

}  // namespace gpu
}  // namespace v0
}  // namespace mambatile
