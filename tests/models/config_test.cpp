#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <mambatile/checkpoint.hpp>
#include <mambatile/errors.hpp>

#include "models/small_checkpoint.hpp"

// Each key that the reader claims to read changes the result or is refused.

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using json = nlohmann::json;

json const transformers = {
    {"model_type", "mamba2"}, {"vocab_size", 97},  {"hidden_size", 64}, {"num_hidden_layers", 2},
    {"num_heads", 8},         {"head_dim", 16},    {"n_groups", 2},     {"state_size", 32},
    {"conv_kernel", 4},       {"use_bias", false}, {"expand", 2},
};
json const state_spaces = {
    {"d_model", 64},
    {"n_layer", 2},
    {"vocab_size", 97},
    {"ssm_cfg", {{"layer", "Mamba2"}, {"d_state", 32}, {"headdim", 16}, {"ngroups", 2}}},
};

model_config parse(json const& config) { return parse_model_config(config.dump(), "config.json"); }

struct change {
  std::string key;  // "ssm_cfg.layer" is nested
  json value;
};

json changed(json config, change const& by) {
  auto const dot = by.key.find('.');
  auto& place = dot == std::string::npos ? config[by.key]
                                         : config[by.key.substr(0, dot)][by.key.substr(dot + 1)];
  place = by.value;
  return config;
}

void check_changes(json const& base, std::vector<change> const& changes) {
  auto const unchanged = parse(base);
  for (auto const& each : changes) {
    INFO(each.key << " = " << each.value);
    CHECK(parse(changed(base, each)) != unchanged);
  }
}

void check_refusals(json const& base, std::vector<change> const& changes) {
  for (auto const& each : changes) {
    INFO(each.key << " = " << each.value);
    auto const message = file_error_of([&] { (void)parse(changed(base, each)); });
    CHECK_THAT(message, ContainsSubstring("config.json: ") && ContainsSubstring(each.key + " is "));
  }
}

}  // namespace

TEST_CASE("config: each transformers key changes the result", "[models]") {
  check_changes(transformers, {{"vocab_size", 98},
                               {"hidden_size", 65},
                               {"num_hidden_layers", 3},
                               {"num_heads", 10},
                               {"head_dim", 17},
                               {"n_groups", 4},
                               {"state_size", 33},
                               {"conv_kernel", 3},
                               {"use_bias", true},
                               {"use_conv_bias", false},
                               {"layer_norm_epsilon", 1e-6},
                               {"time_step_limit", {0.0, 1.0}},
                               {"time_step_limit", {0.5, "Infinity"}},
                               {"residual_in_fp32", false},
                               {"tie_word_embeddings", true},
                               {"chunk_size", 64},
                               {"bos_token_id", 3},
                               {"eos_token_id", 3},
                               {"eos_token_id", {3, 4}}});
  // What only shapes training's start, or is known from elsewhere.
  for (auto const& each : std::vector<change>{{"time_step_min", 0.5}, {"expand", 7}}) {
    CHECK(parse(changed(transformers, each)) == parse(transformers));
  }
}

TEST_CASE("config: each state-spaces key changes the result", "[models]") {
  check_changes(state_spaces, {{"d_model", 128},
                               {"n_layer", 3},
                               {"vocab_size", 98},
                               {"pad_vocab_size_multiple", 16},
                               {"residual_in_fp32", false},
                               {"tie_embeddings", false},
                               {"ssm_cfg.d_state", 64},
                               {"ssm_cfg.d_conv", 3},
                               {"ssm_cfg.expand", 4},
                               {"ssm_cfg.headdim", 32},
                               {"ssm_cfg.ngroups", 4},
                               {"ssm_cfg.D_has_hdim", true},
                               {"ssm_cfg.rmsnorm", false},
                               {"ssm_cfg.norm_before_gate", true},
                               {"ssm_cfg.dt_limit", {0.1, 0.2}},
                               {"ssm_cfg.bias", true},
                               {"ssm_cfg.conv_bias", false},
                               {"ssm_cfg.chunk_size", 64}});
  auto const config = parse(state_spaces);
  CHECK(config.padded_vocab == 104);
  CHECK(config.nheads == 8);
  CHECK(config.tied_head);
  CHECK(config.conv_width == 4);
}

TEST_CASE("config: what cannot be honoured is refused by name", "[models]") {
  std::vector<change> whole_numbers;
  for (auto const* key : {"vocab_size", "hidden_size", "num_heads", "head_dim", "n_groups",
                          "state_size", "conv_kernel", "chunk_size"}) {
    for (auto const& value : {json(0), json(-1), json(1.5), json("7"), json(true), json::array(),
                              json(2147483648), json(18446744073709551615U)}) {
      whole_numbers.push_back({key, value});
    }
  }
  check_refusals(transformers, whole_numbers);
  check_refusals(transformers, {{"num_hidden_layers", -1},
                                {"model_type", "mamba"},
                                {"model_type", 2},
                                {"hidden_act", "gelu"},
                                {"hidden_act", 1},
                                {"rms_norm", false},
                                {"rms_norm", "yes"},
                                {"use_bias", 1},
                                {"use_conv_bias", "no"},
                                {"tie_word_embeddings", 0},
                                {"layer_norm_epsilon", 0},
                                {"layer_norm_epsilon", -1e-5},
                                {"layer_norm_epsilon", 1e-60},
                                {"layer_norm_epsilon", "1e-5"},
                                {"time_step_limit", 1.0},
                                {"time_step_limit", {1.0}},
                                {"time_step_limit", {2.0, 1.0}},
                                {"time_step_limit", {-1.0, 1.0}},
                                {"time_step_limit", {0.0, "-Infinity"}},
                                {"time_step_limit", {0.0, "NaN"}},
                                {"time_step_limit", {0.0, {{"__float__", "NaN"}}}},
                                {"time_step_limit", {0.0, {{"__float__", 1}}}},
                                {"eos_token_id", 97},
                                {"eos_token_id", -1},
                                {"eos_token_id", {1, 97}},
                                {"eos_token_id", {1.5}},
                                {"eos_token_id", 18446744073709551615U},
                                {"bos_token_id", "a"}});
  check_refusals(state_spaces, {{"d_intermediate", 8},
                                {"attn_layer_idx", {1}},
                                {"attn_layer_idx", 1},
                                {"rms_norm", false},
                                {"ssm_cfg", 1},
                                {"ssm_cfg.layer", "Mamba1"},
                                {"ssm_cfg.d_ssm", 64},
                                {"ssm_cfg.activation", "relu"},
                                {"ssm_cfg.dt_limit", {1, 0}},
                                {"ssm_cfg.d_state", 0}});
  auto const refused = [](json const& base, change const& by, std::string const& message) {
    INFO(by.key);
    CHECK_THAT(file_error_of([&] { (void)parse(changed(base, by)); }), ContainsSubstring(message));
  };
  refused(transformers, {"n_groups", 3}, "8 heads are not a multiple of 3 groups");
  refused(transformers, {"head_dim", 2147483647}, "heads * channels of a head");
  refused(transformers, {"state_size", 2147483647}, "groups * states");
  refused(state_spaces, {"ssm_cfg.headdim", 48}, "ssm_cfg.headdim = 48");
  refused(state_spaces, {"ssm_cfg.ngroups", 3}, "ssm_cfg.ngroups = 3");
  refused(state_spaces, {"ssm_cfg.ngroups", 16}, "8 heads are not a multiple of 16 groups");
  auto no_layer = state_spaces;
  no_layer["ssm_cfg"].erase("layer");
  CHECK_THAT(file_error_of([&] { (void)parse(no_layer); }), ContainsSubstring("ssm_cfg.layer is"));
  for (auto const* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_heads", "head_dim",
                          "n_groups", "state_size", "conv_kernel"}) {
    auto without = transformers;
    without.erase(key);
    CHECK_THAT(file_error_of([&] { (void)parse(without); }),
               ContainsSubstring(std::string(key) + " is absent"));
  }
}

TEST_CASE("config: infinities in each spelling, null as absent", "[models]") {
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  auto const limit_of = [](std::string const& high) {
    auto text = transformers.dump();
    text.pop_back();
    text += R"(,"time_step_limit":[0.25,)" + high + "]}";
    return parse_model_config(text, "config.json").dt_limit;
  };
  CHECK(limit_of("Infinity")[1] == infinity);
  CHECK(limit_of("Infinity")[0] == 0.25F);
  CHECK(limit_of("\"inf\"")[1] == infinity);
  CHECK(limit_of("\"Infinity\"")[1] == infinity);
  CHECK(limit_of(R"({"__float__": "Infinity"})")[1] == infinity);
  CHECK(limit_of("3")[1] == 3.0F);
  CHECK(parse(changed(transformers, {"time_step_limit", nullptr})) == parse(transformers));
  for (auto const* bad : {"NaN", "-Infinity", "Infinity2", "infinity", "1e"}) {
    INFO(bad);
    CHECK(!file_error_of([&] { (void)limit_of(bad); }).empty());
  }
}

TEST_CASE("config: text that is no object of distinct keys", "[models]") {
  auto const error_of = [](std::string const& text) {
    return file_error_of([&] { (void)parse_model_config(text, "config.json"); });
  };
  CHECK_THAT(error_of(""), ContainsSubstring("not valid JSON"));
  CHECK_THAT(error_of("[]"), ContainsSubstring("expected a JSON object"));
  CHECK_THAT(error_of("{}"), ContainsSubstring("model_type"));
  CHECK_THAT(error_of(R"({"d_model": 1, "d_model": 1})"), ContainsSubstring("appears twice"));
  CHECK_THAT(error_of(R"({"a": {"b": 1, "b": 2}})"), ContainsSubstring("\"b\" appears twice"));
  CHECK_THAT(error_of(R"({"a": NaN})"), ContainsSubstring("NaN"));
  CHECK_THAT(error_of("{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}"),
             ContainsSubstring("nested more than"));
  CHECK(!error_of("{\"a\": \"\xff\"}").empty());
  // In strings, such words are text.
  auto named = transformers;
  named["note"] = "NaN Infinity \\\" NaN";
  CHECK(parse(named) == parse(transformers));
}
