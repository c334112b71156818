#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

using words = std::vector<std::string>;

tensor texts(shape dims, const words& values) {
  tensor t(dtype::string, std::move(dims));
  std::copy(values.begin(), values.end(), t.mutable_data<std::string>());
  return t;
}

tensor texts(const words& values) {
  return texts({std::ssize(values)}, values);
}

words words_of(const tensor& t) {
  return {t.data<std::string>(), t.data<std::string>() + t.size()};
}

attributes normalizing(const char* action, bool sensitive, words stop = {}) {
  return attrs_of({{"case_change_action", std::string(action)},
                   {"is_case_sensitive", int64_t{sensitive}},
                   {"stopwords", std::move(stop)}});
}

} // namespace

TEST_CASE("StringConcat broadcasts", "[ops][text]") {
  const tensor y = run_op("StringConcat", 20, {}, {texts({2, 1}, {"a", "b"}), texts({3}, {"x", "", "z"})})[0];
  CHECK(y.dims() == shape{2, 3});
  CHECK(words_of(y) == words{"ax", "a", "az", "bx", "b", "bz"});
  CHECK(run_op("StringConcat", 20, {}, {texts({0, 2}, {}), texts({2}, {"x", "y"})})[0].dims() == shape{0, 2});
  CHECK_THROWS_AS(run_op("StringConcat", 20, {}, {texts({"a", "b"}), texts({"a", "b", "c"})}), error);
}

TEST_CASE("StringSplit splits as Python does", "[ops][text]") {
  const auto split = [](const words& x, const attributes& attrs) {
    return run_op("StringSplit", 20, attrs, {texts(x)}, 2);
  };
  const auto by = [](const char* delimiter, int64_t most = -1) {
    return attrs_of({{"delimiter", std::string(delimiter)}, {"maxsplit", most}});
  };
  auto y = split({"a-b--c", "", "-", "abc"}, by("-"));
  CHECK(y[0].dims() == shape{4, 4});
  CHECK(words_of(y[0]) == words{"a", "b", "", "c", "", "", "", "", "", "", "", "", "abc", "", "", ""});
  CHECK(elements(y[1]) == std::vector<double>{4, 1, 2, 1});
  CHECK(words_of(split({"a-b-c"}, by("-", 1))[0]) == words{"a", "b-c"});
  CHECK(words_of(split({"a-b-c"}, by("-", 0))[0]) == words{"a-b-c"});
  CHECK(words_of(split({"aXYbXYXY"}, by("XY"))[0]) == words{"a", "b", "", ""});
  CHECK(words_of(split({" a \t b\n"}, {})[0]) == words{"a", "b"});
  CHECK(words_of(split({" a  b  c "}, by("", 1))[0]) == words{"a", "b  c "});
  y = split({"", "  "}, {});
  CHECK(y[0].dims() == shape{2, 0});
  CHECK(elements(y[1]) == std::vector<double>{0, 0});
}

TEST_CASE("StringSplit refuses a result that is much larger than its input", "[ops][text][E5]") {
  words x(9000, "a");
  x[0] = std::string(9000, ' ');
  for (size_t i = 1; i < x[0].size(); i += 2)
    x[0][i] = 'x';
  x.resize(20000, "a");
  CHECK_THROWS_WITH(run_op("StringSplit", 20, {}, {texts(x)}), Contains("20000 strings of up to 4500 parts"));
}

TEST_CASE("StringNormalizer drops stop words and changes case", "[ops][text]") {
  const auto normalized = [](const words& x, const attributes& attrs) {
    return words_of(run_op("StringNormalizer", 10, attrs, {texts(x)})[0]);
  };
  CHECK(normalized({"The", "Cat"}, normalizing("LOWER", false, {"the"})) == words{"cat"});
  CHECK(normalized({"The", "Cat"}, normalizing("LOWER", true, {"the"})) == words{"the", "cat"});
  CHECK(normalized({"The", "Cat"}, normalizing("NONE", true, {"The"})) == words{"Cat"});
  CHECK(normalized({"größe", "Ćma", "ωδή"}, normalizing("UPPER", true)) == words{"GRÖßE", "ĆMA", "ΩΔΉ"});
  CHECK(normalized({"ĆMA"}, normalizing("UPPER", false, {"ćma"})) == words{""});
  CHECK(normalized({}, {}) == words{""});
  const tensor row = run_op("StringNormalizer", 10, {}, {texts({1, 2}, {"a", "B"})})[0];
  CHECK(row.dims() == shape{1, 2});
}

TEST_CASE("StringNormalizer keeps bytes that are not UTF-8", "[ops][text][E5]") {
  const words x{"a\xff\xc3", "\xe2\x82", "\xf0\x9f\x98\x80z", std::string("q\0r", 3), "\xc3\x28"};
  const words wanted{"A\xff\xc3", "\xe2\x82", "\xf0\x9f\x98\x80Z", std::string("Q\0R", 3), "\xc3\x28"};
  CHECK(words_of(run_op("StringNormalizer", 10, normalizing("UPPER", true), {texts(x)})[0]) == wanted);
}

TEST_CASE("StringNormalizer refuses unknown actions and other dims", "[ops][text][E5]") {
  CHECK_THROWS_WITH(run_op("StringNormalizer", 10, normalizing("TITLE", true), {texts({"a"})}), Contains("'TITLE'"));
  CHECK_THROWS_WITH(run_op("StringNormalizer", 10, {}, {texts({2, 1}, {"a", "b"})}), Contains("rows of strings"));
  CHECK_THROWS_WITH(run_op("StringNormalizer", 10, {}, {texts({}, {"a"})}), Contains("[1, C] is needed"));
}
