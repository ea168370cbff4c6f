#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include <mambatile/errors.hpp>

#include "safetensors/header.hpp"

namespace mambatile {
namespace {

using safetensors::quote;

constexpr std::size_t data_alignment = 64;

[[noreturn]] void refuse(std::string const& problem) {
  throw invalid_argument("safetensors_writer: " + problem);
}

bool is_utf8(std::string const& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (nlohmann::json::type_error const&) {
    return false;
  }
}

// A file that appears under its name only when it is complete.
class pending_file {
 public:
  // Renaming replaces what a name stands for: a link's target is meant, a device or pipe never is.
  explicit pending_file(std::filesystem::path const& named) : target_(named) {
    std::error_code problem;
    auto const resolved = std::filesystem::canonical(named, problem);
    if (!problem) target_ = resolved;
    auto const status = std::filesystem::status(target_, problem);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw file_error(target_.string() + ": is not a regular file and is not replaced");
    }
    static std::atomic<unsigned> counter = 0;
    temporary_ = target_;
    temporary_ += "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("cannot be created");
  }
  pending_file(pending_file const&) = delete;
  pending_file& operator=(pending_file const&) = delete;
  ~pending_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!committed_) ::unlink(temporary_.c_str());
  }

  void append(void const* data, std::size_t bytes) {
    auto const* next = static_cast<char const*>(data);
    while (bytes != 0) {
      auto const written = ::write(descriptor_, next, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("cannot be written");
      next += written;
      bytes -= static_cast<std::size_t>(written);
    }
  }

  void commit() {
    if (::fsync(descriptor_) != 0) fail("cannot be flushed");
    if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot be closed");
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
    committed_ = true;
  }

 private:
  [[noreturn]] void fail(std::string const& problem) const {
    throw file_error(target_.string() + ": " + problem + ": " + std::strerror(errno));
  }

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
};

// Streams a strided view in row-major order through a buffer of fixed size.
class packing_stream {
 public:
  explicit packing_stream(pending_file& file) : file_(file) {}

  void append(const_tensor_view const& view) {
    if (view.size() == 0) return;
    axis(view, 0, static_cast<std::byte const*>(view.data));
    flush();
  }

 private:
  void axis(const_tensor_view const& view, int level, std::byte const* data) {
    auto const place = static_cast<std::size_t>(level);
    auto const element = static_cast<std::int64_t>(size_of(view.type));
    auto const step = view.strides[place] * element;
    bool const last = level + 1 == view.rank;
    if (last && step == element) {
      append_bytes(data, static_cast<std::size_t>(view.extents[place] * element));
      return;
    }
    for (std::int64_t index = 0; index < view.extents[place]; ++index, data += step) {
      if (last) {
        append_bytes(data, static_cast<std::size_t>(element));
      } else {
        axis(view, level + 1, data);
      }
    }
  }

  void append_bytes(std::byte const* data, std::size_t bytes) {
    if (bytes > buffer_.size() - used_) flush();
    if (bytes > buffer_.size()) {
      file_.append(data, bytes);
      return;
    }
    std::memcpy(buffer_.data() + used_, data, bytes);
    used_ += bytes;
  }

  void flush() { file_.append(buffer_.data(), std::exchange(used_, 0)); }

  pending_file& file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(std::size_t{1} << 16U);
  std::size_t used_ = 0;
};

// Whole elements of every type, packed ones too.
constexpr std::size_t piece_bytes = 3 << 18U;

void append_produced(pending_file& file, safetensors_producer const& produce, std::uint64_t bytes) {
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece_bytes)));
  for (std::uint64_t offset = 0; offset < bytes; offset += buffer.size()) {
    auto const left =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes - offset, buffer.size()));
    auto const piece = std::span(buffer).first(left);
    produce(offset, piece);
    file.append(piece.data(), piece.size());
  }
}

}  // namespace

inline namespace v0 {

void safetensors_writer::insert(std::string name, entry item) {
  if (name == safetensors::metadata_key) refuse("a tensor cannot be named '__metadata__'");
  if (!is_utf8(name)) refuse("tensor name " + quote(name) + " is not UTF-8");
  if (item.shape.size() > safetensors::max_axes) {
    refuse("tensor " + quote(name) + " has more than " + std::to_string(safetensors::max_axes) +
           " axes");
  }
  auto const [place, inserted] = entries_.try_emplace(std::move(name), std::move(item));
  if (!inserted) refuse("tensor " + quote(place->first) + " was added before");
}

void safetensors_writer::add(std::string name, const_tensor_view const& view) {
  if (!view) refuse("tensor " + quote(name) + " is absent");
  if (view.where.kind != device_kind::host) {
    refuse("tensor " + quote(name) + " is on " + to_string(view.where) + ", not on the host");
  }
  std::vector<std::int64_t> shape(view.extents.begin(), view.extents.begin() + view.rank);
  auto const type = to_safetensors_type(view.type);
  if (!safetensors::bytes_of(type, shape)) {
    refuse("tensor " + quote(name) + " has the impossible shape " + shape_string(view));
  }
  if (view.data == nullptr && view.size() != 0) refuse("tensor " + quote(name) + " is null");
  insert(std::move(name), {type, std::move(shape), {}, view, {}});
}

void safetensors_writer::add(std::string name, safetensors_type type,
                             std::vector<std::int64_t> shape, std::span<std::byte const> bytes) {
  auto const needed = safetensors::bytes_of(type, shape);
  if (!needed || *needed != bytes.size()) {
    refuse("tensor " + quote(name) + ": shape " + safetensors::shape_text(shape) + " of " +
           std::string(to_string(type)) + " does not take the " + std::to_string(bytes.size()) +
           " bytes given");
  }
  insert(std::move(name), {type, std::move(shape), bytes, {}, {}});
}

void safetensors_writer::add(std::string name, safetensors_type type,
                             std::vector<std::int64_t> shape, safetensors_producer produce) {
  if (!safetensors::bytes_of(type, shape)) {
    refuse("tensor " + quote(name) + " has the impossible shape " + safetensors::shape_text(shape));
  }
  if (!produce) refuse("tensor " + quote(name) + " has no function that makes it");
  insert(std::move(name), {type, std::move(shape), {}, {}, std::move(produce)});
}

void safetensors_writer::set_metadata(std::string key, std::string value) {
  if (!is_utf8(key)) refuse("metadata key " + quote(key) + " is not UTF-8");
  if (!is_utf8(value)) refuse("metadata of key " + quote(key) + " is not UTF-8");
  metadata_.insert_or_assign(std::move(key), std::move(value));
}

void safetensors_writer::write(std::filesystem::path const& path) const {
  std::vector<decltype(entries_)::value_type const*> order;
  order.reserve(entries_.size());
  for (auto const& item : entries_) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](auto const* left, auto const* right) {
    return bits_of(left->second.type) > bits_of(right->second.type);
  });

  // Objects of nlohmann::json are sorted by key, so the text depends on the contents alone.
  nlohmann::json header = nlohmann::json::object();
  if (!metadata_.empty()) header[std::string(safetensors::metadata_key)] = metadata_;
  std::uint64_t offset = 0;
  for (auto const* item : order) {
    auto const& [name, tensor] = *item;
    auto const end = offset + *safetensors::bytes_of(tensor.type, tensor.shape);
    header[name] = {{"dtype", to_string(tensor.type)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  auto text = header.dump();
  auto const used = safetensors::length_bytes + text.size();
  text.append((data_alignment - used % data_alignment) % data_alignment, ' ');
  if (text.size() > safetensors::max_header_bytes) {
    refuse("a header of " + std::to_string(text.size()) + " bytes is beyond the format's limit");
  }

  pending_file file(path);
  std::array<std::uint8_t, safetensors::length_bytes> length = {};
  for (std::size_t index = 0; index < length.size(); ++index) {
    length[index] = static_cast<std::uint8_t>(text.size() >> (8 * index));
  }
  file.append(length.data(), length.size());
  file.append(text.data(), text.size());
  packing_stream stream(file);
  for (auto const* item : order) {
    auto const& tensor = item->second;
    if (tensor.produce) {
      append_produced(file, tensor.produce, *safetensors::bytes_of(tensor.type, tensor.shape));
    } else if (tensor.view) {
      stream.append(tensor.view);
    } else {
      file.append(tensor.bytes.data(), tensor.bytes.size());
    }
  }
  file.commit();
}

}  // namespace v0
}  // namespace mambatile
