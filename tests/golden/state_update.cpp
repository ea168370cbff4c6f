#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>

#include "evaluation/tensor_error.hpp"
#include "golden/golden_file.hpp"
#include "support/execute.hpp"
#include "support/scan_check.hpp"
#include "support/update_check.hpp"

// Files made by the published implementations, evaluated in f64: steps in a row that hand the state
// on, alone and after a prefill.

namespace mambatile::testing {
namespace {

// Tensors of a golden file on the device, its io tensors in one type.
class update_file {
 public:
  update_file(std::string const& folder, std::string const& name, dtype io)
      : file_(std::filesystem::path(MAMBATILE_TEST_DATA_DIR) / "golden" / folder /
              (name + ".safetensors")),
        io_(io) {}

  /// Absent where the file has none.
  [[nodiscard]] test_tensor input(std::string const& name) const {
    bool const is_io = name == "x" || name == "z" || name == "B" || name == "C";
    return load(name, is_io ? io_ : name == "state_batch_indices" ? dtype::i32 : dtype::f32);
  }
  [[nodiscard]] test_tensor load(std::string const& name, dtype type) const {
    auto const host = file_.tensor(name, type);
    if (!host.view()) return {};
    auto tensor = test_tensor::copy_of(host.view());
    tensor.upload();
    return tensor;
  }
  [[nodiscard]] bool flag(std::string const& key) const { return file_.text(key) == "true"; }
  [[nodiscard]] std::int64_t count(std::string const& key) const {
    return std::stoll(file_.text(key));
  }

 private:
  golden_file file_;
  dtype io_;
};

// The part [index] of the first axis, which goes away.
template <class Void>
basic_tensor_view<Void> at(basic_tensor_view<Void> view, std::int64_t index) {
  if (!view) return view;
  view = slice(view, 0, index, 1);
  for (std::size_t axis = 1; axis < static_cast<std::size_t>(view.rank); ++axis) {
    view.extents[axis - 1] = view.extents[axis];
    view.strides[axis - 1] = view.strides[axis];
  }
  --view.rank;
  return view;
}

void check_close(char const* name, const_tensor_view const& got, const_tensor_view const& want,
                 unsigned slices, evaluation::error_limits const& limits) {
  auto const error = evaluation::compare(got, want, slices);
  INFO(name << ": slice " << error.slice << " (limit " << limits.slice << "), peak " << error.peak
            << " (limit " << limits.peak << "), finite " << error.finite);
  CHECK(error.within(limits));
}

struct decode_tensors {
  test_tensor x, dt, A, B, C, D, z, dt_bias, states, slots, out;

  decode_tensors(update_file const& file, dtype io)
      : x(file.input("x")),
        dt(file.input("dt")),
        A(file.input("A")),
        B(file.input("B")),
        C(file.input("C")),
        D(file.input("D")),
        z(file.input("z")),
        dt_bias(file.input("dt_bias")),
        states(file.input("initial_states")),
        slots(file.input("state_batch_indices")),
        out(io, {x.view().extent(0), x.view().extent(1), x.view().extent(2), x.view().extent(3)}) {
    out.memory().allow(out.view());
    out.upload();
  }

  // Step `step` of the file, in place.
  [[nodiscard]] state_update_arguments step(std::int64_t step) const {
    state_update_arguments arguments;
    arguments.x = at(const_tensor_view(x.view()), step);
    arguments.dt = at(const_tensor_view(dt.view()), step);
    arguments.A = A.view();
    arguments.B = at(const_tensor_view(B.view()), step);
    arguments.C = at(const_tensor_view(C.view()), step);
    arguments.D = D.view();
    arguments.z = at(const_tensor_view(z.view()), step);
    arguments.dt_bias = dt_bias.view();
    arguments.initial_states = arguments.final_states = states.view();
    arguments.state_source = arguments.state_target = slots.view();
    arguments.out = at(out.view(), step);
    return arguments;
  }
};

void check_decode(std::string const& name, dtype io) {
  INFO("golden decode file " << name << ", io " << to_string(io));
  update_file const file("decode", name, io);
  decode_tensors const tensors(file, io);
  state_update_options const options{.dt_softplus = file.flag("dt_softplus")};
  auto const steps = tensors.x.view().extent(0);
  auto const after_first = file.load("states_after_first_step", dtype::f32);
  auto const limits = limits_for(make_problem(tensors.step(0), options));
  for (std::int64_t step = 0; step < steps; ++step) {
    auto const arguments = tensors.step(step);
    execute(make_problem(arguments, options), arguments);
    if (step == 0 && after_first && !tensors.slots) {
      tensors.states.download();
      check_close("states_after_first_step", tensors.states.result(), after_first.image(),
                  evaluation::state_slices, limits.states);
    }
  }
  tensors.out.download();
  tensors.states.download();
  CHECK(tensors.out.memory().stray_write() == std::string());
  // Slices by row and head, over steps and channels.
  check_close("y", tensors.out.result(), file.load("y", dtype::f32).image(), 0b0110, limits.out);
  check_close("final_states", tensors.states.result(),
              file.load("final_states", dtype::f32).image(), evaluation::state_slices,
              limits.states);
}

TEST_CASE("state_update: golden files", "[golden]") {
  for (auto const io : {dtype::f32, dtype::bf16, dtype::f16}) {
    for (auto const* name : {"state_indices", "tied_D_z_bias_softplus", "tied_Dhp_g2",
                             "tied_many_steps", "tied_plain", "tied_zero_state"}) {
      check_decode(name, io);
    }
  }
}

TEST_CASE("state_update: the golden untied case is refused with its reason", "[golden]") {
  update_file const file("decode", "untied_all", dtype::f32);
  decode_tensors const tensors(file, dtype::f32);
  auto const arguments = tensors.step(0);
  auto const problem = make_problem(arguments, {.dt_softplus = true});
  auto const answer = tested_backend().supports(problem, tested_device());
  CHECK_FALSE(answer.ok);
  CHECK(answer.reason.find("state_update: untied dt") != std::string::npos);
  auto const message = message_of<unsupported>([&] { execute(problem, arguments); });
  CHECK(message == answer.reason);
  // Untied A alone.
  auto tied_dt = arguments;
  tied_dt.dt = at(const_tensor_view(tied_dt.dt), 0);
  tied_dt.dt_bias = {};
  auto const reason = message_of<unsupported>([&] { execute(make_problem(tied_dt), tied_dt); });
  CHECK(reason.find("state_update: untied A") != std::string::npos);
}

// The first `prefill` tokens by the scan, the rest by updates of `tokens` tokens each.
void check_prefill_decode(std::string const& name, dtype io, std::int64_t tokens) {
  INFO("golden prefill_decode file " << name << ", io " << to_string(io) << ", " << tokens
                                     << " tokens a step");
  update_file const file("prefill_decode", name, io);
  auto const x = file.input("x"), dt = file.input("dt"), A = file.input("A"), B = file.input("B"),
             C = file.input("C"), D = file.input("D"), z = file.input("z"),
             dt_bias = file.input("dt_bias"), initial = file.input("initial_states");
  auto const batch = x.view().extent(0);
  auto const seqlen = x.view().extent(1);
  auto const prefill = file.count("prefill_len");
  test_tensor const out(io, {batch, seqlen, x.view().extent(2), x.view().extent(3)});
  test_tensor const states(dtype::f32,
                           {batch, x.view().extent(2), x.view().extent(3), B.view().extent(3)});
  for (auto const* output : {&out, &states}) {
    output->memory().allow(output->view());
    output->upload();
  }
  auto const part = [](test_tensor const& tensor, std::int64_t begin, std::int64_t count) {
    return slice(tensor.view(), 1, begin, count);
  };
  scan_arguments scan;
  scan.x = part(x, 0, prefill);
  scan.dt = part(dt, 0, prefill);
  scan.A = A.view();
  scan.B = part(B, 0, prefill);
  scan.C = part(C, 0, prefill);
  scan.D = D.view();
  if (z) scan.z = part(z, 0, prefill);
  scan.dt_bias = dt_bias.view();
  scan.initial_states = initial.view();
  scan.out = part(out, 0, prefill);
  scan.final_states = states.view();
  auto const scan_problem = make_problem(scan, {.dt_softplus = true});
  execute(scan_problem, scan);
  auto const limits = limits_for(scan_problem, "normal");
  states.download();
  check_close("states_after_prefill", states.result(),
              file.load("states_after_prefill", dtype::f32).image(), evaluation::state_slices,
              limits.states);
  for (auto begin = prefill; begin < seqlen; begin += tokens) {
    auto const count = std::min(tokens, seqlen - begin);
    state_update_arguments update;
    update.x = part(x, begin, count);
    update.dt = part(dt, begin, count);
    update.A = A.view();
    update.B = part(B, begin, count);
    update.C = part(C, begin, count);
    update.D = D.view();
    if (z) update.z = part(z, begin, count);
    update.dt_bias = dt_bias.view();
    update.initial_states = update.final_states = states.view();
    update.out = part(out, begin, count);
    execute(make_problem(update, {.dt_softplus = true}), update);
  }
  out.download();
  states.download();
  check_close("y", out.result(), file.load("y", dtype::f32).image(), evaluation::out_slices,
              limits.out);
  check_close("final_states", states.result(), file.load("final_states", dtype::f32).image(),
              evaluation::state_slices, limits.states);
}

TEST_CASE("state_update: golden files of a prefill that goes on", "[golden]") {
  for (auto const io : {dtype::f32, dtype::bf16}) {
    for (auto const* name : {"T1_k5", "T64_k3_g2_init", "T70_k8"}) {
      check_prefill_decode(name, io, 1);
      check_prefill_decode(name, io, 3);
    }
  }
}

}  // namespace
}  // namespace mambatile::testing
