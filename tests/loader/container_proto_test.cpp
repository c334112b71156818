// Files of sequences and optionals: written and read again, and bytes that are not such files.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "troupe/tensor_file.hpp"

using namespace troupe;
using Catch::Contains;

namespace {

tensor floats(std::vector<float> values) {
  return tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

named_tensor parse(const std::string& bytes, dtype type) {
  return parse_pb(std::as_bytes(std::span(bytes)), type);
}

std::string refusal(const std::string& bytes, dtype type) {
  return test::error_of([&] { parse(bytes, type); });
}

constexpr dtype floats_sequence = sequence_of(dtype::float32);

} // namespace

TEST_CASE("sequences and optionals are read as they were written", "[loader][sequence]") {
  const tensor words = tensor::of<std::string>({2}, std::vector<std::string>{"a", ""});
  const tensor sequence = tensor::sequence(dtype::float32, {floats({1, 2}), floats({})});
  const named_tensor read = parse(make_pb("s", sequence), floats_sequence);
  CHECK(read.name == "s");
  CHECK(read.value.type() == floats_sequence);
  CHECK(read.value.values<tensor>()[0].values<float>()[1] == 2);
  CHECK(read.value.values<tensor>()[1].dims() == shape{0});
  CHECK(parse(make_pb("s", tensor::sequence(dtype::int8, {})), sequence_of(dtype::int8)).value.dims() == shape{0});

  const dtype held = optional_of(floats_sequence);
  const tensor back = parse(make_pb("o", tensor::optional(floats_sequence, sequence)), held).value;
  CHECK(back.values<tensor>()[0].values<tensor>()[0].values<float>()[0] == 1);
  CHECK(parse(make_pb("o", tensor::optional(floats_sequence, {})), held).value.dims() == shape{0});
  const tensor text = parse(make_pb("o", tensor::optional(dtype::string, words)), optional_of(dtype::string)).value;
  CHECK(text.values<tensor>()[0].values<std::string>()[0] == "a");
}

TEST_CASE("bytes that are not serialized sequences", "[loader][sequence]") {
  const std::string good = make_pb("s", tensor::sequence(dtype::float32, {floats({1, 2})}));
  for (size_t size = 4; size < good.size(); ++size) // the name is whole
    if (size != 5)                                  // so is the kind of its elements: an empty sequence
      CHECK_THAT(refusal(good.substr(0, size), floats_sequence), Contains("invalid_model"));
  CHECK_THAT(refusal(good, sequence_of(dtype::int64)),
             Contains("element 0 is float32, in what should be a sequence(int64)"));
  CHECK_THAT(refusal(good, optional_of(floats_sequence)), Contains("holds something else"));
  const std::string twice = make_pb("o", tensor::sequence(dtype::float32, {floats({1}), floats({2})}));
  CHECK_THAT(refusal(twice, optional_of(dtype::float32)), Contains("an optional with 2 elements"));
  CHECK_THAT(refusal("\x1a\xff\xff\xff\xff\x0f", floats_sequence), Contains("not a serialized sequence(float32)"));
  CHECK_THAT(refusal("\x1d\x01\x02\x03\x04", floats_sequence), Contains("not a serialized sequence(float32)"));
  CHECK_THAT(refusal("\x07", floats_sequence), Contains("not a serialized sequence(float32)"));
  CHECK_THAT(refusal(std::string("\x32\x00", 2), floats_sequence), Contains("unsupported")); // a map
  std::string many;
  for (int i = 0; i < (1 << 20) + 1; ++i)
    many += std::string("\x10\x01", 2);
  CHECK(refusal(many, floats_sequence) == ""); // numbers that give the kind of elements
  for (int i = 0; i < (1 << 20) + 1; ++i)
    many += std::string("\x0a\x00", 2);
  CHECK_THAT(refusal(many, floats_sequence), Contains("more than 1048576 tensors"));
}
