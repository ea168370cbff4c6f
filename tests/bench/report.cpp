#include "report.hpp"

#include <cstdio>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mambatile::benchmark {
namespace {

std::string milliseconds(std::optional<timing> const& taken) {
  if (!taken) return "-";
  return taken->minimum < 1 ? fmt::format("{:.4f}", taken->minimum)
                            : fmt::format("{:.3f}", taken->minimum);
}

void print(std::string const& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

report::report(std::string const& json_path) {
  if (json_path.empty()) return;
  json_.open(json_path);
  if (!json_) throw std::runtime_error("cannot write " + json_path);
}

void report::machine(std::map<std::string, std::string> const& words,
                     std::map<std::string, double> const& numbers) {
  nlohmann::json line = {{"kind", "machine"}};
  for (auto const& [name, value] : words) {
    line[name] = value;
    print(fmt::format("{}: {}", name, value));
  }
  for (auto const& [name, value] : numbers) {
    line[name] = value;
    print(fmt::format("{}: {:.1f}", name, value));
  }
  if (json_.is_open()) json_ << line.dump() << std::endl;
}

void report::add(measurement const& cell) {
  if (cell.group != group_) {
    group_ = cell.group;
    print(fmt::format("\n{}\n  {:<34} {:>3} {:>10} {:>10}  {:<34} {:>7} {:>7}", group_, "cell",
                      "thr", "ms", "ggml ms", "figure", "value", "goal"));
  }
  bool first = true;
  for (auto const& item : cell.figures) {
    auto const where = first ? fmt::format("{:<34} {:>3} {:>10} {:>10}", cell.cell, cell.threads,
                                           milliseconds(cell.ours), milliseconds(cell.ggml))
                             : fmt::format("{:<34} {:>3} {:>10} {:>10}", "", "", "", "");
    first = false;
    print(fmt::format("  {}  {:<34} {:>7.3g} {:>1}{:>6} {}", where, item.what, item.value,
                      item.at_most ? "<" : " ", fmt::format("{:.3g}", item.goal),
                      item.met() ? "" : "missed"));
    ++figures_;
    if (item.met()) {
      ++met_;
    } else {
      missed_.push_back(fmt::format("{}: {}, {} threads: {} {:.3g}, goal {:.3g}", cell.group,
                                    cell.cell, cell.threads, item.what, item.value, item.goal));
    }
  }
  if (!cell.problem.empty()) {
    ++unmeasured_;
    print(fmt::format("    {}: {}", cell.cell, cell.problem));
  }
  if (!json_.is_open()) return;

  nlohmann::json line = {
      {"kind", "cell"}, {"group", cell.group}, {"cell", cell.cell}, {"threads", cell.threads}};
  if (cell.ours) {
    line["ms"] = cell.ours->minimum;
    line["ms_median"] = cell.ours->median;
    line["rounds"] = cell.ours->rounds;
  }
  if (cell.ggml) {
    line["ggml_ms"] = cell.ggml->minimum;
    line["ggml_ms_median"] = cell.ggml->median;
    if (cell.ours) line["ggml_ratio"] = cell.ggml->minimum / cell.ours->minimum;
  }
  if (cell.ggml_difference) line["ggml_difference"] = *cell.ggml_difference;
  for (auto const& [name, value] : cell.numbers) line[name] = value;
  for (auto const& [name, value] : cell.words) line[name] = value;
  if (!cell.problem.empty()) line["problem"] = cell.problem;
  for (auto const& item : cell.figures) {
    line["figures"].push_back({{"what", item.what},
                               {"value", item.value},
                               {"goal", item.goal},
                               {"at_most", item.at_most},
                               {"met", item.met()}});
  }
  json_ << line.dump() << std::endl;
}

void report::summary() const {
  print(fmt::format("\n{} of {} figures reach their goals; {} cells could not be measured", met_,
                    figures_, unmeasured_));
  for (auto const& line : missed_) print("  missed  " + line);
}

}  // namespace mambatile::benchmark
