#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <mambatile/errors.hpp>

#include "safetensors/header.hpp"

namespace mambatile {
namespace safetensors {
namespace {

// A whole file mapped read-only.
class mapping {
 public:
  mapping() = default;
  explicit mapping(std::string const& path) {
    auto const fail = [&](std::string const& problem) {
      throw file_error(path + ": " + problem + ": " + std::strerror(errno));
    };
    // Not to wait for a writer where the path is a named pipe.
    int const descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) fail("cannot be opened");
    struct closer {
      int descriptor;
      ~closer() { ::close(descriptor); }
    } const closing{descriptor};
    struct ::stat status = {};
    if (::fstat(descriptor, &status) != 0) fail("cannot be examined");
    if (!S_ISREG(status.st_mode)) throw file_error(path + ": is not a regular file");
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;  // an empty range cannot be mapped
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) fail("cannot be mapped");
    data_ = address;
  }
  mapping(mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapping& operator=(mapping&&) = delete;
  ~mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  [[nodiscard]] std::span<std::byte const> bytes() const noexcept {
    return {static_cast<std::byte const*>(data_), size_};
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace
}  // namespace safetensors

inline namespace v0 {

struct safetensors_file::contents {
  contents(std::string file_name, safetensors::mapping&& mapped)
      : name(std::move(file_name)), map(std::move(mapped)) {
    index(safetensors::parse(map.bytes(), name));
  }
  contents(std::string file_name, std::span<std::byte const> bytes) : name(std::move(file_name)) {
    index(safetensors::parse(bytes, name));
  }

  void index(safetensors::header&& header) {
    tensors = std::move(header.tensors);
    metadata = std::move(header.metadata);
    by_name.reserve(tensors.size());
    for (auto const& tensor : tensors) by_name.push_back(&tensor);
    std::sort(by_name.begin(), by_name.end(),
              [](auto const* left, auto const* right) { return left->name < right->name; });
  }

  std::string name;
  safetensors::mapping map;
  std::vector<safetensors_tensor> tensors;
  std::vector<safetensors_tensor const*> by_name;
  std::map<std::string, std::string, std::less<>> metadata;
};

safetensors_file::safetensors_file(std::shared_ptr<contents const> content) noexcept
    : contents_(std::move(content)) {}

safetensors_file::safetensors_file(std::filesystem::path const& path)
    : contents_(
          std::make_shared<contents const>(path.string(), safetensors::mapping(path.string()))) {}

safetensors_file safetensors_file::from_bytes(std::span<std::byte const> bytes, std::string name) {
  return safetensors_file(std::make_shared<contents const>(std::move(name), bytes));
}

std::string const& safetensors_file::name() const noexcept { return contents_->name; }

std::span<safetensors_tensor const> safetensors_file::tensors() const noexcept {
  return contents_->tensors;
}

std::map<std::string, std::string, std::less<>> const& safetensors_file::metadata() const noexcept {
  return contents_->metadata;
}

safetensors_tensor const* safetensors_file::find(std::string_view tensor) const noexcept {
  auto const& names = contents_->by_name;
  auto const place =
      std::lower_bound(names.begin(), names.end(), tensor,
                       [](auto const* entry, std::string_view name) { return entry->name < name; });
  return place != names.end() && (*place)->name == tensor ? *place : nullptr;
}

safetensors_tensor const& safetensors_file::at(std::string_view tensor) const {
  if (auto const* found = find(tensor)) return *found;
  throw file_error(name() + ": has no tensor " + safetensors::quote(tensor));
}

const_tensor_view safetensors_file::view(std::string_view tensor) const {
  auto const& entry = at(tensor);
  auto const fail = [&](std::string const& problem) {
    throw file_error(name() + ": tensor " + safetensors::quote(tensor) + " " + problem);
  };
  auto const type = to_dtype(entry.type);
  if (!type) {
    fail("has type " + std::string(to_string(entry.type)) + "; a view holds F32, BF16, F16 or I32");
  }
  if (entry.shape.size() > static_cast<std::size_t>(max_rank)) {
    fail("has shape " + safetensors::shape_text(entry.shape) + "; a view has at most " +
         std::to_string(max_rank) + " axes");
  }
  if (reinterpret_cast<std::uintptr_t>(entry.bytes.data()) % size_of(*type) != 0) {
    fail("lies at an address that is no multiple of " + std::to_string(size_of(*type)) +
         "; copy it instead");
  }
  const_tensor_view view;
  view.data = entry.bytes.data();
  view.type = *type;
  view.rank = entry.shape.empty() ? 1 : static_cast<int>(entry.shape.size());
  view.extents[0] = view.strides[0] = 1;
  std::int64_t stride = 1;
  for (std::size_t axis = entry.shape.size(); axis-- > 0;) {
    view.extents[axis] = entry.shape[axis];
    view.strides[axis] = stride;
    stride *= entry.shape[axis];
  }
  return view;
}

}  // namespace v0
}  // namespace mambatile
