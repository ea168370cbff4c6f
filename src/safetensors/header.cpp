#include "safetensors/header.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include <mambatile/errors.hpp>

namespace mambatile::safetensors {
namespace {

struct raw_tensor {
  std::string name;
  std::optional<safetensors_type> type;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

// Follows the header's grammar token by token, so that duplicate keys are seen and nothing deeper
// than the format allows is ever built.
class header_handler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit header_handler(std::string const& file) : file_(file) {}

  std::vector<raw_tensor> tensors;
  std::map<std::string, std::string, std::less<>> metadata;

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a negative number"); }
  bool number_float(number_float_t, string_t const&) override {
    return value("a number that is no 64-bit integer");
  }
  bool binary(binary_t&) override { return value("binary data"); }

  bool number_unsigned(number_unsigned_t number) override {
    if (place_ != place::array) return value("a number");
    if (number > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return value("a number beyond 2^63 - 1");
    }
    if (list_->size() == max_axes) {
      fail(subject() + " has more than " + std::to_string(max_axes) + " entries");
    }
    list_->push_back(static_cast<std::int64_t>(number));
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == place::metadata) {
      if (!metadata.emplace(key_, std::move(text)).second) {
        fail("__metadata__: key " + quote(key_) + " appears twice");
      }
      return true;
    }
    if (place_ != place::tensor || key_ != "dtype") return value("a string");
    auto& tensor = tensors.back();
    tensor.type = parse_type(text);
    if (!tensor.type) fail(subject() + " is " + quote(text) + ", which is no known type");
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case place::outside: place_ = place::root; return true;
      case place::root:
        if (key_ == metadata_key) {
          if (std::exchange(has_metadata_, true)) fail("__metadata__ appears twice");
          place_ = place::metadata;
        } else {
          tensors.push_back({key_, {}, {}, {}});
          place_ = place::tensor;
        }
        return true;
      default: return value("an object");
    }
  }

  bool key(string_t& text) override {
    key_ = std::move(text);
    if (place_ != place::tensor) return true;
    auto const& tensor = tensors.back();
    bool const known = key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
    if (!known) fail(tensor_text() + ": unknown key " + quote(key_));
    bool const seen = (key_ == "dtype" && tensor.type) || (key_ == "shape" && tensor.shape) ||
                      (key_ == "data_offsets" && tensor.offsets);
    if (seen) fail(subject() + " appears twice");
    return true;
  }

  bool end_object() override {
    if (place_ == place::tensor) {
      auto const& tensor = tensors.back();
      if (!tensor.type) fail(tensor_text() + " has no dtype");
      if (!tensor.shape) fail(tensor_text() + " has no shape");
      if (!tensor.offsets) fail(tensor_text() + " has no data_offsets");
    }
    place_ = place_ == place::root ? place::outside : place::root;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != place::tensor || key_ == "dtype") return value("an array");
    auto& tensor = tensors.back();
    list_ = &(key_ == "shape" ? tensor.shape : tensor.offsets).emplace();
    place_ = place::array;
    return true;
  }

  bool end_array() override {
    if (key_ == "data_offsets" && list_->size() != 2) {
      fail(subject() + " has " + std::to_string(list_->size()) + " entries, not 2");
    }
    place_ = place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, std::string const&,
                   nlohmann::json::exception const& problem) override {
    // Of "[id] parse error at line 1, column 9: REASON; last read: 'TEXT'" only the reason is ours
    // to repeat: the text is the file's and may be anything.
    std::string reason = problem.what();
    if (auto const start = reason.find(": "); start != std::string::npos)
      reason.erase(0, start + 2);
    if (auto const end = reason.find("; last read"); end != std::string::npos) reason.resize(end);
    constexpr std::size_t longest = 120;
    if (reason.size() > longest) reason.resize(longest);
    fail("byte " + std::to_string(length_bytes + position) + ": header is not valid JSON (" +
         reason + ")");
  }

 private:
  enum class place : std::uint8_t { outside, root, metadata, tensor, array };

  [[noreturn]] void fail(std::string const& problem) const {
    throw file_error(file_ + ": " + problem);
  }

  [[nodiscard]] std::string tensor_text() const { return "tensor " + quote(tensors.back().name); }
  [[nodiscard]] std::string subject() const { return tensor_text() + ": " + key_; }

  // A value where the grammar has none of its kind.
  [[noreturn]] bool value(std::string const& what) const {
    switch (place_) {
      case place::outside: fail("header is " + what + ", not an object");
      case place::root:
        fail((key_ == metadata_key ? "__metadata__" : "tensor " + quote(key_)) + " is " + what +
             ", not an object");
      case place::metadata: fail("__metadata__: " + quote(key_) + " is " + what + ", not a string");
      case place::tensor:
        fail(subject() + " is " + what + ", not " +
             (key_ == "dtype" ? "a string" : "an array of integers"));
      case place::array: break;
    }
    fail(subject() + " holds " + what + ", not a whole number >= 0");
  }

  std::string const& file_;
  place place_ = place::outside;
  std::string key_;
  bool has_metadata_ = false;
  std::vector<std::int64_t>* list_ = nullptr;
};

std::uint64_t little_endian_length(std::span<std::byte const> file) noexcept {
  std::uint64_t length = 0;
  for (std::size_t index = 0; index < length_bytes; ++index) {
    length |= std::to_integer<std::uint64_t>(file[index]) << (8 * index);
  }
  return length;
}

std::string_view header_text(std::span<std::byte const> file, std::string const& name) {
  auto const fail = [&](std::string const& problem) { throw file_error(name + ": " + problem); };
  auto const size = std::to_string(file.size());
  if (file.size() < length_bytes) {
    fail("file is truncated: it has " + size + " bytes, and the header length alone takes 8");
  }
  auto const length = little_endian_length(file);
  if (length > max_header_bytes) {
    fail("byte 0: header length " + std::to_string(length) + " is beyond the limit of " +
         std::to_string(max_header_bytes) + " (not a safetensors file?)");
  }
  if (length > file.size() - length_bytes) {
    fail("file is truncated: the header ends at byte " + std::to_string(length_bytes + length) +
         ", but the file has " + size + " bytes");
  }
  std::string_view const text(reinterpret_cast<char const*>(file.data()) + length_bytes, length);
  if (text.empty() || text.front() != '{') {
    fail("byte 8: header does not start with '{' (not a safetensors file?)");
  }
  // The parser would take a NUL for the end of its input.
  if (auto const nul = text.find('\0'); nul != std::string_view::npos) {
    fail("byte " + std::to_string(length_bytes + nul) + ": header holds a NUL character");
  }
  return text;
}

safetensors_tensor resolve(raw_tensor&& raw, std::span<std::byte const> data,
                           std::string const& name) {
  auto const fail = [&](std::string const& problem) {
    throw file_error(name + ": tensor " + quote(raw.name) + ": " + problem);
  };
  auto const begin = static_cast<std::uint64_t>((*raw.offsets)[0]);
  auto const end = static_cast<std::uint64_t>((*raw.offsets)[1]);
  auto const offsets = "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
  auto const shape = "shape " + shape_text(*raw.shape) + " of " + std::string(to_string(*raw.type));
  if (begin > end) fail(offsets + " are not in order");
  if (end > data.size()) {
    fail(offsets + " end beyond the file's " + std::to_string(data.size()) +
         " bytes of data (file truncated?)");
  }
  auto const bytes = bytes_of(*raw.type, *raw.shape);
  if (!bytes) fail(shape + " is no whole number of bytes below 2^60");
  if (*bytes != end - begin) {
    fail(offsets + " hold " + std::to_string(end - begin) + " bytes, but " + shape + " takes " +
         std::to_string(*bytes));
  }
  return {std::move(raw.name), *raw.type, std::move(*raw.shape), data.subspan(begin, end - begin)};
}

// Tensors in the order of their data must follow each other without gap or overlap.
void check_coverage(std::span<safetensors_tensor const> tensors, std::span<std::byte const> data,
                    std::string const& name) {
  std::uint64_t covered = 0;
  safetensors_tensor const* previous = nullptr;
  for (auto const& tensor : tensors) {
    auto const begin = static_cast<std::uint64_t>(tensor.bytes.data() - data.data());
    if (begin < covered) {
      throw file_error(name + ": tensor " + quote(tensor.name) + " begins at data byte " +
                       std::to_string(begin) + " and overlaps tensor " + quote(previous->name) +
                       ", which ends at " + std::to_string(covered));
    }
    if (begin > covered) {
      throw file_error(name + ": data bytes " + std::to_string(covered) + " to " +
                       std::to_string(begin) + ", before tensor " + quote(tensor.name) +
                       ", belong to no tensor");
    }
    covered += tensor.bytes.size();
    previous = &tensor;
  }
  if (covered != data.size()) {
    throw file_error(name + ": data bytes " + std::to_string(covered) + " to " +
                     std::to_string(data.size()) + ", at the end of the file, belong to no tensor");
  }
}

void check_names(std::span<raw_tensor const> tensors, std::string const& name) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (auto const& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  auto const twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw file_error(name + ": tensor " + quote(*twice) + " appears twice");
  }
}

}  // namespace

header parse(std::span<std::byte const> file, std::string const& name) {
  auto const text = header_text(file, name);
  header_handler handler(name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  check_names(handler.tensors, name);

  auto const data = file.subspan(length_bytes + text.size());
  header result;
  result.metadata = std::move(handler.metadata);
  result.tensors.reserve(handler.tensors.size());
  for (auto& raw : handler.tensors) result.tensors.push_back(resolve(std::move(raw), data, name));
  // An empty tensor shares its place with the one that begins there: it goes first.
  std::stable_sort(result.tensors.begin(), result.tensors.end(),
                   [](auto const& left, auto const& right) {
                     if (left.bytes.data() != right.bytes.data()) {
                       return std::less<>()(left.bytes.data(), right.bytes.data());
                     }
                     return left.bytes.size() < right.bytes.size();
                   });
  check_coverage(result.tensors, data, name);
  return result;
}

}  // namespace mambatile::safetensors
