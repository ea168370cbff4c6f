#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "evaluation/scan_case.hpp"
#include "evaluation/tensor_error.hpp"
#include "support/execute.hpp"
#include "support/scan_check.hpp"
#include "support/scan_oracle.hpp"
#include "support/test_tensor.hpp"

// Files made by the published implementations, evaluated in f64.

namespace mambatile::testing {
namespace {

std::vector<std::filesystem::path> files_in(std::string const& folder) {
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(
           std::filesystem::path(MAMBATILE_TEST_DATA_DIR) / "golden" / folder)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Tokens beyond the last sequence are nobody's.
const_tensor_view written(evaluation::scan_case const& file, const_tensor_view const& out) {
  return slice(out, 1, 0, file.written_seqlen());
}

void check_file(std::filesystem::path const& path, dtype io) {
  INFO("golden file " << path.filename().string() << ", io " << to_string(io));
  evaluation::scan_case const file(path, io);
  auto host = file.inputs();
  auto const copy = [](const_tensor_view const& view) {
    auto tensor = test_tensor::copy_of(view);
    tensor.upload();
    return tensor;
  };
  auto const x = copy(host.x), dt = copy(host.dt), A = copy(host.A), B = copy(host.B),
             C = copy(host.C), D = copy(host.D), z = copy(host.z), dt_bias = copy(host.dt_bias),
             initial_states = copy(host.initial_states), cu_seqlens = copy(host.cu_seqlens),
             seq_idx = copy(host.seq_idx);
  test_tensor const out(io,
                        {host.x.extent(0), host.x.extent(1), host.x.extent(2), host.x.extent(3)});
  test_tensor const final_states(file.state_type(), file.final_states_shape());
  for (auto const* output : {&out, &final_states}) {
    output->memory().allow(output->view());
    output->upload();
  }
  scan_arguments arguments;
  arguments.x = x.view();
  arguments.dt = dt.view();
  arguments.A = A.view();
  arguments.B = B.view();
  arguments.C = C.view();
  arguments.D = D.view();
  arguments.z = z.view();
  arguments.dt_bias = dt_bias.view();
  arguments.initial_states = initial_states.view();
  arguments.cu_seqlens = cu_seqlens.view();
  arguments.seq_idx = seq_idx.view();
  arguments.out = out.view();
  arguments.final_states = final_states.view();
  auto const problem = make_problem(arguments, file.options());
  execute(problem, arguments);
  for (auto const* output : {&out, &final_states}) {
    output->download();
    CHECK(output->memory().stray_write() == std::string());
  }

  auto const limits = limits_for(problem, file.regime());
  auto const check = [&](char const* name, const_tensor_view const& got,
                         const_tensor_view const& want, unsigned slices,
                         evaluation::error_limits const& allowed) {
    auto const error = evaluation::compare(got, want, slices);
    INFO(name << ": slice " << error.slice << " (limit " << allowed.slice << "), peak "
              << error.peak << " (limit " << allowed.peak << "), finite " << error.finite);
    CHECK(error.within(allowed));
  };
  REQUIRE(file.expected_out());
  REQUIRE(file.expected_final_states());
  check("out", written(file, out.result()), written(file, file.expected_out()),
        evaluation::out_slices, limits.out);
  check("final_states", final_states.result(), file.expected_final_states(),
        evaluation::state_slices, limits.states);
}

TEST_CASE("scan: golden files", "[golden]") {
  auto const files = files_in("ssd");
  CHECK(files.size() == 39);
  for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
    DYNAMIC_SECTION("io " << to_string(io)) {
      for (auto const& file : files) check_file(file, io);
    }
  }
}

}  // namespace
}  // namespace mambatile::testing
