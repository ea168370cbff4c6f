#include <cstdint>
#include <filesystem>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/norm.hpp>

#include "evaluation/conv_norm_tolerances.hpp"
#include "evaluation/tensor_error.hpp"
#include "golden/golden_file.hpp"
#include "support/execute.hpp"
#include "support/test_tensor.hpp"

// Files made by the published implementation, evaluated in f64.

namespace mambatile::testing {
namespace {

void check_norm(std::filesystem::path const& path, dtype io) {
  INFO(path.filename().string() << ", io " << to_string(io));
  golden_file const file(path);
  auto const upload = [&](char const* name, dtype type) {
    auto tensor = test_tensor::copy_of(file.tensor(name, type).view());
    tensor.upload();
    return tensor;
  };
  auto const x = upload("x", io), z = upload("z", io), weight = upload("weight", dtype::f32),
             bias = upload("bias", dtype::f32);
  auto const want = file.tensor("y", dtype::f32);
  test_tensor const out(io, {want.view().extent(0), want.view().extent(1)});
  out.memory().allow(out.view());
  out.upload();

  gated_rms_norm_arguments const arguments{x.view(), z.view(), weight.view(), bias.view(),
                                           out.view()};
  gated_rms_norm_options options;
  options.eps = std::stof(file.text("eps"));
  options.norm_before_gate = file.text("norm_before_gate") == "true";
  if (file.text("group_size") != "none") options.group_size = std::stoll(file.text("group_size"));
  execute(make_problem(arguments, options), arguments);
  out.download();
  CHECK(out.memory().stray_write() == std::string());

  auto const error = evaluation::compare(out.result(), want.view(), 0);
  auto const limits = evaluation::limits_of_gated_rms_norm(io);
  INFO("out: error " << error.slice << " (limit " << limits.slice << "), peak " << error.peak
                     << " (limit " << limits.peak << ")");
  CHECK(error.within(limits));
}

TEST_CASE("norm: golden files", "[golden]") {
  auto const files = golden_files("norm");
  CHECK(files.size() == 8);
  for (auto const& file : files) {
    for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) check_norm(file, io);
  }
}

}  // namespace
}  // namespace mambatile::testing
