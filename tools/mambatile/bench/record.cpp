#include "bench/record.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "text.hpp"

namespace mambatile::program {

void print_json(bench_record const& record) {
  nlohmann::ordered_json line = {
      {"operator", record.operator_name},
      {"backend", record.backend},
      {"plan", record.plan},
      {"shape", record.shape},
      {"batch", record.batch},
      {"seqlen", record.seqlen},
      {"threads", record.threads},
      {"io", to_string(record.io)},
  };
  if (record.state) line["state"] = to_string(*record.state);
  line.update({
      {"ms", record.ms},
      {"ms_min", record.ms_min},
      {"tokens_per_s", record.tokens_per_s()},
  });
  if (record.moved_bytes != 0) line["gbytes_per_s"] = record.gbytes_per_s();
  auto const fraction = record.fraction_of_peak;
  line["fraction_of_peak"] = fraction ? nlohmann::ordered_json(*fraction) : nullptr;
  line["workspace_bytes"] = record.workspace_bytes;
  if (record.variant != "plain") line["variant"] = record.variant;
  for (auto const& peer : record.peers) {
    line[peer.name + "_ms"] = peer.ms;
    line[peer.name + "_ratio"] = peer.ratio;
  }
  fmt::print("{}\n", json_text(line));
  std::fflush(stdout);
}

void print_table(std::vector<bench_record> const& records) {
  std::vector<std::string> heading = {"shape",   "variant", "batch",  "seqlen",  "threads",
                                      "io",      "plan",    "ms",     "min",     "tokens/s",
                                      "GFLOP/s", "GB/s",    "% peak", "tensors", "workspace"};
  if (records.empty()) return;
  // Every record of a run has the same peers.
  for (auto const& peer : records.front().peers) {
    heading.push_back(peer.name + " ms");
    heading.push_back(peer.name + " ratio");
  }
  auto const columns = heading.size();
  table rows(std::move(heading));
  std::vector<std::size_t> right = {2, 3, 4};
  for (std::size_t column = 7; column < columns; ++column) right.push_back(column);
  rows.align_right(right);
  for (auto const& record : records) {
    auto const fraction = record.fraction_of_peak;
    std::vector<std::string> row = {
        record.shape,
        record.variant,
        std::to_string(record.batch),
        std::to_string(record.seqlen),
        std::to_string(record.threads),
        fmt::format("{}{}", to_string(record.io),
                    record.state ? fmt::format("/{}", to_string(*record.state)) : ""),
        record.plan,
        fmt::format("{:.3f}", record.ms),
        fmt::format("{:.3f}", record.ms_min),
        count_text(record.tokens_per_s()),
        record.gflop == 0 ? "-" : fmt::format("{:.1f}", record.gflops()),
        record.moved_bytes == 0 ? "-" : fmt::format("{:.1f}", record.gbytes_per_s()),
        fraction ? fmt::format("{:.0f}", *fraction * 100) : "-",
        bytes_text(record.tensor_bytes),
        bytes_text(static_cast<double>(record.workspace_bytes)),
    };
    for (auto const& peer : record.peers) {
      row.push_back(fmt::format("{:.3f}", peer.ms));
      row.push_back(fmt::format("{:.2f}", peer.ratio));
    }
    rows.add(std::move(row));
  }
  fmt::print("{}", rows.text());
}

}  // namespace mambatile::program
