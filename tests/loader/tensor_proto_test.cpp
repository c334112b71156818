// The ways in which a TensorProto holds its elements.
#include "support/catch.hpp"

#include "loader/models.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

onnx::TensorProto typed(int code, std::vector<int64_t> dims) {
  onnx::TensorProto t;
  t.set_name("w");
  t.set_data_type(code);
  for (int64_t d : dims)
    t.add_dims(d);
  return t;
}

/// The tensor that the loader makes of an initializer.
tensor loaded(const onnx::TensorProto& t, const std::filesystem::path& folder = {}) {
  auto m = relu_model();
  *m.mutable_graph()->add_initializer() = t;
  const graph g = load(m, folder);
  for (const value& v : g.values)
    if (v.name == t.name())
      return v.constant->leaf;
  return {};
}

template <class T>
std::vector<T> elements(const tensor& t) {
  const auto values = t.values<T>();
  return {values.begin(), values.end()};
}

/// Three floats at byte 4 of "w.bin".
onnx::TensorProto external(const std::string& location, const std::string& offset, const std::string& length) {
  auto t = typed(onnx::TensorProto::FLOAT, {3});
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  const std::pair<const char*, std::string> entries[] = {
      {"location", location}, {"offset", offset}, {"length", length}};
  for (const auto& [key, text] : entries) {
    if (text.empty())
      continue;
    auto* entry = t.add_external_data();
    entry->set_key(key);
    entry->set_value(text);
  }
  return t;
}

} // namespace

TEST_CASE("typed fields of every element type", "[loader]") {
  auto t = typed(onnx::TensorProto::INT64, {2});
  t.add_int64_data(-5);
  t.add_int64_data(int64_t{1} << 40);
  CHECK(elements<int64_t>(loaded(t)) == std::vector<int64_t>{-5, int64_t{1} << 40});
  t = typed(onnx::TensorProto::UINT32, {1});
  t.add_uint64_data(4'000'000'000u);
  CHECK(elements<uint32_t>(loaded(t)) == std::vector<uint32_t>{4'000'000'000u});
  t = typed(onnx::TensorProto::DOUBLE, {1});
  t.add_double_data(0.1);
  CHECK(elements<double>(loaded(t)) == std::vector<double>{0.1});
  t = typed(onnx::TensorProto::FLOAT16, {2});
  t.add_int32_data(0x3c00);
  t.add_int32_data(0xc000);
  CHECK(float(loaded(t).data<float16>()[0]) == 1.f);
  CHECK(float(loaded(t).data<float16>()[1]) == -2.f);
  t = typed(onnx::TensorProto::INT8, {2});
  t.add_int32_data(-128);
  t.add_int32_data(7);
  CHECK(elements<int8_t>(loaded(t)) == std::vector<int8_t>{-128, 7});
  t = typed(onnx::TensorProto::STRING, {2});
  t.add_string_data("a");
  t.add_string_data("bc");
  CHECK(loaded(t).values<std::string>()[0] == "a");
  CHECK(loaded(t).values<std::string>()[1] == "bc");
  t = typed(static_cast<int>(dtype::int4), {3}); // two elements an entry
  t.add_int32_data(0x21);
  t.add_int32_data(0x0f);
  CHECK(loaded(t).data<uint8_t>()[0] == 0x21);
  CHECK(loaded(t).data<uint8_t>()[1] == 0x0f);
}

TEST_CASE("booleans become 0 or 1", "[loader]") {
  auto t = typed(onnx::TensorProto::BOOL, {3});
  t.set_raw_data(std::string("\x00\x07\x01", 3));
  CHECK(elements<bool>(loaded(t)) == std::vector<bool>{false, true, true});
  CHECK(loaded(t).data<uint8_t>()[1] == 1);
}

TEST_CASE("typed fields of the wrong length or range", "[loader]") {
  auto t = typed(onnx::TensorProto::INT64, {3});
  t.add_int64_data(1);
  CHECK_THAT(error_of([&] { loaded(t); }), Contains("1 elements") && Contains("'w'"));
  t = typed(onnx::TensorProto::INT8, {1});
  t.add_int32_data(1000);
  CHECK_THAT(error_of([&] { loaded(t); }), Contains("1000"));
  t = typed(onnx::TensorProto::STRING, {1});
  CHECK_THAT(error_of([&] { loaded(t); }), Contains("strings"));
  t = typed(onnx::TensorProto::FLOAT, {int64_t{1} << 45});
  t.add_float_data(1);
  CHECK_THAT(error_of([&] { loaded(t); }), Contains("invalid_model"));
}

TEST_CASE("external data is read in place", "[loader]") {
  const scratch_folder folder;
  const float values[] = {9, 1, 2, 3};
  folder.write("w.bin", std::string(reinterpret_cast<const char*>(values), sizeof values));
  CHECK(elements<float>(loaded(external("w.bin", "4", "12"), folder.path())) == std::vector<float>{1, 2, 3});
  CHECK(elements<float>(loaded(external("./w.bin", "4", ""), folder.path())) == std::vector<float>{1, 2, 3});
  CHECK(elements<float>(loaded(external("w.bin", "", "12"), folder.path())) == std::vector<float>{9, 1, 2});
  const tensor unaligned = loaded(external("w.bin", "3", "12"), folder.path());
  CHECK(reinterpret_cast<uintptr_t>(unaligned.data()) % alignof(float) == 0);
  CHECK(std::memcmp(unaligned.data(), reinterpret_cast<const char*>(values) + 3, 12) == 0);
}

TEST_CASE("tensors that name the same external bytes again and again are refused, however they spell the file",
          "[loader][limits]") {
  const scratch_folder folder;
  folder.write("w.bin", std::string(1 << 20, '\x01'));
  const auto loading = [&](bool spelled, int code, int64_t elements, const char* offset) {
    auto m = relu_model();
    std::string location = "w.bin";
    for (int i = 0; i < 100; ++i) {
      auto t = external(location, offset, "");
      t.set_name("w" + std::to_string(i));
      t.set_data_type(code);
      t.set_dims(0, elements);
      *m.mutable_graph()->add_initializer() = t;
      if (spelled)
        location = "./" + location;
    }
    return error_of([&] { load(m, folder.path()); });
  };
  const auto flat = onnx::TensorProto::FLOAT;
  CHECK_THAT(loading(false, flat, (1 << 18) - 1, "1"), Contains("unsupported") && Contains("same bytes"));
  CHECK_THAT(loading(true, flat, (1 << 18) - 1, "1"), Contains("unsupported") && Contains("same bytes"));
  CHECK_THAT(loading(false, onnx::TensorProto::BOOL, 1 << 20, "0"), Contains("same bytes")); // each is checked
  CHECK_THAT(loading(true, flat, 1 << 18, "0"), Contains("same bytes"));                     // each is hashed
  CHECK(loading(true, flat, 1 << 12, "0") == "");
}

TEST_CASE("external data that is missing, short or outside of the folder", "[loader]") {
  const scratch_folder outside, folder;
  outside.write("secret.bin", std::string(64, 'x'));
  folder.write("w.bin", std::string(16, 'x'));
  std::filesystem::create_symlink(outside.path() / "secret.bin", folder.path() / "link.bin");
  std::filesystem::create_directory(folder.path() / "sub");
  std::filesystem::create_symlink(outside.path(), folder.path() / "sub" / "link");
  const auto wrong = [&](const std::filesystem::path& location, const std::string& offset, const std::string& length) {
    return error_of([&] { loaded(external(location.string(), offset, length), folder.path()); });
  };
  REQUIRE(wrong("w.bin", "0", "12") == "");
  CHECK(wrong("sub/../w.bin", "0", "12") == "");
  CHECK_THAT(wrong("missing.bin", "0", "12"), Contains("io") && Contains("missing.bin") && Contains("tensor 'w'"));
  CHECK_THAT(wrong("w.bin", "8", "12"), Contains("8 to 20"));
  CHECK_THAT(wrong("w.bin", "0", "8"), Contains("8 bytes"));
  CHECK_THAT(wrong("w.bin", "-4", "12"), Contains("not a valid number"));
  CHECK_THAT(wrong("w.bin", "4x", "12"), Contains("not a valid number"));
  CHECK_THAT(wrong("w.bin", "99999999999999999999", "12"), Contains("not a valid number"));
  CHECK_THAT(wrong("w.bin", "9223372036854775807", "12"), Contains("invalid_model"));
  CHECK_THAT(wrong((outside.path() / "secret.bin").string(), "0", "12"), Contains("relative"));
  CHECK_THAT(wrong(std::filesystem::path("..") / outside.path().filename() / "secret.bin", "0", "12"),
             Contains("leaves"));
  CHECK_THAT(wrong("sub/../../x", "0", "12"), Contains("leaves"));
  CHECK(wrong("link.bin", "0", "12") == ""); // the user's own links
  CHECK(wrong("sub/link/secret.bin", "0", "12") == "");
  std::filesystem::create_symlink(outside.path() / "nowhere", folder.path() / "dangling.bin");
  CHECK_THAT(wrong("dangling.bin", "0", "12"), Contains("io") && Contains("dangling.bin"));
  folder.write("lfs.bin", "version https://git-lfs.github.com/spec/v1");
  CHECK_THAT(wrong("lfs.bin", "40", "12"), Contains("a Git LFS pointer"));
  CHECK_THAT(wrong("sub", "0", "12"), Contains("a directory"));
  CHECK_THAT(wrong("", "0", "12"), Contains("relative"));
  CHECK_THAT(wrong(std::string("w.bin\0x", 7), "0", "12"), Contains("relative"));
  CHECK_THAT(error_of([&] { loaded(external("w.bin", "0", "12")); }), Contains("no folder"));
}
