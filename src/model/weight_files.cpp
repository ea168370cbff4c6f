#include "model/weight_files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <mambatile/errors.hpp>

#include "model/config_json.hpp"
#include "model/text_file.hpp"

namespace mambatile {
inline namespace v0 {
namespace detail {
namespace {

std::string shape_text(std::vector<std::int64_t> const& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

// A row-major view of this shape.
template <class Void, class Shape>
basic_tensor_view<detail::void_like<Void>> packed_view(Void* data, dtype type, Shape const& shape) {
  basic_tensor_view<detail::void_like<Void>> view;
  view.data = data;
  view.type = type;
  view.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  std::copy(shape.begin(), shape.end(), view.extents.begin());
  for (auto axis = shape.size(); axis-- > 0;) {
    view.strides[axis] = stride;
    stride *= view.extents[axis];
  }
  return view;
}

}  // namespace

weight_files::weight_files(std::filesystem::path const& directory) : directory_(directory) {
  auto const single = directory / "model.safetensors";
  auto const index = directory / "model.safetensors.index.json";
  std::error_code ignored;
  if (std::filesystem::exists(single, ignored)) {
    open_single(single);
  } else if (std::filesystem::exists(index, ignored)) {
    open_shards(index);
  } else {
    throw file_error(fmt::format(
        "{}: has neither model.safetensors nor model.safetensors.index.json", directory.string()));
  }
}

void weight_files::open_single(std::filesystem::path const& path) {
  auto const& file = files_.emplace_back(path);
  bytes_ += static_cast<std::int64_t>(std::filesystem::file_size(path));
  for (auto const& tensor : file.tensors()) file_of_.emplace(tensor.name, &file);
}

void weight_files::open_shards(std::filesystem::path const& index) {
  auto const name = index.string();
  auto const parsed = parse_config_json(read_text_file(index), name);
  auto const weight_map = parsed.find("weight_map");
  if (weight_map == parsed.end() || !weight_map->is_object()) {
    throw file_error(fmt::format("{}: weight_map is absent or not an object", name));
  }
  std::map<std::string, safetensors_file const*> opened;
  for (auto const& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string()) {
      throw file_error(fmt::format("{}: weight_map[\"{}\"] is not a file name", name, tensor));
    }
    std::filesystem::path const file_name = shard.get<std::string>();
    if (file_name.empty() || file_name != file_name.filename() || file_name == "." ||
        file_name == "..") {
      throw file_error(
          fmt::format("{}: weight_map[\"{}\"] = \"{}\" is not the name of a file in "
                      "the same directory",
                      name, tensor, file_name.string()));
    }
    auto& file = opened[file_name.string()];
    if (file == nullptr) {
      auto const path = index.parent_path() / file_name;
      file = &files_.emplace_back(path);
      bytes_ += static_cast<std::int64_t>(std::filesystem::file_size(path));
    }
    if (file->find(tensor) == nullptr) {
      throw file_error(fmt::format("{}: has no tensor {}, which {} says it holds", file->name(),
                                   tensor, index.filename().string()));
    }
    file_of_.emplace(tensor, file);
  }
}

bool weight_files::has(std::string const& tensor) const { return file_of_.contains(tensor); }

safetensors_tensor const& weight_files::checked(std::string const& tensor,
                                                std::initializer_list<std::int64_t> shape) {
  auto const found = file_of_.find(tensor);
  if (found == file_of_.end()) {
    throw file_error(fmt::format("{}: the tensor {} is missing", directory_.string(), tensor));
  }
  used_.insert(tensor);
  auto const& stored = *found->second->find(tensor);
  if (without_ones(stored.shape) != without_ones(shape)) {
    throw file_error(fmt::format("{}: {} has shape {}; the configuration asks for {}",
                                 found->second->name(), tensor, shape_text(stored.shape),
                                 shape_text(shape)));
  }
  auto const type = to_dtype(stored.type);
  if (!type || !is_floating(*type)) {
    throw file_error(fmt::format("{}: {} has type {}; weights are F32, F16 or BF16",
                                 found->second->name(), tensor, to_string(stored.type)));
  }
  return stored;
}

float* weight_files::own_floats(std::int64_t count) {
  return owned_.emplace_back(static_cast<std::size_t>(count)).data();
}

const_tensor_view weight_files::weight(std::string const& tensor,
                                       std::initializer_list<std::int64_t> shape) {
  auto const& stored = checked(tensor, shape);
  void const* data = stored.bytes.data();
  auto const type = *to_dtype(stored.type);
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(type) != 0) {
    auto const words = (stored.bytes.size() + sizeof(float) - 1) / sizeof(float);
    void* const copy = own_floats(static_cast<std::int64_t>(words));
    std::memcpy(copy, data, stored.bytes.size());
    data = copy;
  }
  return packed_view(data, type, shape);
}

const_tensor_view weight_files::parameter(std::string const& tensor,
                                          std::initializer_list<std::int64_t> shape,
                                          float (*transform)(float)) {
  auto const& stored = checked(tensor, shape);
  auto* const values = own_floats(stored.size());
  auto target = packed_view(values, dtype::f32, stored.shape);
  file_of_.find(tensor)->second->copy_to(tensor, target);
  for (std::int64_t i = 0; i < stored.size(); ++i) values[i] = transform(values[i]);
  return packed_view(values, dtype::f32, shape);
}

std::vector<std::string> weight_files::unused() const {
  std::vector<std::string> names;
  for (auto const& [tensor, file] : file_of_) {
    if (!used_.contains(tensor)) names.push_back(tensor);
  }
  return names;
}

}  // namespace detail
}  // namespace v0
}  // namespace mambatile
