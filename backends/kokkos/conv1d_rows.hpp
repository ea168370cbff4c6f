#pragma once

#include <cstdint>

#include "conv1d_call.hpp"

// The work on one row of a call, for a range of its channels.

namespace mambatile {
inline namespace v0 {
namespace kokkos {

/// Brings the weights and biases of a range of channels into the scratch, where they stay.
void load_weights(conv1d_call const& call, channel_range const& channels,
                  conv1d_scratch const& scratch) noexcept;

/// out for the tokens [begin, end) of the call's batch row that belong to `row`.
void write_outputs(conv1d_call const& call, std::int64_t row, std::int64_t begin, std::int64_t end,
                   channel_range const& channels, conv1d_scratch const& scratch) noexcept;

/// final_states of the row. Needs nobody to read them as another row's, or other channels', initial
/// state any more.
void write_states(conv1d_call const& call, std::int64_t row, channel_range const& channels,
                  conv1d_scratch const& scratch) noexcept;

/// Both, for a whole row.
void run_row(conv1d_call const& call, std::int64_t row, channel_range const& channels,
             conv1d_scratch const& scratch) noexcept;

}  // namespace kokkos
}  // namespace v0
}  // namespace mambatile
