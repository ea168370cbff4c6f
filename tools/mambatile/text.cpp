#include "text.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mambatile::program {
namespace {

std::string with_unit(double value, double step, std::array<std::string_view, 5> const& units) {
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  // Three digits; what has no unit is a whole number.
  int const decimals = unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

// Characters shown, for text that is UTF-8.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

}  // namespace

std::string bytes_text(double bytes) {
  return with_unit(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too; in UTF-8, 0xc2 and one byte more.
    bool const upper = byte == 0xc2 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xe0U) == 0x80U;
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (upper) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string json_text(nlohmann::ordered_json const& value) {
  return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string count_text(double count) {
  auto text = with_unit(count, 1000, {"", "k", "M", "G", "T"});
  if (text.back() == ' ') text.pop_back();
  return text;
}

void table::add(std::vector<std::string> row) {
  for (auto& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (auto const& row : rows_) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string result;
  for (auto const& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      std::string const padding(widths[column] - width_of(row[column]), ' ');
      bool const right = std::ranges::find(right_, column) != right_.end();
      if (column != 0) line += "  ";
      line += right ? padding + row[column] : row[column] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  }
  return result;
}

progress::progress(std::string what, std::int64_t steps)
    : what_(std::move(what)),
      steps_(steps),
      terminal_(::isatty(STDERR_FILENO) == 1),
      started_(seconds_now()) {}

progress::~progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void progress::step() {
  constexpr double silent_seconds = 1;
  constexpr double seconds_between = 0.1;
  ++done_;
  double const now = seconds_now();
  if (!terminal_ || now - started_ < silent_seconds || now - updated_ < seconds_between) return;
  updated_ = now;
  shown_ = true;
  fmt::print(stderr, "\r\x1b[K{}: {} of {}", what_, done_, steps_);
  std::fflush(stderr);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace mambatile::program
