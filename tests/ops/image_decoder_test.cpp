#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"

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

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(value >> shift);
  return bytes;
}

} // namespace

TEST_CASE("ImageDecoder gives pixels in the order that it is asked for", "[ops][image]") {
  CHECK(decoded(two_pixels).dims() == shape{2, 1, 3});
  CHECK(elements(decoded(two_pixels)) == std::vector<double>{250, 10, 20, 5, 6, 240});
  CHECK(elements(decoded(two_pixels, "BGR")) == std::vector<double>{20, 10, 250, 240, 6, 5});
  CHECK(elements(decoded(two_pixels, "Grayscale")) == std::vector<double>{83, 32});
  CHECK(elements(decoded("P5\n2 1\n255\n\x07\xc8")) == std::vector<double>{7, 7, 7, 200, 200, 200}); // a grey file
}

TEST_CASE("ImageDecoder gives no pixels for what is no image, or a broken one", "[ops][image]") {
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
  for (size_t at = 0; at < file.size(); ++at)
    for (const char value : {'\0', '\x7f', '\x80', '\xff'}) {
      std::string changed = file;
      changed[at] = value;
      try {
        decoded(changed);
      } catch (const error& e) {
        CHECK(e.code() == errc::invalid_input);
      }
    }
}
