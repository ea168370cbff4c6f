#include "options.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace mambatile::program {

void add_backend_option(CLI::App& command, std::string& name) {
  command.add_option("--backend", name, "Backend to run on (default: see `mambatile info`)")
      ->type_name("NAME");
}

backend const& chosen_backend(std::string const& name) {
  return name.empty() ? default_backend() : find_backend(name);
}

void add_dtype_option(CLI::App& command, std::string const& name, std::string const& help,
                      std::function<void(dtype)> set) {
  command
      .add_option_function<std::string>(
          name,
          [set = std::move(set)](std::string const& value) {
            set(value == "bf16" ? dtype::bf16 : value == "f16" ? dtype::f16 : dtype::f32);
          },
          help)
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->type_name("TYPE");
}

CLI::Validator at_least(std::int64_t least) {
  return {[least](std::string const& text) {
            std::int64_t value = 0;
            auto const* const end = text.data() + text.size();
            auto const [stop, problem] = std::from_chars(text.data(), end, value);
            if (problem == std::errc() && stop == end && value >= least) return std::string();
            return fmt::format("{} is not a whole number of at least {}", text, least);
          },
          fmt::format(">={}", least)};
}

void add_model_options(CLI::App& command, model_options& options) {
  add_dtype_option(command, "--io", "Type of activations: f32, bf16 or f16",
                   [&options](dtype type) { options.io = type; });
  add_dtype_option(command, "--state", "Type of SSM states: f32, bf16 or f16",
                   [&options](dtype type) { options.state = type; });
  command.add_option("--threads", options.threads, "Most threads; 0 takes all")->check(at_least(0));
}

void add_products_option(CLI::App& command, products& math) {
  command
      .add_option_function<std::string>(
          "--products",
          [&math](std::string const& value) {
            math = value == "tf32" ? products::tf32 : products::accurate;
          },
          "How f32 operands are multiplied")
      ->check(CLI::IsMember({"accurate", "tf32"}))
      ->type_name("HOW");
}

int available_processors() {
  ::cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace mambatile::program
