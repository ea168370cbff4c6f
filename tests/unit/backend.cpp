#include <mambatile/backend.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include <mambatile/errors.hpp>
#include <mambatile/version.hpp>

namespace mambatile::testing {
namespace {

// Sets an environment variable for one scope.
class scoped_environment {
 public:
  scoped_environment(char const* name, char const* value) : name_(name) {
    if (char const* const old = std::getenv(name)) {
      old_ = old;
      was_set_ = true;
    }
    ::setenv(name, value, 1);
  }
  scoped_environment(scoped_environment const&) = delete;
  scoped_environment& operator=(scoped_environment const&) = delete;
  ~scoped_environment() {
    if (was_set_) {
      ::setenv(name_, old_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  char const* name_;
  std::string old_;
  bool was_set_ = false;
};

template <class Exception, class Action>
std::string message_of(Action const& action) {
  try {
    action();
  } catch (Exception const& thrown) {
    return thrown.what();
  }
  return "nothing thrown";
}

TEST_CASE("backends: the list ends with the reference, names are unique", "[unit]") {
  auto const all = compiled_backends();
  REQUIRE_FALSE(all.empty());
  CHECK(all.back()->name() == "reference");
  CHECK(all.data() == compiled_backends().data());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(&find_backend(all[i]->name()) == all[i]);
    for (std::size_t j = 0; j < i; ++j) CHECK(all[i]->name() != all[j]->name());
    auto const available = all[i]->is_available();
    CHECK(available.ok == available.reason.empty());
    CHECK((all[i]->device_count() > 0) == available.ok);
    if (available) CHECK_FALSE(all[i]->capabilities().empty());
  }
}

TEST_CASE("backends: an unknown name lists those there are", "[unit]") {
  auto const message = message_of<backend_unavailable>([] { (void)find_backend("abacus"); });
  CHECK(message.find("\"abacus\"") != std::string::npos);
  for (auto const* each : compiled_backends()) {
    CHECK(message.find(each->name()) != std::string::npos);
  }
}

TEST_CASE("backends: by device", "[unit]") {
  auto const& found = find_backend(device_kind::host);
  CHECK(found.kind() == device_kind::host);
  CHECK(found.is_available());
  auto const all = compiled_backends();
  bool const has_cuda = std::any_of(all.begin(), all.end(), [](auto const* each) {
    return each->kind() == device_kind::cuda && each->is_available();
  });
  if (!has_cuda) {
    CHECK(message_of<backend_unavailable>([] {
            (void)find_backend(device_kind::cuda);
          }).find("cuda") != std::string::npos);
  }
}

TEST_CASE("backends: the environment chooses the default", "[unit]") {
  {
    scoped_environment const chosen("MAMBATILE_BACKEND", "reference");
    CHECK(default_backend().name() == "reference");
  }
  {
    scoped_environment const unknown("MAMBATILE_BACKEND", "abacus");
    CHECK(message_of<backend_unavailable>([] { (void)default_backend(); }).find("abacus") !=
          std::string::npos);
  }
  scoped_environment const nothing("MAMBATILE_BACKEND", "");
  CHECK(default_backend().is_available());
}

TEST_CASE("backends: memory", "[unit]") {
  auto const& reference = find_backend("reference");
  for (std::size_t const alignment : {1U, 64U, 256U, 4096U}) {
    auto const memory = reference.allocate({}, 100, alignment);
    CHECK(memory.bytes() == 100);
    CHECK(memory.where() == device{});
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % alignment == 0);
    std::memset(memory.data(), 1, memory.bytes());
  }
  auto memory = reference.allocate({}, 8);
  CHECK(memory.workspace().data == memory.data());
  CHECK(memory.workspace().bytes == 8);
  std::int64_t const sent = 42;
  std::int64_t received = 0;
  reference.copy_to_device(memory.data(), &sent, sizeof(sent), {});
  reference.copy_to_host(&received, memory.data(), sizeof(received), {});
  reference.synchronize({});
  CHECK(received == sent);

  void* const data = memory.data();
  buffer moved = std::move(memory);
  CHECK(moved.data() == data);
  buffer assigned;
  assigned = std::move(moved);
  CHECK(assigned.data() == data);
  CHECK(assigned.bytes() == 8);
  CHECK(reference.allocate({}, 0).data() == nullptr);
}

TEST_CASE("backends: memory that cannot be had is refused", "[unit]") {
  auto const& reference = find_backend("reference");
  CHECK(message_of<invalid_argument>([&] {
          (void)reference.allocate({device_kind::cuda, 0}, 8);
        }).find("cuda:0") != std::string::npos);
  CHECK(message_of<invalid_argument>([&] { (void)reference.allocate({}, 8, 48); }).find("48") !=
        std::string::npos);
  auto const too_much = std::size_t{1} << 60U;
  CHECK(message_of<backend_failure>([&] {
          (void)reference.allocate({}, too_much);
        }).find(std::to_string(too_much)) != std::string::npos);
}

TEST_CASE("errors: one base for all", "[unit]") {
  STATIC_CHECK(std::is_base_of_v<std::runtime_error, error>);
  STATIC_CHECK(std::is_base_of_v<error, invalid_argument>);
  STATIC_CHECK(std::is_base_of_v<error, unsupported>);
  STATIC_CHECK(std::is_base_of_v<error, backend_unavailable>);
  STATIC_CHECK(std::is_base_of_v<error, backend_failure>);
  STATIC_CHECK(std::is_base_of_v<error, file_error>);
}

TEST_CASE("version: headers and library agree", "[unit]") {
  CHECK(version() == std::to_string(MAMBATILE_VERSION_MAJOR) + "." +
                         std::to_string(MAMBATILE_VERSION_MINOR) + "." +
                         std::to_string(MAMBATILE_VERSION_PATCH));
}

}  // namespace
}  // namespace mambatile::testing
