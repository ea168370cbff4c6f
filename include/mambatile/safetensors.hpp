#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <mambatile/dtype.hpp>
#include <mambatile/export.hpp>
#include <mambatile/tensor_view.hpp>

/// @file
/// Reading and writing safetensors files: 8 bytes of header length, a JSON header, raw row-major
/// little-endian data. Everything that is wrong with a file is a file_error that names the file
/// and the tensor or byte.

namespace mambatile {
inline namespace v0 {

/// Element types that a safetensors header may name.
enum class safetensors_type : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

/// Bits of one element; the 4- and 6-bit types are packed.
/// @throws invalid_argument where `type` is no enumerator.
[[nodiscard]] MAMBATILE_EXPORT int bits_of(safetensors_type type);

/// The name used in a header: "F32", "BF16", "BOOL", ...; "unknown" for what is no enumerator.
[[nodiscard]] MAMBATILE_EXPORT std::string_view to_string(safetensors_type type) noexcept;

/// The library's own type with the same representation, where there is one.
[[nodiscard]] MAMBATILE_EXPORT std::optional<dtype> to_dtype(safetensors_type type) noexcept;

/// The type under which a file stores `type`.
/// @throws invalid_argument where `type` is no enumerator.
[[nodiscard]] MAMBATILE_EXPORT safetensors_type to_safetensors_type(dtype type);

/// One tensor of a file. An empty shape is a scalar.
struct safetensors_tensor {
  std::string name;
  safetensors_type type = safetensors_type::f32;
  std::vector<std::int64_t> shape;
  /// Row-major data inside the file's mapping, at whatever alignment the file has.
  std::span<std::byte const> bytes;

  /// Number of elements.
  [[nodiscard]] std::int64_t size() const noexcept {
    std::int64_t count = 1;
    for (auto extent : shape) count *= extent;
    return count;
  }
};

/// A safetensors file, open for reading. Copies share one mapping, which lives as long as any of
/// them; what `bytes` and `view` return points into it. Data is read when touched, so opening a
/// large file costs its header alone. A file that is cut short by somebody else while it is mapped
/// raises SIGBUS on access, as with any mapping: replace files by renaming, as the writer does.
class MAMBATILE_EXPORT safetensors_file {
 public:
  /// Maps and checks the whole header: a header that ends inside the file, JSON without
  /// duplicate names, known types, shapes that match their bytes, and data that covers the file
  /// without gap or overlap. Throws file_error.
  explicit safetensors_file(std::filesystem::path const& path);

  /// The same for a file that is in memory already. `bytes` stays the caller's and must outlive
  /// the result; `name` stands in messages.
  [[nodiscard]] static safetensors_file from_bytes(std::span<std::byte const> bytes,
                                                   std::string name);

  /// The path as given, or the name given with the bytes.
  [[nodiscard]] std::string const& name() const noexcept;

  /// All tensors in the order of their data.
  [[nodiscard]] std::span<safetensors_tensor const> tensors() const noexcept;

  /// The tensor of that name, or null.
  [[nodiscard]] safetensors_tensor const* find(std::string_view tensor) const noexcept;

  /// The tensor of that name; throws file_error where the file has none.
  [[nodiscard]] safetensors_tensor const& at(std::string_view tensor) const;

  /// The `__metadata__` map; empty where the file has none.
  [[nodiscard]] std::map<std::string, std::string, std::less<>> const& metadata() const noexcept;

  /// A view of the mapped data, nothing copied; a scalar is seen as shape (1). Throws file_error
  /// where the tensor is absent, has a type outside mambatile::dtype or more than max_rank axes,
  /// or lies at an address its type cannot be read from (copy_to reads those).
  [[nodiscard]] const_tensor_view view(std::string_view tensor) const;

  /// Copies a tensor into `destination`: host memory of the same shape, strides free. Converts
  /// between floating-point types (one rounding, to nearest even) and from integers and booleans
  /// to i32. Throws file_error where the tensor is absent, its shape differs, or a value or type
  /// has no place in the destination's type; invalid_argument for a destination that is null or
  /// not on the host.
  void copy_to(std::string_view tensor, tensor_view const& destination) const;

 private:
  struct contents;
  explicit safetensors_file(std::shared_ptr<contents const> content) noexcept;

  std::shared_ptr<contents const> contents_;
};

/// Makes part of a tensor's packed data: fills `piece`, whose first byte is byte `offset` of the
/// tensor. Pieces hold whole elements and come in order, once each.
using safetensors_producer = std::function<void(std::uint64_t offset, std::span<std::byte> piece)>;

/// Collects tensors and writes them as one file. The same contents give the same bytes: tensors
/// are ordered by falling element size, then by name, so each lies aligned to its type, and the
/// header is padded so that data starts at a multiple of 64 bytes.
class MAMBATILE_EXPORT safetensors_writer {
 public:
  /// Adds a tensor on the host, of any strides; read when `write` is called, so it must live until
  /// then. Throws invalid_argument for a name already used (or "__metadata__", or not UTF-8), an
  /// absent view, null data or a device view.
  void add(std::string name, const_tensor_view const& view);

  /// Adds packed row-major data of any type; an empty shape is a scalar. Throws invalid_argument
  /// as above and where shape and bytes do not agree.
  void add(std::string name, safetensors_type type, std::vector<std::int64_t> shape,
           std::span<std::byte const> bytes);

  /// Adds packed row-major data that `produce` makes while `write` runs, a piece at a time: a file
  /// of any size takes little memory. Throws invalid_argument as above, or for an empty function.
  void add(std::string name, safetensors_type type, std::vector<std::int64_t> shape,
           safetensors_producer produce);

  /// Sets one entry of the `__metadata__` map. Throws invalid_argument for text that is not UTF-8.
  void set_metadata(std::string key, std::string value);

  /// Writes to a temporary file beside `path`, flushes it to the device and renames it over `path`:
  /// a reader sees the old file or the whole new one. Throws file_error and leaves no temporary
  /// file behind.
  void write(std::filesystem::path const& path) const;

 private:
  struct entry {
    safetensors_type type = safetensors_type::f32;
    std::vector<std::int64_t> shape;
    std::span<std::byte const> bytes;  // packed data, or
    const_tensor_view view;            // strided data, or
    safetensors_producer produce;      // data that is made when it is written
  };
  void insert(std::string name, entry item);

  std::map<std::string, entry, std::less<>> entries_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace v0
}  // namespace mambatile
