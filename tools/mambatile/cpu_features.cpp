#include "cpu_features.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

namespace mambatile::program {
namespace {

using namespace std::string_view_literals;

// Vector extensions, as Linux names them on x86-64 and AArch64.
constexpr std::array interesting = {
    "sse4_2"sv,      "avx"sv,      "f16c"sv,     "fma"sv,      "avx2"sv,        "avx_vnni"sv,
    "avx512f"sv,     "avx512bw"sv, "avx512dq"sv, "avx512vl"sv, "avx512_vnni"sv, "avx512_bf16"sv,
    "avx512_fp16"sv, "amx_tile"sv, "amx_bf16"sv, "asimd"sv,    "asimdhp"sv,     "asimddp"sv,
    "bf16"sv,        "i8mm"sv,     "sve"sv,      "sve2"sv,     "svebf16"sv,
};

}  // namespace

cpu_description describe_cpu() {
  cpu_description description;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    auto const colon = line.find(':');
    if (colon == std::string::npos) continue;
    auto const key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    auto const value = colon + 2 <= line.size() ? line.substr(colon + 2) : std::string();
    if (key == "model name") description.model = value;
    if (key != "flags" && key != "Features") continue;
    std::istringstream words(value);
    for (std::string word; words >> word;) {
      if (std::ranges::find(interesting, word) != interesting.end()) {
        description.features.push_back(word);
      }
    }
  }
  return description;
}

}  // namespace mambatile::program
