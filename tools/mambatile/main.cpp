#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include <mambatile/mambatile.hpp>

#include "command.hpp"
#include "text.hpp"

int main(int count, char** arguments) {
  using namespace mambatile::program;
  exit_status status = success;
  CLI::App program{"The Mamba-2 (SSD) forward pass on CPUs and GPUs.", "mambatile"};
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string(mambatile::version()));
  program.footer(
      "Exit status: 0 done; 1 a result is beyond tolerance; 2 wrong usage; 3 a file, argument or\n"
      "backend is refused; 4 an internal error.");
  add_info_command(program);
  add_scan_command(program, status);
  add_demo_command(program, status);
  add_generate_command(program);
  add_make_checkpoint_command(program);
  add_bench_command(program);
  try {
    program.parse(count, arguments);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      fmt::print(stderr, "mambatile: the results could not be written to standard output\n");
      return refused;
    }
    return status;
  } catch (CLI::ParseError const& problem) {
    return program.exit(problem) == 0 ? success : usage_error;
  } catch (mambatile::error const& problem) {
    fmt::print(stderr, "mambatile: {}\n", printable(problem.what()));
    return refused;
  } catch (std::bad_alloc const&) {
    fmt::print(stderr, "mambatile: there is not enough memory for what was asked\n");
    return refused;
  } catch (std::length_error const&) {
    fmt::print(stderr, "mambatile: what was asked has sizes beyond any memory\n");
    return refused;
  } catch (std::filesystem::filesystem_error const& problem) {
    fmt::print(stderr, "mambatile: {}\n", printable(problem.what()));
    return refused;
  } catch (std::exception const& problem) {
    fmt::print(stderr, "mambatile: internal error: {}\n", printable(problem.what()));
    return internal_error;
  }
}
