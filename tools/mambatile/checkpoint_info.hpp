#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <mambatile/model.hpp>

namespace mambatile::program {

/// What a checkpoint is and what running it takes: architecture, parameters, bytes, memory a
/// sequence, workspace, and the plans that would run.
[[nodiscard]] nlohmann::ordered_json describe_checkpoint(std::filesystem::path const& folder,
                                                         std::string const& backend_name,
                                                         model_options const& options);

/// The same for people.
void print_checkpoint(nlohmann::ordered_json const& info);

}  // namespace mambatile::program
