#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::test;

namespace {

std::vector<int64_t> matches(const std::string& pattern, const std::vector<std::string>& strings) {
  return to_int64(run_op("RegexFullMatch", 20, attrs_of({{"pattern", pattern}}),
                         {tensor::of<std::string>({std::ssize(strings)}, strings)})[0]
                      .view());
}

} // namespace

TEST_CASE("RegexFullMatch takes whole strings only", "[ops][text]") {
  CHECK(matches("a+b", {"ab", "aaab", "xab", "abx", ""}) == std::vector<int64_t>{1, 1, 0, 0, 0});
  CHECK(matches("ä.", {"äö", "ä", "ao"}) == std::vector<int64_t>{1, 0, 0}); // characters, not bytes
  CHECK(matches("", {"", "x"}) == std::vector<int64_t>{1, 0});
  CHECK(matches("a.b", {"a\xffz", "\xff"}) == std::vector<int64_t>{0, 0}); // bytes that are not text
}

TEST_CASE("RegexFullMatch is quick whatever the pattern, and refuses texts that are not patterns", "[ops][text]") {
  CHECK(matches("(a*)*b", {std::string(20000, 'a')}) == std::vector<int64_t>{0});
  const error e = thrown_by([] { matches("(a", {"a"}); });
  CHECK(e.code() == errc::invalid_model);
  CHECK_THAT(e.what(), Catch::Contains("missing )"));
}
