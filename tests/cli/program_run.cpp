#include "program_run.hpp"

#include <sys/wait.h>

#include <cstdlib>

#include "unit/safetensors_file.hpp"

namespace mambatile::testing {
namespace {

std::string text_of(std::filesystem::path const& path) {
  auto const bytes = read_bytes(path);
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

}  // namespace

program_run run_program(std::string const& arguments, std::string const& environment) {
  temporary_folder const folder;
  auto const out = folder / "out";
  auto const err = folder / "err";
  auto const command = environment + " '" MAMBATILE_PROGRAM "' " + arguments + " >'" +
                       out.string() + "' 2>'" + err.string() + "' </dev/null";
  int const status = std::system(command.c_str());
  program_run run;
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = text_of(out);
  run.err = text_of(err);
  return run;
}

}  // namespace mambatile::testing
