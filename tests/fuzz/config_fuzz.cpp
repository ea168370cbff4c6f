#include "fuzz/config_fuzz.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include <mambatile/checkpoint.hpp>
#include <mambatile/errors.hpp>

namespace mambatile::testing {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

bool exercise_config(std::string_view text) {
  model_config config;
  try {
    config = parse_model_config(text, "fuzz");
  } catch (file_error const&) {
    return false;
  }
  constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
  for (auto const size :
       {config.vocab_size, config.hidden_size, config.nheads, config.headdim, config.ngroups,
        config.dstate, config.conv_width, config.norm_group_size}) {
    require(size >= 1);
  }
  require(config.num_layers >= 0);
  require(config.padded_vocab >= config.vocab_size);
  require(config.nheads % config.ngroups == 0);
  require(config.inner_size() % config.norm_group_size == 0);
  require(config.conv_channels() > config.inner_size());
  require(config.projection_rows() > config.conv_channels() && config.projection_rows() <= highest);
  require(config.norm_eps > 0 && std::isfinite(config.norm_eps));
  require(config.dt_limit[0] >= 0 && config.dt_limit[0] <= config.dt_limit[1]);
  require(config.chunk_size >= 1);
  for (auto const id : config.end_of_sequence) require(id >= 0 && id < config.vocab_size);
  return true;
}

}  // namespace mambatile::testing
