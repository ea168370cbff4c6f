#include "golden/golden_file.hpp"

#include <algorithm>

namespace mambatile::testing {

std::vector<std::filesystem::path> golden_files(std::string const& folder) {
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(
           std::filesystem::path(MAMBATILE_TEST_DATA_DIR) / "golden" / folder)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

evaluation::host_tensor golden_file::tensor(std::string const& name, dtype type) const {
  auto const* const found = file_.find(name);
  if (found == nullptr) return {};
  evaluation::host_tensor copy(type, found->shape);
  file_.copy_to(name, copy.view());
  return copy;
}

std::string golden_file::text(std::string const& name) const {
  auto const place = file_.metadata().find(name);
  return place == file_.metadata().end() ? std::string() : place->second;
}

}  // namespace mambatile::testing
