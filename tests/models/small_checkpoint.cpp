#include "models/small_checkpoint.hpp"

#include <fstream>
#include <iterator>

#include <mambatile/errors.hpp>

#include "unit/safetensors_file.hpp"

namespace mambatile::testing {

small_checkpoint small_checkpoint::make() {
  temporary_folder const folder;
  evaluation::write_random_checkpoint(folder.path(), small_shape);
  small_checkpoint result;
  result.config = nlohmann::ordered_json::parse(text_of(folder / "config.json"));
  safetensors_file const file(folder / "model.safetensors");
  for (auto const& each : file.tensors()) {
    result.tensors[each.name] = {each.type, each.shape, {each.bytes.begin(), each.bytes.end()}};
  }
  return result;
}

void small_checkpoint::write(std::filesystem::path const& folder) const {
  std::filesystem::create_directories(folder);
  write_text(folder / "config.json", config.dump());
  safetensors_writer writer;
  for (auto const& [name, each] : tensors) writer.add(name, each.type, each.shape, each.bytes);
  writer.write(folder / "model.safetensors");
}

std::string text_of(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(std::filesystem::path const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string file_error_of(std::function<void()> const& action) {
  try {
    action();
  } catch (file_error const& problem) {
    return problem.what();
  }
  return {};
}

}  // namespace mambatile::testing
