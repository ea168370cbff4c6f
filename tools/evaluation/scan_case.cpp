#include "evaluation/scan_case.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <mambatile/errors.hpp>

namespace mambatile::evaluation {
namespace {

using namespace std::string_view_literals;

constexpr std::array known_tensors = {
    "x"sv,
    "dt"sv,
    "A"sv,
    "B"sv,
    "C"sv,
    "D"sv,
    "z"sv,
    "dt_bias"sv,
    "initial_states"sv,
    "y"sv,
    "cu_seqlens"sv,
    "seq_idx"sv,
    "final_states"sv,
    "state_source"sv,
    "state_target"sv,
};

bool is_floating_type(safetensors_type type) {
  auto const own = to_dtype(type);
  return own && is_floating(*own);
}

std::string const* find_metadata(safetensors_file const& file, std::string_view key) {
  auto const place = file.metadata().find(key);
  return place == file.metadata().end() ? nullptr : &place->second;
}

[[noreturn]] void refuse_metadata(safetensors_file const& file, std::string_view key,
                                  std::string_view rule) {
  throw file_error(fmt::format("{}: __metadata__: {} is \"{:.40}\", not {}", file.name(), key,
                               *find_metadata(file, key), rule));
}

bool read_boolean(safetensors_file const& file, std::string_view key) {
  auto const* text = find_metadata(file, key);
  if (text == nullptr || *text == "false") return false;
  if (*text != "true") refuse_metadata(file, key, "\"true\" or \"false\"");
  return true;
}

int read_count(safetensors_file const& file, std::string_view key) {
  auto const* text = find_metadata(file, key);
  if (text == nullptr) return 0;
  int value = 0;
  auto const* const end = text->data() + text->size();
  auto const [stop, problem] = std::from_chars(text->data(), end, value);
  if (problem != std::errc() || stop != end || value < 0) {
    refuse_metadata(file, key, "a whole number >= 0");
  }
  return value;
}

std::array<float, 2> read_limits(safetensors_file const& file, std::string_view key) {
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  auto const* text = find_metadata(file, key);
  if (text == nullptr) return {0.0F, infinity};
  auto const list = nlohmann::json::parse(*text, nullptr, false);
  auto const is_limit = [](nlohmann::json const& item) {
    return item.is_number() || item == "inf" || item == "Infinity";
  };
  if (!list.is_array() || list.size() != 2 || !is_limit(list[0]) || !is_limit(list[1])) {
    refuse_metadata(file, key, "a list of two numbers, where \"inf\" stands for no limit");
  }
  auto const value = [](nlohmann::json const& item) {
    return item.is_number() ? item.get<float>() : infinity;
  };
  return {value(list[0]), value(list[1])};
}

}  // namespace

scan_case::scan_case(std::filesystem::path const& path, std::optional<dtype> io) : file_(path) {
  read_metadata();
  auto const io_type = io ? *io : stored_io();
  inputs_.x = load("x", io_type);
  inputs_.z = load_optional("z", io_type);
  inputs_.B = load("B", io_type);
  inputs_.C = load("C", io_type);
  inputs_.dt = load("dt", std::nullopt);
  inputs_.A = load("A", dtype::f32);
  inputs_.D = load_parameter("D");
  inputs_.dt_bias = load_parameter("dt_bias");
  inputs_.initial_states = load_optional("initial_states", std::nullopt);
  inputs_.cu_seqlens = load_optional("cu_seqlens", dtype::i32);
  inputs_.seq_idx = load_optional("seq_idx", dtype::i32);
  inputs_.state_source = load_optional("state_source", dtype::i32);
  inputs_.state_target = load_optional("state_target", dtype::i32);
  expected_out_ = load_optional("y", dtype::f32);
  expected_final_states_ = load_optional("final_states", dtype::f32);
  for (auto const& tensor : file_.tensors()) {
    bool const known = std::ranges::find(known_tensors, tensor.name) != known_tensors.end();
    if (!known) unused_.push_back(tensor.name);
  }
  check_states_size();
}

std::vector<std::int64_t> scan_case::final_states_shape() const {
  // A pool of slots has the size that the file gives it.
  bool const pool = static_cast<bool>(inputs_.state_target);
  auto const rows = pool && expected_final_states_   ? expected_final_states_.extent(0)
                    : pool && inputs_.initial_states ? inputs_.initial_states.extent(0)
                    : inputs_.cu_seqlens
                        ? std::max<std::int64_t>(inputs_.cu_seqlens.extent(0) - 1, 0)
                        : inputs_.x.extent(0);
  return {rows, inputs_.x.extent(2), inputs_.x.extent(3), inputs_.B.extent(3)};
}

// A state is made for each sequence, with tokens or without: sizes that cost a file nothing must
// not cost the reader gigabytes.
void scan_case::check_states_size() const {
  if (inputs_.x.rank != 4 || inputs_.B.rank != 4) return;  // refused later, by name
  constexpr std::int64_t always_fine = std::int64_t{256} << 20U;
  constexpr std::int64_t most_for_a_byte = 4096;  // a token has dstate times its x in a state
  auto bytes = static_cast<std::int64_t>(size_of(state_type()));
  bool fits = true;
  for (auto const extent : final_states_shape()) {
    fits = fits && !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  std::int64_t stored = 0;
  for (auto const& tensor : file_.tensors()) {
    stored += static_cast<std::int64_t>(tensor.bytes.size());
  }
  bytes = std::max(bytes, final_states_shape().front());
  if (fits && (bytes <= always_fine || bytes / most_for_a_byte <= stored)) return;
  throw file_error(fmt::format(
      "{}: x {} and B {} ask for final states of shape ({}), out of proportion to the {} bytes of "
      "tensors in the file",
      file_.name(), shape_string(inputs_.x), shape_string(inputs_.B),
      fmt::join(final_states_shape(), ", "), stored));
}

std::vector<bool> scan_case::written_states() const {
  std::vector<bool> written(static_cast<std::size_t>(final_states_shape().front()),
                            !inputs_.state_target);
  for (std::int64_t row = 0; inputs_.state_target && row < inputs_.state_target.extent(0); ++row) {
    auto const slot = static_cast<std::int32_t const*>(
        inputs_.state_target.data)[row * inputs_.state_target.stride(0)];
    if (slot >= 0 && static_cast<std::size_t>(slot) < written.size()) {
      written[static_cast<std::size_t>(slot)] = true;
    }
  }
  return written;
}

std::int64_t scan_case::written_seqlen() const noexcept {
  auto const& bounds = inputs_.cu_seqlens;
  if (!bounds || bounds.extent(0) == 0) return inputs_.x.extent(1);
  auto const last =
      static_cast<std::int32_t const*>(bounds.data)[(bounds.extent(0) - 1) * bounds.stride(0)];
  return std::clamp<std::int64_t>(last, 0, inputs_.x.extent(1));
}

std::int64_t scan_case::tokens() const noexcept {
  if (!inputs_.seq_idx) return inputs_.x.extent(0) * written_seqlen();
  auto const* const ids = static_cast<std::int32_t const*>(inputs_.seq_idx.data);
  return inputs_.seq_idx.size() - std::count(ids, ids + inputs_.seq_idx.size(), -1);
}

dtype scan_case::stored_io() const {
  auto const& x = file_.at("x");
  for (auto const* name : {"x", "z", "B", "C"}) {
    auto const* tensor = file_.find(name);
    if (tensor == nullptr) continue;
    if (!is_floating_type(tensor->type)) {
      throw file_error(fmt::format("{}: tensor '{}' has type {}; name the type to compute in",
                                   file_.name(), name, to_string(tensor->type)));
    }
    if (tensor->type != x.type) {
      throw file_error(
          fmt::format("{}: tensor '{}' has type {}, but x has {}; name the type to compute in",
                      file_.name(), name, to_string(tensor->type), to_string(x.type)));
    }
  }
  return *to_dtype(x.type);
}

const_tensor_view scan_case::load(std::string const& name, std::optional<dtype> as) {
  auto const& tensor = file_.at(name);
  auto const type = as ? *as : is_floating_type(tensor.type) ? *to_dtype(tensor.type) : dtype::f32;
  bool const aligned = reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % size_of(type) == 0;
  if (to_dtype(tensor.type) == type && aligned) return file_.view(name);
  if (tensor.shape.size() > static_cast<std::size_t>(max_rank)) return file_.view(name);  // throws
  static constexpr std::array<std::int64_t, 1> scalar = {1};
  auto& copy = converted_.emplace_back(
      type, tensor.shape.empty() ? std::span<std::int64_t const>(scalar) : tensor.shape);
  file_.copy_to(name, copy.view());
  return copy.view();
}

const_tensor_view scan_case::load_optional(std::string const& name, std::optional<dtype> as) {
  return file_.find(name) == nullptr ? const_tensor_view{} : load(name, as);
}

const_tensor_view scan_case::load_parameter(std::string const& name) {
  auto const* tensor = file_.find(name);
  if (tensor == nullptr) return {};
  return load(name, to_dtype(tensor->type) == io() ? io() : dtype::f32);
}

void scan_case::read_metadata() {
  options_.dt_softplus = read_boolean(file_, "dt_softplus");
  options_.dt_limit = read_limits(file_, "dt_limit");
  options_.chunk_size = read_count(file_, "chunk_size");
  if (auto const* regime = find_metadata(file_, "regime")) regime_ = *regime;
}

}  // namespace mambatile::evaluation
