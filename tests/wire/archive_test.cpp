// Bytes and back, field by field; bytes that no writer writes are refused before they cost anything.
#include "wire/archive.hpp"

#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"
#include "wire/facts.hpp"
#include "wire/tensors.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::wire;
using Catch::Contains;

namespace {

struct sample {
  int32_t number = -7;
  bool truth = true;
  double real = 0.1;
  std::string text = "a text with \0 in it";
  std::optional<uint8_t> none, some = 9;
  std::vector<int64_t> numbers{1, -2, std::numeric_limits<int64_t>::min()};
  std::vector<std::string> texts{"", "x"};
  std::array<float, 2> pair{1.5f, -0.0f};
  std::map<std::string, std::pair<int, bool>> table{{"a", {1, true}}, {"b", {2, false}}};
  std::variant<int64_t, std::string> either = std::string("or");

  bool operator==(const sample&) const = default;
};

template <class Archive>
void visit(Archive& a, sample& s) {
  a(s.number, s.truth, s.real, s.text, s.none, s.some, s.numbers, s.texts, s.pair, s.table, s.either);
}

template <class T>
std::string refusal(const std::vector<uint8_t>& bytes) {
  const error e = thrown_by([&] { decode<T>(bytes); });
  CHECK(e.code() == errc::invalid_input);
  return e.what();
}

device_info some_gpu() {
  device_info d{
      .name = "vulkan:1", .host = "b", .kind = device_kind::vulkan, .description = "a GPU", .memory_bytes = 5};
  d.host_memory = false;
  d.gpu = gpu_features{.subgroup_size = 64, .float16 = true, .units = 132};
  d.profile = typical_gpu(132, true);
  d.transfers = transfer_path::imported;
  d.copies_beside_work = true;
  return d;
}

} // namespace

TEST_CASE("structs come back as they were written", "[wire]") {
  const sample s{.number = 5, .none = std::nullopt};
  const std::vector<uint8_t> bytes = encode(s);
  CHECK(decode<sample>(bytes) == s);
  for (size_t cut = 0; cut < bytes.size(); ++cut)
    CHECK_THAT(refusal<sample>({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut)}),
               Contains("malformed at byte"));
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  CHECK_THAT(refusal<sample>(longer), Contains("1 bytes are left at its end"));
}

TEST_CASE("numbers are little endian", "[wire]") {
  CHECK(encode(uint32_t{0x01020304}) == std::vector<uint8_t>{4, 3, 2, 1});
  CHECK(encode(std::string("ab")) == std::vector<uint8_t>{2, 0, 0, 0, 'a', 'b'});
}

TEST_CASE("counts beyond the bytes are refused before anything is allocated", "[wire]") {
  const std::vector<uint8_t> many = encode(uint32_t{0xffffffff}), some = encode(std::array<uint32_t, 2>{3, 0});
  CHECK_THAT(refusal<std::string>(many), Contains("counts 4294967295 elements"));
  CHECK_THAT(refusal<std::vector<double>>(many), Contains("counts 4294967295 elements of at least 8 bytes"));
  CHECK_THAT(refusal<std::vector<device_timing>>(many), Contains("counts 4294967295"));
  CHECK_THAT(refusal<attributes>(many), Contains("counts 4294967295"));
  CHECK_THAT(refusal<std::vector<std::string>>(some), Contains("counts 3 elements of at least 4 bytes, but 4 bytes"));
}

TEST_CASE("bytes that are not a value of a type are refused", "[wire]") {
  CHECK_THAT(refusal<bool>({2}), Contains("2 is not a boolean (0 or 1)"));
  CHECK_THAT(refusal<device_kind>({5}), Contains("5 is not one of the values"));
  for (uint8_t number : {0, 13, 14, 15, 22, 26, 27, 255}) {
    const bool known = number <= 26 && number != 14 && number != 15;
    CHECK((thrown_by([&] { decode<dtype>(std::vector{number}); }).code() == errc::internal) == known);
  }
  CHECK_THAT(refusal<errc>({0}), Contains("0 is not one"));
  CHECK_THAT(refusal<sample>(std::vector<uint8_t>(200, 0xff)), Contains("malformed at byte"));
  const std::map<std::string, int> once{{"a", 1}};
  std::vector<uint8_t> twice = encode(once);
  twice.insert(twice.end(), twice.begin() + 4, twice.end());
  twice[0] = 2;
  CHECK_THAT((refusal<std::map<std::string, int>>(twice)), Contains("a key stands there twice"));
}

TEST_CASE("tensors of every type cross hosts", "[wire]") {
  for (dtype type : {dtype::float32, dtype::int8, dtype::boolean, dtype::float16, dtype::uint4, dtype::float8e5m2}) {
    tensor t(type, {3, 5});
    std::memset(t.mutable_data(), 1, static_cast<size_t>(t.bytes()));
    const auto same = decode<tensor>(encode(t));
    CHECK((same.type() == type && same.dims() == t.dims()));
    CHECK(std::memcmp(same.data(), t.data(), static_cast<size_t>(t.bytes())) == 0);
  }
  const std::vector<std::string> words{"", "two\nlines", std::string(1000, 'x')};
  const auto texts = decode<tensor>(encode(tensor::of<std::string>({3}, words)));
  CHECK(std::equal(words.begin(), words.end(), texts.values<std::string>().begin()));
  CHECK(!decode<tensor>(encode(tensor())).defined());
  CHECK(decode<tensor>(encode(tensor(dtype::int64, {2, 0}))).dims() == shape{2, 0});
}

TEST_CASE("tensors that no bytes fill are refused", "[wire]") {
  const auto with = [](dtype type, const shape& dims) {
    std::vector<uint8_t> bytes;
    writer w(bytes);
    w(type, dims);
    bytes.resize(bytes.size() + 64);
    return bytes;
  };
  CHECK_THAT(refusal<tensor>(with(dtype::float32, {17})), Contains("a tensor has 68 bytes, but 64 are left"));
  CHECK_THAT(refusal<tensor>(with(dtype::string, {int64_t{1} << 40})), Contains("bytes, but 64 are left"));
  const shape impossible[] = {{-1}, {0, int64_t{1} << 62}, {int64_t{1} << 40, int64_t{1} << 40}, shape(65, 1)};
  for (const shape& dims : impossible)
    CHECK_THAT(refusal<tensor>(with(dtype::int8, dims)), Contains("no tensor is"));
  std::vector<uint8_t> truths = encode(tensor(dtype::boolean, {2}));
  truths.back() = 7; // as a bool it would be undefined behaviour
  CHECK(decode<tensor>(truths).data<uint8_t>()[1] == 1);
}

TEST_CASE("attributes cross hosts; bodies as stand-ins", "[wire]") {
  auto body = std::make_shared<graph>();
  body->captured = body->inputs = {body->add_value({}), body->add_value({})};
  const attributes attrs = attrs_of({{"i", int64_t{3}},
                                     {"r", 2.5f},
                                     {"t", std::string("text")},
                                     {"tensor", tensor::scalar(1.0f)},
                                     {"body", std::shared_ptr<const graph>(body)},
                                     {"is", std::vector<int64_t>{1, 2}},
                                     {"rs", std::vector<float>{}},
                                     {"ts", std::vector<std::string>{"a", "b"}}});
  const auto same = decode<attributes>(encode(attrs));
  CHECK(same.integer("i") == 3);
  CHECK(same.real("r") == 2.5f);
  CHECK(same.text("t", "") == "text");
  CHECK(same.tensor_value("tensor").data<float>()[0] == 1);
  CHECK(std::get<std::shared_ptr<const graph>>(same.all().at("body"))->captured.size() == 2);
  CHECK(same.integers("is") == std::vector<int64_t>{1, 2});
  CHECK(same.reals("rs", {1}).empty());
  CHECK(same.texts("ts", {}) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("facts about devices and results cross hosts", "[wire]") {
  CHECK(decode<device_info>(encode(some_gpu())) == some_gpu());
  const device_info cpu{.name = "cpu"};
  CHECK(decode<device_info>(encode(cpu)) == cpu);
  const auto stats = decode<device_stats>(encode(device_stats{.chunks = 3, .downloaded_bytes = 8}));
  CHECK((stats.chunks == 3 && stats.downloaded_bytes == 8));
  const auto failed = decode<failure>(encode(failure{errc::device_lost, "gone"}));
  CHECK((failed.code == errc::device_lost && failed.message == "gone"));
  chunk_result r{.code = errc::io, .message = "m", .busy_ns = 4};
  r.timings.push_back({device_timing::work::upload, 3, 1, 10, 20, 30, "k"});
  const auto same = decode<chunk_result>(encode(r));
  CHECK((same.code == errc::io && same.message == "m" && same.busy_ns == 4 && same.timings.size() == 1));
  CHECK((same.timings[0].kernel == "k" && same.timings[0].end_ns == 20));
}

TEST_CASE("facts that no device has are refused", "[wire]") {
  const auto refused = [](auto&& change) {
    device_info d = some_gpu();
    change(d);
    return refusal<device_info>(encode(d));
  };
  CHECK_THAT(refused([](device_info& d) { d.name = ""; }), Contains("cannot be true"));
  CHECK_THAT(refused([](device_info& d) { d.profile.launch_s = -1; }), Contains("cannot be true"));
  CHECK_THAT(refused([](device_info& d) { d.profile.up.bytes_per_s = 0; }), Contains("cannot be true"));
  CHECK_THAT(refused([](device_info& d) { d.profile.flops_per_s[1] = std::nan(""); }), Contains("cannot be true"));
  CHECK_THAT(refused([](device_info& d) { d.gpu->subgroup_size = 0; }), Contains("cannot be true"));
  CHECK_THAT(refused([](device_info& d) { d.gpu->binding_alignment = 0; }), Contains("cannot be true"));
  CHECK_THAT(refused([](device_info& d) { d.memory_bytes = -1; }), Contains("cannot be true"));
}
