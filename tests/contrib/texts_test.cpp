// Cases of the operators in texts.mjs that ONNX Runtime cannot give: bytes that are not text, and calls that are
// refused.
#include "contrib/contrib_calls.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using string_list = std::vector<std::string>;

namespace {

tensor strings(shape dims, const string_list& values) {
  return tensor::of<std::string>(std::move(dims), values);
}

attributes tokens_by(const string_list& separators) {
  return attrs_of(
      {{"mark", int64_t{1}}, {"mincharnum", int64_t{1}}, {"pad_value", std::string("#")}, {"separators", separators}});
}

} // namespace

// ONNX Runtime's result lacks an axis then, which its own documentation has.
TEST_CASE("Tokenizer makes no tokens of no strings", "[ops][contrib]") {
  CHECK(call("Tokenizer", tokens_by({" "}), {tensor(dtype::string, {0})})[0].dims() == shape{0, 0});
  CHECK(call("Tokenizer", tokens_by({" "}), {tensor(dtype::string, {2, 0})})[0].dims() == shape{2, 0, 0});
}

TEST_CASE("Tokenizer refuses operands that are not text and attributes that say nothing of tokens", "[ops][contrib]") {
  const tensor x = strings({1}, {"a b"});
  const auto refused = [](const attributes& attrs, const tensor& text) { return refusal("Tokenizer", attrs, {text}); };
  const auto with = [](const char* name, attribute value, const string_list& separators = {" "}) {
    attributes attrs = tokens_by(separators);
    attrs.set(name, std::move(value));
    return attrs;
  };
  CHECK_THAT(refused(tokens_by({" "}), strings({1}, {"ab\xff"})), Contains("byte 2 of a string is not UTF-8"));
  CHECK_THAT(refused(tokens_by({""}), strings({1}, {"\xc3"})), Contains("byte 0 of a string"));
  CHECK_THAT(refused(tokens_by({" "}), strings({1, 1, 1}, {"a"})), Contains("[C] or [N, C] is needed"));
  CHECK_THAT(refused(tokens_by({" "}), strings({}, {"a"})), Contains("[C] or [N, C] is needed"));
  CHECK_THAT(refused(tokens_by({"a", "("}), x), Contains("'separators' has '(', which is not a regular expression"));
  CHECK_THAT(refused(tokens_by({}), x), Contains("'separators' or 'tokenexp' must say"));
  CHECK_THAT(refused(with("mincharnum", int64_t{0}), x), Contains("'mincharnum' is 0"));
  CHECK_THAT(refused(with("mincharnum", int64_t{2}, {""}), x), Contains("each character is a token"));
  attributes open = attrs_of({{"mark", int64_t{0}}, {"mincharnum", int64_t{1}}, {"pad_value", std::string("#")}});
  CHECK_THAT(refused(open, x), Contains("'separators' or 'tokenexp' must say"));
  open.set("tokenexp", std::string("[a"));
  CHECK_THAT(refused(open, x), Contains("'tokenexp' has '[a', which is not a regular expression"));
  CHECK_THAT(refused(attrs_of({{"mark", int64_t{0}}, {"mincharnum", int64_t{1}}, {"separators", string_list{" "}}}), x),
             Contains("'pad_value' is missing"));
  CHECK_THAT(refused(attrs_of({{"mincharnum", int64_t{1}}, {"pad_value", std::string()}}), x), Contains("mark"));
}
