#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/model.hpp>

#include "models/small_checkpoint.hpp"
#include "unit/safetensors_file.hpp"

using namespace mambatile;
using namespace mambatile::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr evaluation::checkpoint_shape shape = {"odd", 72, 3, 6, 20, 2, 24, 4, 131};

std::vector<std::int32_t> ids_of(std::int64_t count, std::int64_t pace) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<std::int32_t>((i * pace + pace) % shape.vocab_size));
  }
  return ids;
}

std::vector<float> run(model& of, model_cache& cache, std::vector<sequence_tokens> const& batch,
                       logits_of wanted = logits_of::last_tokens) {
  std::vector<float> logits(
      static_cast<std::size_t>(model::logits_rows(batch, wanted) * of.config().vocab_size),
      std::numeric_limits<float>::quiet_NaN());
  of.forward(cache, batch, wanted, logits);
  return logits;
}

std::vector<float> row(std::vector<float> const& logits, std::size_t index) {
  auto const length = static_cast<std::ptrdiff_t>(shape.vocab_size);
  auto const begin = logits.begin() + static_cast<std::ptrdiff_t>(index) * length;
  return {begin, begin + length};
}

double distance(std::vector<float> const& one, std::vector<float> const& other) {
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    double const gap = std::fabs(double{one[i]} - double{other[i]});
    worst = gap <= worst ? worst : gap;
    largest = std::fmax(largest, std::fabs(double{other[i]}));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("model: a sequence's logits do not depend on its neighbours", "[models]") {
  temporary_folder const folder;
  for (auto const type : {dtype::f32, dtype::bf16}) {
    INFO(to_string(type));
    evaluation::write_random_checkpoint(folder.path(), shape, {.type = type});
    model of(checkpoint::open(folder.path()), default_backend());
    auto const mine = ids_of(29, 7);
    std::vector<std::int32_t> const next = {9};
    model_cache alone(of, 1);
    auto const prefill = run(of, alone, {{0, mine}});
    auto const decode = run(of, alone, {{0, next}});
    for (std::int64_t const neighbours : {1, 5, 40}) {
      INFO(neighbours << " neighbours");
      model_cache cache(of, neighbours + 1);
      std::vector<std::vector<std::int32_t>> others;
      std::vector<sequence_tokens> batch;
      for (std::int64_t i = 0; i < neighbours; ++i) others.push_back(ids_of(1 + i % 4, 3 + i));
      for (std::int64_t i = 0; i < neighbours; ++i) {
        batch.push_back({i, others[static_cast<std::size_t>(i)]});
      }
      batch.push_back({neighbours, mine});
      auto const beside = row(run(of, cache, batch), batch.size() - 1);
      for (auto& each : batch) each.ids = next;
      auto const stepped = row(run(of, cache, batch), batch.size() - 1);
      // Few rows are dot products, many are tiles, which add in another order; else the same bits.
      if (neighbours < 8) {
        CHECK(beside == prefill);
        CHECK(stepped == decode);
      }
      CHECK(distance(beside, prefill) < 1e-5);
      CHECK(distance(stepped, decode) < 1e-5);
    }
  }
}

TEST_CASE("model: any cut, prompts beside decode steps", "[models]") {
  temporary_folder const folder;
  evaluation::write_random_checkpoint(folder.path(), shape);
  auto const stored = checkpoint::open(folder.path());
  auto const ids = ids_of(40, 11);
  for (auto const* on : compiled_backends()) {
    if (!on->is_available() || on->kind() != device_kind::host) continue;
    INFO(on->name());
    model of(stored, *on);
    model_cache cache(of, 3);
    auto const all = run(of, cache, {{0, ids}}, logits_of::all_tokens);
    for (std::size_t const cut : {1U, 2U, 3U, 17U, 39U}) {
      INFO("cut at " << cut);
      cache.reset(1);
      (void)run(of, cache, {{1, std::span(ids).first(cut)}});
      // The rest comes one token at a time, beside another sequence's prompt.
      cache.reset(2);
      for (auto at = cut; at < ids.size(); ++at) {
        std::vector<sequence_tokens> batch = {{1, std::span(ids).subspan(at, 1)}};
        if (at == cut) batch.push_back({2, std::span(ids).first(5)});
        auto const logits = run(of, cache, batch);
        CHECK(distance(row(logits, 0), row(all, at)) < 1e-5);
        if (at == cut) CHECK(distance(row(logits, 1), row(all, 4)) < 1e-5);
      }
      CHECK(cache.tokens_seen(1) == 40);
    }
    // A copy of a slot goes on as the slot does; an empty sequence changes nothing.
    cache.copy(1, 2);
    std::vector<std::int32_t> const next = {3};
    auto const both = run(of, cache, {{1, next}, {0, {}}, {2, next}});
    CHECK(row(both, 0) == row(both, 1));
    CHECK(cache.tokens_seen(0) == 40);
  }
}

TEST_CASE("model: what forward refuses leaves the states alone", "[models]") {
  temporary_folder const folder;
  evaluation::write_random_checkpoint(folder.path(), shape);
  auto const stored = checkpoint::open(folder.path());
  model of(stored, find_backend("reference"));
  model_cache cache(of, 2);
  auto const ids = ids_of(3, 5);
  (void)run(of, cache, {{0, ids}});
  std::vector<float> logits(static_cast<std::size_t>(2 * shape.vocab_size), 7.0F);
  auto const refuses = [&](std::vector<sequence_tokens> const& batch, std::size_t size,
                           std::string const& message) {
    CHECK_THROWS_MATCHES(
        of.forward(cache, batch, logits_of::last_tokens, std::span(logits).first(size)),
        invalid_argument, MessageMatches(ContainsSubstring(message)));
  };
  auto const one = static_cast<std::size_t>(shape.vocab_size);
  std::vector<std::int32_t> const beyond = {1, 131};
  std::vector<std::int32_t> const negative = {-1};
  refuses({{0, beyond}}, one, "batch[0].ids[1] = 131 is outside the vocabulary of 131");
  refuses({{0, negative}}, one, "ids[0] = -1");
  refuses({{2, ids}}, one, "batch[0].slot = 2, but the cache has 2 slots");
  refuses({{-1, ids}}, one, "slot = -1");
  refuses({{1, ids}, {1, ids}}, 2 * one, "slot 1 is named twice");
  refuses({{0, ids}}, 2 * one, "logits has 262 elements; 1 rows of 131 are 131");
  model_options const bf16{.io = dtype::bf16};
  model other(stored, find_backend("reference"), bf16);
  model_cache foreign(other, 2);
  CHECK_THROWS_MATCHES(of.forward(foreign, {}, logits_of::last_tokens, {}), invalid_argument,
                       MessageMatches(ContainsSubstring("made for another model")));
  CHECK(cache.tokens_seen(0) == 3);
  CHECK(cache.tokens_seen(1) == 0);
  for (float const value : logits) CHECK(value == 7.0F);
  CHECK_THROWS_AS(model(stored, find_backend("reference"), {.max_tokens = 0}), invalid_argument);
  CHECK_THROWS_AS(model(stored, find_backend("reference"), {.max_sequences = 0}), invalid_argument);
  CHECK_THROWS_AS(model_cache(of, -1), invalid_argument);
}
