#include "base/utf8.hpp"

#include "support/catch.hpp"

using troupe::to_utf8;

TEST_CASE("text that is no UTF-8 is made so, byte by byte", "[base]") {
  for (const std::string text : {"", "plain", "ä€𝄞", "\x7f", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    CHECK(to_utf8(text) == text);
  CHECK(to_utf8("a\xff"
                "b") == "a?b");
  CHECK(to_utf8("\xc3") == "?");
  CHECK(to_utf8("\xc0\x80") == "??");           // overlong
  CHECK(to_utf8("\xe0\x9f\xbf") == "???");      // overlong
  CHECK(to_utf8("\xed\xa0\x80") == "???");      // half a surrogate pair
  CHECK(to_utf8("\xf4\x90\x80\x80") == "????"); // behind the last code point
  CHECK(to_utf8("\xe2\x82x") == "??x");
}
