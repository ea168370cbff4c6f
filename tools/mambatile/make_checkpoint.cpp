#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mambatile/mambatile.hpp>

#include "command.hpp"
#include "evaluation/random_checkpoint.hpp"
#include "options.hpp"
#include "text.hpp"

// mambatile make-checkpoint: a checkpoint with random weights.

namespace mambatile::program {
namespace {

struct settings {
  std::string like;
  evaluation::checkpoint_shape sizes;  // what was asked for; 0 = not
  bool untied = false;
  evaluation::checkpoint_storage storage;
  std::filesystem::path folder;
  bool overwrite = false;
};

evaluation::checkpoint_shape const* named_shape(std::string const& name) {
  for (auto const& shape : evaluation::checkpoint_shapes) {
    if (shape.name == name) return &shape;
  }
  return nullptr;
}

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (auto const& shape : evaluation::checkpoint_shapes) names.emplace_back(shape.name);
  return names;
}

// The named model's sizes, each replaced by the one that was given.
evaluation::checkpoint_shape shape_of(settings const& chosen) {
  evaluation::checkpoint_shape shape = {"random"};
  if (!chosen.like.empty()) shape = *named_shape(chosen.like);
  auto const take = [&](std::int64_t evaluation::checkpoint_shape::*field, char const* option) {
    if (chosen.sizes.*field != 0) shape.*field = chosen.sizes.*field;
    if (shape.*field == 0) {
      throw invalid_argument(
          fmt::format("make-checkpoint: give --like or {}; models known by name: {}", option,
                      fmt::join(shape_names(), ", ")));
    }
  };
  take(&evaluation::checkpoint_shape::hidden_size, "--hidden-size");
  take(&evaluation::checkpoint_shape::num_layers, "--layers");
  take(&evaluation::checkpoint_shape::nheads, "--heads");
  take(&evaluation::checkpoint_shape::headdim, "--headdim");
  take(&evaluation::checkpoint_shape::ngroups, "--groups");
  take(&evaluation::checkpoint_shape::dstate, "--dstate");
  take(&evaluation::checkpoint_shape::conv_width, "--conv-width");
  take(&evaluation::checkpoint_shape::vocab_size, "--vocab");
  if (chosen.untied) shape.tied_head = false;
  return shape;
}

void make_checkpoint(settings const& chosen) {
  auto const shape = shape_of(chosen);
  auto const folder =
      chosen.folder.empty()
          ? std::filesystem::path(fmt::format("{}-{}", shape.name, to_string(chosen.storage.type)))
          : chosen.folder;
  if (!chosen.overwrite && std::filesystem::exists(folder / "config.json")) {
    throw invalid_argument(
        fmt::format("make-checkpoint: {} already holds a checkpoint; --overwrite replaces it",
                    folder.string()));
  }
  constexpr std::int64_t steps = 100;
  progress shown("writing, percent", steps);
  std::int64_t shown_steps = 0;
  auto const started = seconds_now();
  auto const written = evaluation::write_random_checkpoint(
      folder, shape, chosen.storage, [&](std::int64_t done, std::int64_t all) {
        for (; shown_steps * all < done * steps; ++shown_steps) shown.step();
      });
  fmt::print("{}\n", printable(folder.string()));
  fmt::print(stderr, "{} parameters, {} as {} in {} file{}, {:.1f} s\n",
             count_text(static_cast<double>(written.parameters)),
             bytes_text(static_cast<double>(written.bytes)), to_string(chosen.storage.type),
             written.files, written.files == 1 ? "" : "s", seconds_now() - started);
}

}  // namespace

void add_make_checkpoint_command(CLI::App& program) {
  auto const chosen = std::make_shared<settings>();
  chosen->sizes.headdim = chosen->sizes.ngroups = chosen->sizes.dstate = 0;
  chosen->sizes.conv_width = 0;
  auto* const command = program.add_subcommand(
      "make-checkpoint", "Write a checkpoint with random weights, of a known model's size or any");
  command->add_option("--like", chosen->like, "Take a model's sizes; options below replace some")
      ->check(CLI::IsMember(shape_names()));
  auto const size = [&](char const* option, std::int64_t& value, char const* help) {
    command->add_option(option, value, help)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{INT32_MAX}));
  };
  size("--hidden-size", chosen->sizes.hidden_size, "Width of the residual stream");
  size("--layers", chosen->sizes.num_layers, "Blocks");
  size("--heads", chosen->sizes.nheads, "Heads of a block");
  size("--headdim", chosen->sizes.headdim, "Channels of a head (64 without --like)");
  size("--groups", chosen->sizes.ngroups, "Groups of B and C (1 without --like)");
  size("--dstate", chosen->sizes.dstate, "States of a channel (128 without --like)");
  size("--conv-width", chosen->sizes.conv_width, "Taps of the convolution (4 without --like)");
  size("--vocab", chosen->sizes.vocab_size, "Tokens of the vocabulary");
  command->add_flag("--untied", chosen->untied, "Give the head weights of its own");
  add_dtype_option(*command, "--dtype", "Type the weights are stored in: f32, bf16 or f16",
                   [chosen](dtype type) { chosen->storage.type = type; });
  command->add_option("--seed", chosen->storage.seed, "The same seed gives the same numbers")
      ->check(at_least(0));
  command->add_option("--shard-bytes", chosen->storage.shard_bytes, "Largest file of weights")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("-o,--output", chosen->folder, "Folder to write to (default: NAME-TYPE)");
  command->add_flag("--overwrite", chosen->overwrite, "Replace a checkpoint that is there");
  command->callback([chosen] { make_checkpoint(*chosen); });
}

}  // namespace mambatile::program
