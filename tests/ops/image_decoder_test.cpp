#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

#include <string_view>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::test;

namespace {

tensor decoded(const std::string& file, const std::string& format = "RGB") {
  const std::vector<uint8_t> bytes(file.begin(), file.end());
  return run_op("ImageDecoder", 20, attrs_of({{"pixel_format", format}}),
                {tensor::of<uint8_t>({std::ssize(bytes)}, bytes)})[0];
}

/// Two pixels, one above the other: red-ish and blue-ish.
const std::string two_pixels = "P6\n1 2\n255\n\xfa\x0a\x14\x05\x06\xf0";

/// Returns a number of `width` bytes, high ones first.
std::string big_endian(uint32_t value, int width = 4) {
  std::string bytes;
  for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// Returns the bytes that are written as hexadecimal digits.
std::string from_digits(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

std::string box(const std::string& name, const std::string& content) {
  return big_endian(8 + static_cast<uint32_t>(content.size())) + name + content;
}

/// Parts of a JPEG 2000 file of grey pixels, which its codestream leaves at 128, that a test changes.
struct jpeg2000 {
  uint32_t width = 4, height = 2, components = 3, step = 1, style = 0, layers = 1, block = 4, tile = 1 << 20;
  std::string before_size, in_tile, in_header; // more markers, more boxes

  std::string stream() const {
    std::string size = big_endian(0, 2) + big_endian(width) + big_endian(height) + big_endian(0) + big_endian(0) +
                       big_endian(tile) + big_endian(tile) + big_endian(0) + big_endian(0) + big_endian(components, 2);
    for (uint32_t i = 0; i < components; ++i)
      size += "\7" + big_endian(i == 0 ? 1 : step, 1) + big_endian(i == 0 ? 1 : step, 1);
    const std::string coding = big_endian(style, 1) + big_endian(0, 1) + big_endian(layers, 2) + big_endian(0, 2) +
                               big_endian(block, 1) + big_endian(block, 1) + from_digits("0001");
    const std::string part = in_tile + from_digits("ff93") + std::string(components, 0); // packets with nothing in them
    return from_digits("ff4f") + before_size + from_digits("ff51") +
           big_endian(2 + static_cast<uint32_t>(size.size()), 2) + size + from_digits("ff52000c") + coding +
           from_digits("ff5c00044040") + from_digits("ff90000a0000") +
           big_endian(12 + static_cast<uint32_t>(part.size())) + from_digits("0001") + part + from_digits("ffd9");
  }

  /// The header states the sizes that a check of files reads, and never more than 3 components.
  std::string file() const {
    const std::string sizes =
        big_endian(height) + big_endian(width) + big_endian(components == 1 ? 1 : 3, 2) + from_digits("07070000");
    return box("jP  ", from_digits("0d0a870a")) + box("ftyp", "jp2 " + big_endian(0) + "jp2 ") +
           box("jp2h", box("ihdr", sizes) + box("colr", from_digits("01000000000010")) + in_header) +
           box("jp2c", stream());
  }
};

/// Returns a BMP of one pixel.
std::string bmp(char bits, const std::string& pixel) {
  std::string file = "BM" + std::string(52, 0) + pixel;
  file[2] = static_cast<char>(file.size());
  file[10] = 54;
  file[14] = 40;
  file[18] = file[22] = file[26] = 1;
  file[28] = bits;
  return file;
}

error refusal(const std::string& file) {
  return thrown_by([&] { decoded(file); });
}

} // namespace

TEST_CASE("ImageDecoder gives pixels in the order that it is asked for", "[ops][image]") {
  CHECK(decoded(two_pixels).dims() == shape{2, 1, 3});
  CHECK(elements(decoded(two_pixels)) == std::vector<double>{250, 10, 20, 5, 6, 240});
  CHECK(elements(decoded(two_pixels, "BGR")) == std::vector<double>{20, 10, 250, 240, 6, 5});
  CHECK(elements(decoded(two_pixels, "Grayscale")) == std::vector<double>{83, 32});
  CHECK(elements(decoded("P5\n2 1\n255\n\x07\xc8")) == std::vector<double>{7, 7, 7, 200, 200, 200}); // a grey file
}

TEST_CASE("ImageDecoder gives no pixels for bytes that are not an image, or a broken one", "[ops][image]") {
  for (const std::string& file :
       {std::string(), std::string("x"), std::string(400, '\xff'), std::string("GIF89a") + std::string(100, 0),
        std::string("\x89PNG\r\n\x1a\n") + std::string(60, 0), std::string("\xff\xd8\xff\xe0", 4) + std::string(60, 2),
        std::string("II*\0", 4) + std::string(60, 3), std::string("BM") + std::string(80, 4),
        std::string("RIFF....WEBPVP8 ") + std::string(60, 5)}) {
    INFO(file.substr(0, 12));
    CHECK(decoded(file).dims() == shape{0, 0, 3});
    CHECK(decoded(file, "Grayscale").dims() == shape{0, 0, 1});
  }
}

TEST_CASE("ImageDecoder refuses images of more pixels than it decodes before it does", "[ops][image]") {
  const error e = thrown_by([] { decoded("P6\n100000 100000\n255\n" + std::string(64, 1)); });
  CHECK(e.code() == errc::invalid_input);
  CHECK_THAT(e.what(), Catch::Contains("100000 x 100000 pixels"));
  CHECK(thrown_by([] { decoded(two_pixels, "CMYK"); }).code() == errc::invalid_model);
  // JPEG 2000: the codestream's sizes count, whatever the file's header says.
  const std::string box = big_endian(12) + "jP  \r\n\x87\n" + big_endian(20) + "ftypjp2 " + big_endian(0) + "jp2 " +
                          big_endian(45) + "jp2h" + big_endian(22) + "ihdr" + big_endian(1) + big_endian(1) +
                          std::string("\0\3\7\7\0\0", 6) + big_endian(15) + "colr" + std::string("\1\0\0\0\0\0\x10", 7);
  const std::string stream = box + big_endian(0) + "jp2c" + std::string("\xff\x4f\xff\x51\0\x2f\0\0", 8) +
                             big_endian(1 << 30) + big_endian(1 << 30) + std::string(60, 0);
  CHECK(thrown_by([&] { decoded(stream); }).code() == errc::invalid_input);
}

TEST_CASE("ImageDecoder decodes plain JPEG 2000, and refuses files that make OpenJPEG or leptonica go astray",
          "[ops][image]") {
  CHECK(elements(decoded(jpeg2000{}.file())) == std::vector<double>(24, 128));
  CHECK(elements(decoded(jpeg2000{.width = 8, .height = 8, .components = 1}.stream() + std::string(60, 0))).size() ==
        192);
  const std::string sets = from_digits("ff52000c00000001000000000001"), palette = from_digits("000103070707010203");
  const std::vector<std::pair<jpeg2000, const char*>> hostile{
      {jpeg2000{.width = 16, .height = 16, .step = 128}, "another size than the image"},
      {jpeg2000{.components = 200}, "other than 1, 3 or 4 components"},
      {jpeg2000{.components = 2}, "other than 1, 3 or 4 components"},
      {jpeg2000{.style = 1}, "precincts"},
      {jpeg2000{.layers = 257}, "more than 256 layers"},
      {jpeg2000{.block = 1}, "code blocks"},
      {jpeg2000{.width = 128, .height = 128, .tile = 1}, "more than 4096 tiles"},
      {jpeg2000{.in_tile = sets}, "the marker ff52"},
      {jpeg2000{.components = 1,
                .in_header = box("pclr", palette) + box("cmap", from_digits("000001000000010100000102"))},
       "a palette"},
  };
  for (const auto& [file, what] : hostile) {
    INFO(what);
    CHECK(refusal(file.file()).code() == errc::unsupported);
    CHECK_THAT(refusal(file.file()).what(), Catch::Contains(what));
  }
  CHECK(refusal(jpeg2000{.width = 5000, .height = 5000}.file()).code() == errc::invalid_input);
}

TEST_CASE("ImageDecoder takes codestreams that begin otherwise than they must for broken", "[ops][image]") {
  // OpenJPEG passes unknown markers over, so another SIZ may be where it decodes nothing.
  const jpeg2000 odd{.components = 5, .before_size = from_digits("ff30")};
  CHECK(decoded(odd.file()).dims() == shape{0, 0, 3});
  CHECK(decoded(odd.file() + box("free", jpeg2000{}.stream())).dims() == shape{0, 0, 3});
  CHECK(decoded(jpeg2000{}.file() + box("jp2c", jpeg2000{}.stream())).dims() == shape{0, 0, 3});
}

TEST_CASE("ImageDecoder reads the colours of BMPs of 24 and 32 bits, and refuses 16", "[ops][image]") {
  CHECK(elements(decoded(bmp(24, from_digits("1020f000")))) == std::vector<double>{240, 32, 16});
  CHECK(elements(decoded(bmp(32, from_digits("1020f0ff")))) == std::vector<double>{240, 32, 16});
  CHECK(elements(decoded(bmp(32, from_digits("1020f000")), "BGR")) == std::vector<double>{16, 32, 240});
  const error e = refusal(bmp(16, from_digits("007c0000")));
  CHECK(e.code() == errc::unsupported);
  CHECK_THAT(e.what(), Catch::Contains("16 bits a pixel"));
}

TEST_CASE("ImageDecoder refuses JPEGs of very many scans, and PNGs of very many compressed texts", "[ops][image]") {
  const auto jpeg = [](int scans) {
    std::string file = from_digits("ffd8ffc2000b080002000201011100");
    for (int i = 0; i < scans; ++i)
      file += from_digits("ffda0008010100003f00");
    return file + from_digits("ffd9");
  };
  CHECK(decoded(jpeg(100)).dims() == shape{0, 0, 3}); // without tables
  CHECK(refusal(jpeg(101)).code() == errc::unsupported);
  CHECK_THAT(refusal(jpeg(101)).what(), Catch::Contains("100 scans"));
  const auto png = [](int texts) {
    std::string file = from_digits("89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55");
    for (int i = 0; i < texts; ++i)
      file += big_endian(0) + (i % 2 ? "zTXt" : "iTXt") + big_endian(0);
    return file + from_digits("0000000a49444154789c63080500005700563f431f4c0000000049454e44ae426082");
  };
  CHECK(refusal(png(16)).code() == errc::internal); // nothing is thrown
  CHECK_THAT(refusal(png(17)).what(), Catch::Contains("16 compressed texts"));
}

TEST_CASE("ImageDecoder decodes no PNG whose first chunk is not the one with its dims", "[ops][image]") {
  // The first chunk, which libpng passes over, says 1 x 1, the real one 2 x 1.
  const std::string real = from_digits("0000000d4948445200000002000000010800000000d1492056"
                                       "0000000b49444154789c63080d0500010200ab8e727a5f0000000049454e44ae426082");
  const std::string first = from_digits("0000000d6162436400000001000000010800000000d9542778");
  const std::string start = from_digits("89504e470d0a1a0a");
  CHECK(decoded(start + real).dims() == shape{1, 2, 3});
  CHECK(decoded(start + first + real).dims() == shape{0, 0, 3});
}

TEST_CASE("ImageDecoder survives files with any byte changed", "[ops][image]") {
  std::string file = "BM" + std::string(52, 0) + std::string(24, 0x55); // 2 x 3 pixels of 24 bits
  file[2] = 78;
  file[10] = 54;
  file[14] = 40;
  file[18] = 2;
  file[22] = 3;
  file[26] = 1;
  file[28] = 24;
  REQUIRE(decoded(file).dims() == shape{3, 2, 3});
  for (const std::string& whole : {file, jpeg2000{}.file()})
    for (size_t at = 0; at < whole.size(); ++at)
      for (const char value : {'\0', '\x7f', '\x80', '\xff'}) {
        std::string changed = whole;
        changed[at] = value;
        try {
          decoded(changed);
        } catch (const error& e) {
          CHECK((e.code() == errc::invalid_input || e.code() == errc::unsupported));
        }
      }
}
