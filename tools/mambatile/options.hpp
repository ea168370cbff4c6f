#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include <mambatile/backend.hpp>
#include <mambatile/dtype.hpp>
#include <mambatile/model.hpp>
#include <mambatile/scan.hpp>

// Options that several subcommands share.

namespace mambatile::program {

/// Adds `--backend NAME`, which is checked when it is used.
void add_backend_option(CLI::App& command, std::string& name);

/// The backend of that name, or the default one for an empty name.
[[nodiscard]] backend const& chosen_backend(std::string const& name);

/// Adds an option that takes "f32", "bf16" or "f16" and hands it on.
void add_dtype_option(CLI::App& command, std::string const& name, std::string const& help,
                      std::function<void(dtype)> set);

/// Takes a whole number of at least this much.
[[nodiscard]] CLI::Validator at_least(std::int64_t least);

/// Adds `--io`, `--state` and `--threads`: how a model runs. `options` outlives the parser.
void add_model_options(CLI::App& command, model_options& options);

/// Adds `--products`, which takes "accurate" or "tf32".
void add_products_option(CLI::App& command, products& math);

/// Processors that this process may run on.
[[nodiscard]] int available_processors();

}  // namespace mambatile::program
