#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

// Text for people: units, tables, progress.

namespace mambatile::program {

/// "512 B", "1.50 MiB".
[[nodiscard]] std::string bytes_text(double bytes);

/// Text from outside (names in a file, paths) for a terminal: control characters as \\x1b, the
/// rest as it is.
[[nodiscard]] std::string printable(std::string_view text);

/// One line of JSON in ASCII: control characters are escaped, what is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_text(nlohmann::ordered_json const& value);

/// "12.3 M", "45.6 k".
[[nodiscard]] std::string count_text(double count);

/// Rows of equal length, printed with aligned columns; the first row is the heading.
class table {
 public:
  explicit table(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }
  void add(std::vector<std::string> row);
  /// Columns named here are set flush right.
  void align_right(std::vector<std::size_t> columns) { right_ = std::move(columns); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> right_;
};

/// One line on stderr that is rewritten as work goes on and erased at the end; nothing at all where
/// stderr is no terminal. The first second shows nothing.
class progress {
 public:
  progress(std::string what, std::int64_t steps);
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress();
  void step();

 private:
  std::string what_;
  std::int64_t steps_;
  std::int64_t done_ = 0;
  bool terminal_;
  bool shown_ = false;
  double started_;
  double updated_ = 0;
};

/// Seconds of a steady clock.
[[nodiscard]] double seconds_now();

}  // namespace mambatile::program
