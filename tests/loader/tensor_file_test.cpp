#include "support/catch.hpp"

#include "loader/models.hpp"
#include "troupe/tensor_file.hpp"

#include <zlib.h>

#include <cstring>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string length(version == 1 ? 2 : 4, '\0');
  const auto size = static_cast<uint32_t>(dict.size());
  std::memcpy(length.data(), &size, length.size());
  return std::string("\x93NUMPY") + version + '\0' + length + dict + data;
}

std::string dict_of(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string deflated(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(data.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct zip_entry {
  std::string name, packed;
  uint16_t method = 0;
  uint32_t crc = 0, size = 0;
};

zip_entry stored(const std::string& name, const std::string& data) {
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
  return {name, data, 0, static_cast<uint32_t>(crc), static_cast<uint32_t>(data.size())};
}

zip_entry packed(const std::string& name, const std::string& data) {
  zip_entry e = stored(name, data);
  e.packed = deflated(data);
  e.method = 8;
  return e;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string zip(const std::vector<zip_entry>& entries) {
  std::string files, directory;
  for (const auto& e : entries) {
    const auto at = static_cast<uint32_t>(files.size());
    const auto sizes = [&](std::string& out) {
      put(out, e.crc);
      put(out, static_cast<uint32_t>(e.packed.size()));
      put(out, e.size);
      put(out, static_cast<uint16_t>(e.name.size()));
      put(out, uint16_t{0});
    };
    put(files, uint32_t{0x04034b50});
    for (uint16_t v : {uint16_t{20}, uint16_t{0}, e.method, uint16_t{0}, uint16_t{0}})
      put(files, v);
    sizes(files);
    files += e.name + e.packed;
    put(directory, uint32_t{0x02014b50});
    for (uint16_t v : {uint16_t{20}, uint16_t{20}, uint16_t{0}, e.method, uint16_t{0}, uint16_t{0}})
      put(directory, v);
    sizes(directory);
    directory.append(10, '\0'); // comment length, disk, attributes
    put(directory, at);
    directory += e.name;
  }
  std::string out = files + directory;
  put(out, uint32_t{0x06054b50});
  put(out, uint32_t{0});
  put(out, static_cast<uint16_t>(entries.size()));
  put(out, static_cast<uint16_t>(entries.size()));
  put(out, static_cast<uint32_t>(directory.size()));
  put(out, static_cast<uint32_t>(files.size()));
  put(out, uint16_t{0});
  return out;
}

} // namespace

TEST_CASE("tensors survive .pb and .npy files", "[loader]") {
  const scratch_folder folder;
  const std::vector<float> values{1, -2, 3.5f, 0, 5, 6};
  const tensor t = tensor::of<float>({2, 3}, values);
  write_pb(folder.path() / "t.pb", "name", t);
  const named_tensor pb = read_pb(folder.path() / "t.pb");
  CHECK(pb.name == "name");
  CHECK(pb.value.dims() == shape{2, 3});
  CHECK(std::memcmp(pb.value.data(), values.data(), 24) == 0);
  write_npy(folder.path() / "t.npy", t);
  const tensor npy = read_npy(folder.path() / "t.npy");
  CHECK(npy.dims() == shape{2, 3});
  CHECK(std::memcmp(npy.data(), values.data(), 24) == 0);
  CHECK(std::filesystem::file_size(folder.path() / "t.npy") == 128 + 24); // the header NumPy writes

  const std::vector<std::string> words{"a", "", "long enough to be on the heap"};
  write_pb(folder.path() / "s.pb", "s", tensor::of<std::string>({3}, words));
  CHECK(read_pb(folder.path() / "s.pb").value.values<std::string>()[2] == words[2]);
  CHECK_THAT(error_of([&] { write_npy(folder.path() / "s.npy", tensor::of<std::string>({3}, words)); }),
             Contains("unsupported"));
  CHECK_THAT(error_of([&] { write_npy(folder.path() / "missing" / "t.npy", t); }),
             Contains("cannot be written: No such file"));

  for (const shape& dims : {shape{}, shape{0}, shape{1}, shape{2, 0, 3}}) {
    const tensor small(dtype::int64, dims);
    std::fill_n(const_cast<int64_t*>(small.data<int64_t>()), small.size(), 7);
    write_npy(folder.path() / "small.npy", small);
    CHECK(read_npy(folder.path() / "small.npy").dims() == dims);
  }
}

TEST_CASE("types that NumPy lacks are widened", "[loader]") {
  const scratch_folder folder;
  tensor nibbles(dtype::int4, {3});
  nibbles.mutable_data<uint8_t>()[0] = 0xf1; // 1, -1
  nibbles.mutable_data<uint8_t>()[1] = 0x08; // -8
  write_npy(folder.path() / "t.npy", nibbles);
  const tensor wide = read_npy(folder.path() / "t.npy");
  CHECK(wide.type() == dtype::int8);
  CHECK(wide.data<int8_t>()[0] == 1);
  CHECK(wide.data<int8_t>()[1] == -1);
  CHECK(wide.data<int8_t>()[2] == -8);
}

TEST_CASE("Fortran order and the newer .npy versions", "[loader]") {
  const scratch_folder folder;
  // NumPy: np.asfortranarray([[1, 2, 3], [4, 5, 6]]) is stored as 1 4 2 5 3 6.
  const auto data = bytes_of<int32_t>({1, 4, 2, 5, 3, 6});
  const auto file = folder.write("f.npy", npy(dict_of("<i4", "(2, 3)", "True"), data, 2));
  const tensor t = read_npy(file);
  for (int i = 0; i < 6; ++i)
    CHECK(t.data<int32_t>()[i] == i + 1);
  CHECK(read_npy(folder.write("v3.npy", npy(dict_of("|u1", "(2,)"), "ab", 3))).data<uint8_t>()[1] == 'b');
}

TEST_CASE("hostile .npy headers", "[loader]") {
  const scratch_folder folder;
  const auto wrong = [&](const std::string& bytes) {
    const auto file = folder.write("bad.npy", bytes);
    return error_of([&] { read_npy(file); });
  };
  const auto header = [&](const std::string& dict) { return wrong(npy(dict, "abcd")); };
  REQUIRE(header(dict_of("<f4", "(1,)")) == "");
  CHECK_THAT(header(dict_of("<f4", "(2,)")), Contains("invalid_input") && Contains("bad.npy"));
  CHECK_THAT(header(dict_of("<f4", "()") + " "), !Contains("malformed"));
  CHECK_THAT(header(dict_of("<f4", "(99999999999,)")), Contains("invalid_input"));
  CHECK_THAT(header(dict_of("<f4", "(4611686018427387904, 8)")), Contains("invalid_input") && Contains("overflow"));
  CHECK_THAT(header(dict_of("<f4", "(99999999999999999999,)")), Contains("shape is not valid"));
  CHECK_THAT(header(dict_of("<f4", "(-1,)")), Contains("shape is not valid"));
  CHECK_THAT(header(dict_of("<f4", "(1 1)")), Contains("malformed"));
  CHECK_THAT(header(dict_of(">f4", "(1,)")), Contains("big-endian"));
  CHECK_THAT(header(dict_of("|O", "(1,)")), Contains("objects"));
  CHECK_THAT(header(dict_of("<U4", "(1,)")), Contains("'<U4' is not supported"));
  CHECK_THAT(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), Contains("structured"));
  CHECK_THAT(header("{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }"), Contains("malformed"));
  CHECK_THAT(header("{'descr': '<f4'"), Contains("malformed"));
  CHECK_THAT(header(std::string(60000, '{')), Contains("malformed"));
  CHECK_THAT(wrong(""), Contains("not a .npy array"));
  CHECK_THAT(wrong("\x93NUMPY\x01"), Contains("not a .npy array"));
  CHECK_THAT(wrong(npy(dict_of("<f4", "(1,)"), "abcd", 9)), Contains("version 9"));
  CHECK_THAT(wrong(npy(dict_of("<f4", "(1,)"), "abcd").substr(0, 30)), Contains("truncated"));
  CHECK_THAT(wrong(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff", 12)), Contains("truncated"));
}

TEST_CASE(".npz archives, stored and deflated", "[loader]") {
  const scratch_folder folder;
  const auto read = [&](const std::string& bytes) { return read_npz(folder.write("a.npz", bytes)); };
  const std::string a = npy(dict_of("<i8", "(2,)"), bytes_of<int64_t>({5, -6}));
  const std::string b = npy(dict_of("<f4", "(100000,)"), bytes_of(std::vector<float>(100000, 0.25f)));
  const auto arrays = read(zip({stored("a.npy", a), packed("b.npy", b)}));
  REQUIRE(arrays.size() == 2);
  CHECK(arrays.at("a").data<int64_t>()[1] == -6);
  CHECK(arrays.at("b").data<float>()[99999] == 0.25f);
  CHECK(read(zip({})).empty());
}

TEST_CASE("hostile .npz archives", "[loader]") {
  const scratch_folder folder;
  const auto wrong = [&](const std::string& bytes) {
    const auto file = folder.write("bad.npz", bytes);
    return error_of([&] { read_npz(file); });
  };
  const std::string a = npy(dict_of("<f4", "(1000,)"), std::string(4000, 'a'));
  const auto good = packed("a.npy", a);
  REQUIRE(wrong(zip({good})) == "");
  auto bomb = good; // says that it inflates to 4 GB
  bomb.size = 0xfffffff0;
  CHECK_THAT(wrong(zip({bomb})), Contains("invalid_input"));
  auto big = packed("a.npy", npy(dict_of("<f4", "(201326592,)"), std::string(70000, 'a')));
  big.size = 201326592 * 4u - 100;
  CHECK_THAT(wrong(zip({big})), Contains("size is not"));
  auto damaged = good;
  damaged.crc ^= 1;
  CHECK_THAT(wrong(zip({damaged})), Contains("damaged"));
  auto cut = good;
  cut.packed.resize(cut.packed.size() / 2);
  CHECK_THAT(wrong(zip({cut})), Contains("too short"));
  CHECK_THAT(wrong(zip({good, good})), Contains("same name"));
  CHECK_THAT(wrong(zip({stored("a.txt", a)})), Contains("not a .npy"));
  auto method = good;
  method.method = 12;
  CHECK_THAT(wrong(zip({method})), Contains("compression method"));
  CHECK_THAT(wrong("PK"), Contains("not a valid .npz archive"));
  // Each end of the directory is another walk through it.
  const std::string archive = zip({good}), end = archive.substr(archive.rfind("PK\5\6"));
  std::string ends = archive;
  for (int i = 0; i < 20; ++i)
    ends += end;
  CHECK_THAT(wrong(ends), Contains("ends more than once"));
  // Zeros deflate 1000 to 1: a small archive must not ask for all memory, and not by many arrays either.
  auto half = packed("b.npy", npy(dict_of("<f4", "(150000000,)"), std::string(1 << 20, '\0')));
  half.size = 600'000'128;
  CHECK_THAT(wrong(zip({good, half, half})), Contains("too large for an archive of this size"));
  const std::string whole = zip({good, stored("b.npy", a)});
  for (size_t size = 0; size < whole.size(); size += 97)
    CHECK(wrong(whole.substr(0, size)) != "");
}

TEST_CASE("bytes that are not serialized tensors", "[loader]") {
  const scratch_folder folder;
  const auto wrong = [&](const std::string& bytes) {
    const auto file = folder.write("bad.pb", bytes);
    return error_of([&] { read_pb(file); });
  };
  CHECK_THAT(wrong(""), Contains("bad.pb") && Contains("not a serialized tensor"));
  CHECK_THAT(wrong("\xff\xff\xff"), Contains("invalid_model"));
  // A SequenceProto: name, element type, tensors.
  CHECK_THAT(wrong(std::string("\x0a\x01s\x10\x01\x1a\x00", 7)),
             Contains("unsupported") && Contains("a sequence or optional where a tensor is expected"));
  auto t = raw_floats("t", {1}, {1});
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  t.clear_raw_data();
  CHECK_THAT(wrong(t.SerializeAsString()), Contains("external data"));
}
