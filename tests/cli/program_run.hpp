#pragma once

#include <string>

namespace mambatile::testing {

struct program_run {
  int status = -1;  ///< exit status; 128 + signal where it was killed
  std::string out;
  std::string err;
};

/// Runs the built program with these arguments, as a shell reads them. `environment` is put before
/// it: "NAME=value".
program_run run_program(std::string const& arguments, std::string const& environment = "");

}  // namespace mambatile::testing
