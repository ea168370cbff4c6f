#include <string>
#include <string_view>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "mambatile/text.hpp"

// Text from outside, as the program shows it.

using mambatile::program::json_text;
using mambatile::program::printable;

TEST_CASE("text: control characters are shown by number, all else stays", "[cli]") {
  struct row {
    std::string_view text, shown;
  };
  for (auto const& [text, shown] :
       {row{"plain", "plain"}, row{"\x1b[31m", R"(\x1b[31m)"}, row{"a\nb\x7f", R"(a\x0ab\x7f)"},
        row{"\u00e9\u20ac", "\u00e9\u20ac"},
        // U+0080 and U+009F, the first and last of their kind, and U+00A0, which is none.
        row{"\xc2\x80|\xc2\x9f|\xc2\xa0", "\\x80|\\x9f|\xc2\xa0"},
        // 0xc2 that begins no character: nothing is lost.
        row{"\xc2"
            "A",
            "\xc2"
            "A"},
        row{"\xc2\x1b", "\xc2\\x1b"}, row{"\xc2", "\xc2"}}) {
    INFO(shown);
    CHECK(printable(text) == shown);
  }
}

TEST_CASE("text: JSON is one line of ASCII whatever the text", "[cli]") {
  nlohmann::ordered_json value;
  value["a"] = "\x1b\n\u00e9";
  CHECK(json_text(value) == R"({"a":"\u001b\n\u00e9"})");
  value["a"] = "\xff";
  CHECK(json_text(value) == R"({"a":"\ufffd"})");
}
