#include "base/error.hpp"
#include "base/printable.hpp"

#include "support/catch.hpp"

using troupe::printable;

TEST_CASE("text that is not UTF-8 is escaped, byte by byte", "[base]") {
  for (const std::string text : {"", "plain", "ä€𝄞", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf", "a\\x1b"})
    CHECK(printable(text) == text);
  CHECK(printable("a\xff"
                  "b") == "a\\xffb");
  CHECK(printable("\xc3") == "\\xc3");
  CHECK(printable("\xc0\x80") == "\\xc0\\x80");                   // overlong
  CHECK(printable("\xe0\x9f\xbf") == "\\xe0\\x9f\\xbf");          // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");          // half a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80"); // after the last code point
  CHECK(printable("\xe2\x82x") == "\\xe2\\x82x");
}

TEST_CASE("control characters reach no terminal", "[base]") {
  CHECK(printable("a\x1b[31mb\x07") == "a\\x1b[31mb\\x07");
  CHECK(printable("one\ntwo\r\t") == "one\\ntwo\\r\\t");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");          // U+009B, an escape sequence's beginning in one character
  CHECK(printable("\xe2\x80\xae") == "\\xe2\\x80\\xae"); // U+202E, right to left
  CHECK(printable("\xc2\xa0\xe2\x80\xa6") == "\xc2\xa0\xe2\x80\xa6"); // a no-break space, an ellipsis
  CHECK(troupe::error(troupe::errc::io, "'a\x1b[2J' is missing").what() == std::string("'a\\x1b[2J' is missing"));
}
