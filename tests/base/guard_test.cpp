#include "base/guard.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <vector>

using namespace troupe;
using Catch::Contains;
using troupe::test::thrown_by;

TEST_CASE("lack of memory leaves a public door as an error that says where", "[base][limits]") {
  const error exhausted = thrown_by([] { guarded("model.onnx", []() -> int { throw std::bad_alloc(); }); });
  CHECK(exhausted.code() == errc::out_of_memory);
  CHECK_THAT(exhausted.what(), Contains("model.onnx: ") && Contains("memory"));
  const error endless = thrown_by([] { guarded("", [] { std::vector<char>().reserve(SIZE_MAX); }); });
  CHECK(endless.code() == errc::out_of_memory);
}

TEST_CASE("errors keep their kind, and other exceptions pass", "[base][limits]") {
  CHECK(guarded("here", [] { return 7; }) == 7);
  const error refused = thrown_by([] { guarded("here", [] { fail(errc::io, "cannot read"); }); });
  CHECK(refused.code() == errc::io);
  CHECK(std::string(refused.what()) == "here: cannot read");
  CHECK_THROWS_AS(guarded("here", [] { throw std::invalid_argument("not ours"); }), std::invalid_argument);
}

TEST_CASE("long messages lose their middle, whole characters at a time", "[base][limits]") {
  CHECK(std::string(error(errc::io, "short").what()) == "short");
  std::string message = "what: ";
  for (int i = 0; i < 5000; ++i)
    message += "\xc3\xa4"; // two bytes a character
  const std::string short_one = error(errc::io, message + " so do this").what();
  CHECK(short_one.size() < 2100);
  CHECK_THAT(short_one, Contains("what: ") && Contains("so do this") && Contains("\xc3\xa4 [...] \xc3\xa4"));
}
