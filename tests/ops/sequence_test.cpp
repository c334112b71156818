// Operators on sequences and optionals, one by one.
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// [0], [0, 1] and [0, 1, 2].
tensor three() {
  return tensor::sequence(dtype::float32, {ramp({1}), ramp({2}), ramp({3})});
}

/// The numbers of elements of the tensors in a sequence.
int_list sizes_of(const tensor& sequence) {
  int_list sizes;
  for (const tensor& t : sequence.values<tensor>())
    sizes.push_back(t.size());
  return sizes;
}

tensor position(int64_t p) {
  return tensor::scalar(p);
}

template <class F>
std::string text_thrown(F&& work) {
  return test::thrown_by(work).what();
}

std::string failure(std::string_view op, const std::vector<tensor>& inputs, const attributes& attrs = {}) {
  return text_thrown([&] { run("", op, inputs, attrs); });
}

} // namespace

TEST_CASE("tensors of tensors name the types that they hold", "[sequence][A6]") {
  CHECK(to_string(sequence_of(dtype::int64)) == "sequence(int64)");
  CHECK(to_string(optional_of(sequence_of(dtype::float16))) == "optional(sequence(float16))");
  CHECK(element_of(optional_of(sequence_of(dtype::string))) == sequence_of(dtype::string));
  CHECK(element_of(sequence_of(dtype::string)) == dtype::string);
  CHECK_FALSE(is_sequence(optional_of(sequence_of(dtype::int8))));
  CHECK(three().dims() == shape{3});
  CHECK(tensor::optional(dtype::float32, {}).dims() == shape{0});
  CHECK(tensor::optional(sequence_of(dtype::float32), three()).values<tensor>()[0].dims() == shape{3});
  CHECK_THAT(text_thrown([] { tensor::sequence(dtype::int32, {ramp({1})}); }),
             Contains("element 0 is float32 in a sequence(int32)"));
  CHECK_THAT(text_thrown([] { tensor::optional(dtype::int32, ramp({1})); }), Contains("optional(int32)"));
}

TEST_CASE("sequences are made of tensors, or empty", "[sequence][A6]") {
  const tensor made = run("", "SequenceConstruct", {ramp({2, 2}), ramp({3})});
  CHECK(made.type() == sequence_of(dtype::float32));
  CHECK(sizes_of(made) == int_list{4, 3});
  CHECK(elements(made.values<tensor>()[1]) == std::vector<double>{0, 1, 2});
  const tensor empty = run("", "SequenceEmpty", {}, attrs_of({{"dtype", int64_t{7}}}));
  CHECK(empty.type() == sequence_of(dtype::int64));
  CHECK(empty.dims() == shape{0});
  CHECK_THAT(failure("SequenceConstruct", {ramp({2}), longs({1})}), Contains("different element types"));
  CHECK_THAT(failure("SequenceEmpty", {}, attrs_of({{"dtype", int64_t{14}}})), Contains("element type 14"));
  CHECK_THAT(failure("SequenceConstruct", {three()}), Contains("sequence(float32) is not supported"));
}

TEST_CASE("positions count from both ends and are checked", "[sequence][A6]") {
  CHECK(run("", "SequenceAt", {three(), position(0)}).dims() == shape{1});
  CHECK(run("", "SequenceAt", {three(), position(-1)}).dims() == shape{3});
  CHECK(run("", "SequenceAt", {three(), tensor::scalar<int32_t>(1)}).dims() == shape{2});
  for (int64_t p : {3, -4})
    CHECK_THAT(failure("SequenceAt", {three(), position(p)}), Contains("out of range for a sequence of 3"));
  CHECK_THAT(failure("SequenceAt", {three(), tensor::scalar(0.0f)}), Contains("the position is float32"));
  CHECK_THAT(failure("SequenceAt", {three(), longs({0, 1})}), Contains("must be one element"));
  CHECK_THAT(failure("SequenceAt", {ramp({3}), position(0)}), Contains("element type float32 is not supported"));
  CHECK_THAT(failure("SequenceAt", {three(), three()}), Contains("input 1 is sequence(float32)"));

  CHECK(sizes_of(run("", "SequenceErase", {three()})) == int_list{1, 2});
  CHECK(sizes_of(run("", "SequenceErase", {three(), position(0)})) == int_list{2, 3});
  CHECK(sizes_of(run("", "SequenceErase", {three(), position(-2)})) == int_list{1, 3});
  const tensor one = tensor::sequence(dtype::float32, {ramp({5})});
  CHECK(run("", "SequenceErase", {one}).dims() == shape{0});
  CHECK_THAT(failure("SequenceErase", {one, position(1)}), Contains("out of range for a sequence of 1"));
  CHECK_THAT(failure("SequenceErase", {tensor::sequence(dtype::float32, {})}), Contains("is empty"));

  CHECK(sizes_of(run("", "SequenceInsert", {three(), ramp({9})})) == int_list{1, 2, 3, 9});
  CHECK(sizes_of(run("", "SequenceInsert", {three(), ramp({9}), position(0)})) == int_list{9, 1, 2, 3});
  CHECK(sizes_of(run("", "SequenceInsert", {three(), ramp({9}), position(-1)})) == int_list{1, 2, 9, 3});
  CHECK(sizes_of(run("", "SequenceInsert", {three(), ramp({9}), position(3)})) == int_list{1, 2, 3, 9});
  CHECK_THAT(failure("SequenceInsert", {three(), ramp({9}), position(4)}), Contains("position 4 is out of range"));
  CHECK_THAT(failure("SequenceInsert", {three(), longs({1})}), Contains("int64 cannot go into a sequence(float32)"));

  CHECK(run("", "SequenceLength", {three()}).values<int64_t>()[0] == 3);
}

TEST_CASE("tensors are split into sequences", "[sequence][A6]") {
  const auto pieces = [](const tensor& made) {
    std::vector<std::vector<double>> all;
    for (const tensor& t : made.values<tensor>())
      all.push_back(elements(t));
    return all;
  };
  using rows = std::vector<std::vector<double>>;
  const attributes columns = attrs_of({{"axis", int64_t{-1}}});
  CHECK(pieces(run("", "SplitToSequence", {ramp({2, 3})}, columns)) == rows{{0, 3}, {1, 4}, {2, 5}});
  CHECK(run("", "SplitToSequence", {ramp({2, 3})}, columns).values<tensor>()[0].dims() == shape{2, 1});
  const attributes dropped = attrs_of({{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  CHECK(run("", "SplitToSequence", {ramp({2, 3})}, dropped).values<tensor>()[0].dims() == shape{2});
  CHECK(run("", "SplitToSequence", {ramp({2, 3}), position(1)}, dropped).values<tensor>()[0].dims() == shape{2, 1});
  CHECK(pieces(run("", "SplitToSequence", {ramp({5}), position(2)})) == rows{{0, 1}, {2, 3}, {4}});
  CHECK(pieces(run("", "SplitToSequence", {ramp({5}), longs({3, 0, 2})})) == rows{{0, 1, 2}, {}, {3, 4}});
  CHECK(run("", "SplitToSequence", {ramp({0, 2})}).dims() == shape{0});

  const tensor words = tensor::of<std::string>({2}, std::vector<std::string>{"one", "two"});
  CHECK(run("", "SplitToSequence", {words}).values<tensor>()[1].values<std::string>()[0] == "two");
  for (const tensor& bad : {longs({3}), longs({3, 3}), longs({6, -1})})
    CHECK_THAT(failure("SplitToSequence", {ramp({5}), bad}), Contains("do not add up to a dim of 5"));
  CHECK_THAT(failure("SplitToSequence", {ramp({5}), position(0)}), Contains("pieces of 0 elements"));
  CHECK_THAT(failure("SplitToSequence", {ramp({5})}, columns), !Contains("axis"));
  CHECK_THAT(failure("SplitToSequence", {ramp({5})}, dropped), Contains("axis 1 is out of range"));
  CHECK_THAT(failure("SplitToSequence", {tensor(dtype::int64, {int64_t{1} << 40, 0})}), Contains("at most 1048576"));
}

TEST_CASE("sequences are joined to tensors", "[sequence][A6]") {
  const attributes along = attrs_of({{"axis", int64_t{-1}}});
  const attributes stacked = attrs_of({{"axis", int64_t{-1}}, {"new_axis", int64_t{1}}});
  const tensor joined = run("", "ConcatFromSequence", {three()}, along);
  CHECK(elements(joined) == std::vector<double>{0, 0, 1, 0, 1, 2});
  const tensor pair = tensor::sequence(dtype::float32, {ramp({2, 1}), ramp({2, 1}, 5)});
  const tensor columns = run("", "ConcatFromSequence", {pair}, stacked);
  CHECK(columns.dims() == shape{2, 1, 2});
  CHECK(elements(columns) == std::vector<double>{0, 0, 1, 5});
  CHECK(run("", "ConcatFromSequence", {pair}, along).dims() == shape{2, 2});
  CHECK_THAT(failure("ConcatFromSequence", {three()}, stacked), Contains("[2] and [1] cannot be joined"));
  const tensor ranks = tensor::sequence(dtype::float32, {ramp({2}), ramp({1, 2})});
  CHECK_THAT(failure("ConcatFromSequence", {ranks}, along), Contains("[1, 2] and [2] cannot be joined"));
  CHECK_THAT(failure("ConcatFromSequence", {tensor::sequence(dtype::float32, {})}, along), Contains("is empty"));
  CHECK_THAT(failure("ConcatFromSequence", {three()}), Contains("'axis'"));
  CHECK_THAT(failure("ConcatFromSequence", {three()}, attrs_of({{"axis", int64_t{1}}})), Contains("out of range"));
}

TEST_CASE("optionals hold something or nothing", "[sequence][A6]") {
  const tensor full = run("", "Optional", {ramp({2})});
  CHECK(full.type() == optional_of(dtype::float32));
  CHECK(elements(run("", "OptionalGetElement", {full})) == std::vector<double>{0, 1});
  const tensor of_sequence = run("", "Optional", {three()});
  CHECK(sizes_of(run("", "OptionalGetElement", {of_sequence})) == int_list{1, 2, 3});
  const auto type = static_cast<int64_t>(sequence_of(dtype::int8));
  const tensor empty = run("", "Optional", {}, attrs_of({{"type", type}}));
  CHECK(empty.type() == optional_of(sequence_of(dtype::int8)));
  CHECK_THAT(failure("OptionalGetElement", {empty}), Contains("the optional is empty"));
  for (int64_t bad : {-1, 0, 14, 0x2e, 0x41, 200})
    CHECK_THAT(failure("Optional", {}, attrs_of({{"type", bad}})), Contains("type"));

  const auto has = [](const std::vector<tensor>& inputs) {
    return *run("", "OptionalHasElement", inputs).data<bool>();
  };
  CHECK(has({full}));
  CHECK_FALSE(has({empty}));
  CHECK_FALSE(has({}));
  CHECK_FALSE(has({tensor{}}));
  CHECK(has({three()}));
  CHECK(has({ramp({1})}));
  CHECK(elements(run("", "OptionalGetElement", {ramp({2})})) == std::vector<double>{0, 1});
  CHECK_THAT(text_thrown([] { run_op("OptionalHasElement", 17, {}, {ramp({1})}); }), Contains("not supported"));
}

TEST_CASE("tensors that go into a sequence are copied, those that come out are not", "[sequence]") {
  tensor source = ramp({2});
  const tensor made = run("", "SequenceConstruct", {source});
  source.mutable_data<float>()[0] = 9;
  CHECK(elements(made.values<tensor>()[0]) == std::vector<double>{0, 1});
  CHECK(run("", "SequenceAt", {made, position(0)}).data() == made.values<tensor>()[0].data());
  CHECK(run("", "SequenceInsert", {made, source}).values<tensor>()[0].data() == made.values<tensor>()[0].data());
}
