// ImageDecoder: an image file's bytes as [height, width, channels]: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP,
// whichever it is.
//
// Leptonica reads them all, by the libraries that everybody reads these formats with; only this file
// includes it. Bytes that are not such an image, or a broken one, give an image without pixels, as ONNX asks for.
// Transparency is left out. Grey is (299 R + 587 G + 114 B) / 1000, rounded.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"

#include <leptonica/allheaders.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>

namespace troupe {
namespace {

/// The most pixels of an image: files state their dims, and a small one may state large ones.
constexpr int64_t most_pixels = int64_t{1} << 26;

enum class pixel_format : uint8_t { rgb, bgr, grey };

pixel_format parse_format(const attributes& attrs) {
  return word_as<pixel_format>(attrs, "pixel_format", "RGB", {"RGB", "BGR", "Grayscale"});
}

int64_t channels_of(pixel_format format) {
  return format == pixel_format::grey ? 1 : 3;
}

struct pix_deleter {
  void operator()(PIX* pix) const { pixDestroy(&pix); }
};
using pix_ptr = std::unique_ptr<PIX, pix_deleter>;

bool is_known(int format) {
  switch (format) {
    case IFF_BMP:
    case IFF_JFIF_JPEG:
    case IFF_PNG:
    case IFF_PNM:
    case IFF_WEBP:
    case IFF_JP2: return true;
    default: return L_FORMAT_IS_TIFF(format);
  }
}

// -- what is refused before a library decodes it

/// Returns a number of `width` bytes, high ones first; bytes past the end are 0.
uint64_t number(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = at; i < at + width; ++i)
    value = value << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
  return value;
}

int64_t count_of(std::string_view bytes, std::string_view what) {
  int64_t count = 0;
  for (size_t at = bytes.find(what); at != std::string_view::npos; at = bytes.find(what, at + what.size()))
    ++count;
  return count;
}

/// Throws `errc::unsupported` if a JPEG has more scans than cameras and programs write: each goes over all pixels,
/// however few bytes it has.
void check_jpeg(std::string_view file) {
  constexpr int64_t most_scans = 100;
  if (count_of(file, "\xff\xda") > most_scans)
    fail(errc::unsupported, "a JPEG of more than {} scans is not supported", most_scans);
}

/// Returns whether a PNG begins with its dims, as it must; throws `errc::unsupported` if it has many compressed texts.
bool check_png(std::string_view file) {
  constexpr int64_t most_texts = 16; // each may be thousands of times as large as in the file
  if (count_of(file, "zTXt") + count_of(file, "iTXt") > most_texts)
    fail(errc::unsupported, "a PNG of more than {} compressed texts is not supported", most_texts);
  return file.size() > 16 && file.substr(12, 4) == "IHDR";
}

/// Returns how many bits a pixel of a BMP has.
int bmp_bits(std::string_view file) {
  constexpr size_t place = 28;
  return file.size() <= place + 1 ? 0 : static_cast<uint8_t>(file[place]) | static_cast<uint8_t>(file[place + 1]) << 8;
}

/// Throws `errc::unsupported` if a BMP's pixels have 16 bits, which leptonica takes for grey.
void check_bmp(std::string_view file) {
  if (bmp_bits(file) == 16)
    fail(errc::unsupported, "a BMP of 16 bits a pixel is not supported; save it with 24");
}

// -- JPEG 2000
//
// OpenJPEG takes memory for components, tiles, precincts and code blocks as the codestream's markers count them, and
// leptonica reads every component as if it had the first one's size. So the markers are walked here, those of tiles
// too, in the only order in which OpenJPEG finds the same ones: what it would skip or mend is not decoded.

/// Components are held in 32 bits, twice; so these images are smaller than others.
constexpr uint64_t most_pixels_2000 = uint64_t{1} << 24, most_tiles = 4096, most_layers = 256;

enum marker : uint64_t {
  start_of_image = 0xff4f,
  image_size = 0xff51,
  coding_style = 0xff52,
  tile_lengths = 0xff55,
  packet_lengths = 0xff58,
  quantisation = 0xff5c,
  component_quantisation = 0xff5d,
  comment = 0xff64,
  start_of_tile = 0xff90,
  start_of_data = 0xff93,
  end_of_image = 0xffd9
};

[[noreturn]] void refuse(std::string_view what) {
  fail(errc::unsupported, "JPEG 2000 with {} is not supported; save the image as PNG or JPEG", what);
}

/// Returns where the segment after SIZ begins; nothing if the codestream is broken.
std::optional<size_t> check_size(std::string_view s) {
  if (number(s, 0, 2) != start_of_image || number(s, 2, 2) != image_size)
    return std::nullopt;
  const uint64_t width = number(s, 8, 4), height = number(s, 12, 4);
  if (width * height > most_pixels_2000)
    fail(errc::invalid_input, "a JPEG 2000 image of {} x {} pixels is larger than the {} that are decoded", width,
         height, most_pixels_2000);
  const uint64_t tile_width = number(s, 24, 4), tile_height = number(s, 28, 4), components = number(s, 40, 2);
  if (width == 0 || height == 0 || tile_width == 0 || tile_height == 0)
    return std::nullopt;
  if (((width - 1) / tile_width + 1) * ((height - 1) / tile_height + 1) > most_tiles)
    refuse("more than 4096 tiles");
  if (components != 1 && components != 3 && components != 4)
    refuse("other than 1, 3 or 4 components");
  for (size_t i = 0; i < components; ++i)
    if (number(s, 42 + 3 * i, 3) != 0x070101)
      refuse("components of other than 8 bits or of another size than the image");
  return number(s, 4, 2) == 38 + 3 * components ? std::optional<size_t>(42 + 3 * components) : std::nullopt;
}

/// Looks at the segment COD at `at`.
void check_coding(std::string_view s, size_t at) {
  if (number(s, at + 4, 1) & 1)
    refuse("precincts");
  if (number(s, at + 6, 2) > most_layers)
    refuse("more than 256 layers");
  if (number(s, at + 10, 1) < 2 || number(s, at + 11, 1) < 2)
    refuse("code blocks of less than 16 x 16");
}

/// Returns where marker `last` is, before which come only segments of the markers `known`; nothing if the codestream is
/// broken.
std::optional<size_t> skip_segments(std::string_view s, size_t at, std::initializer_list<marker> known, marker last) {
  for (;;) {
    const uint64_t found = number(s, at, 2), length = number(s, at + 2, 2);
    if (found == last)
      return at;
    if (found < 0xff00 || length < 2)
      return std::nullopt;
    if (std::find(known.begin(), known.end(), found) == known.end())
      fail(errc::unsupported, "JPEG 2000 with the marker {:x} is not supported; save the image as PNG or JPEG", found);
    if (found == coding_style)
      check_coding(s, at);
    at += 2 + length;
  }
}

bool check_codestream(std::string_view s) {
  auto at = check_size(s);
  if (at)
    at = skip_segments(s, *at, {coding_style, quantisation, component_quantisation, comment, tile_lengths},
                       start_of_tile);
  while (at && number(s, *at, 2) == start_of_tile) {
    const uint64_t length = number(s, *at + 6, 4);
    const auto data = skip_segments(s, *at + 12, {packet_lengths, comment}, start_of_data);
    const size_t end = length == 0 ? s.size() : *at + length;
    if (number(s, *at + 2, 2) != 10 || !data || end < *data + 2 || end > s.size())
      return false;
    at = end;
  }
  return at && (*at == s.size() || number(s, *at, 2) == end_of_image);
}

/// Returns whether a JPEG 2000 file, or bare codestream, is well-formed up to the coded data; throws
/// `errc::invalid_input` if its image is too large, `errc::unsupported` if it is not of the plain kind that is decoded:
/// 1, 3 or 4 components of 8 bits and of the image's size, no palette, one set of parameters for all tiles.
bool check_jpeg2000(std::string_view file) {
  if (number(file, 0, 2) == start_of_image)
    return check_codestream(file);
  // In front of the codestream are boxes. A name that is there once cannot be taken for another box's.
  constexpr std::string_view name = "jp2c";
  if (count_of(file, name) != 1)
    return false;
  if (count_of(file, "pclr") != 0) // OpenJPEG makes as many components of it as it says
    refuse("a palette");
  return check_codestream(file.substr(file.find(name) + name.size()));
}

// -- decoding

/// Returns whether a file of these dims may be decoded; throws if it would take more memory or time than an image
/// should.
bool check_file(std::string_view file, int format, int64_t width, int64_t height) {
  if (width < 1 || height < 1)
    return false;
  if (width * height > most_pixels)
    fail(errc::invalid_input, "an image of {} x {} pixels is larger than the {} that are decoded", width, height,
         most_pixels);
  switch (format) {
    case IFF_BMP: check_bmp(file); return true;
    case IFF_JFIF_JPEG: check_jpeg(file); return true;
    case IFF_PNG: return check_png(file);
    case IFF_JP2: return check_jpeg2000(file);
    default: return true;
  }
}

/// Returns whether this leptonica exchanges red and blue of BMPs with 32 bits a pixel: some do.
bool exchanges_colours() {
  static const bool found = [] {
    std::array<l_uint8, 58> red{'B', 'M', 58}; // one pixel
    red[10] = 54;
    red[14] = 40;
    red[18] = red[22] = red[26] = 1;
    red[28] = 32;
    red[56] = 255;
    const pix_ptr read(pixReadMem(red.data(), red.size()));
    return read && (*pixGetData(read.get()) >> L_RED_SHIFT & 0xff) == 0;
  }();
  return found;
}

void exchange_colours(PIX& pix) {
  l_uint32* pixels = pixGetData(&pix);
  for (int64_t i = 0; i < int64_t{pixGetHeight(&pix)} * pixGetWpl(&pix); ++i) {
    const l_uint32 r = pixels[i] >> L_RED_SHIFT & 0xff, g = pixels[i] >> L_GREEN_SHIFT & 0xff,
                   b = pixels[i] >> L_BLUE_SHIFT & 0xff;
    pixels[i] = b << L_RED_SHIFT | g << L_GREEN_SHIFT | r << L_BLUE_SHIFT;
  }
}

/// Returns the image with 8 bits for each of red, green and blue; null if the bytes are none.
pix_ptr decode(const const_view& bytes) {
  // Leptonica's messages about a file do not go to stderr.
  static const bool quiet = [] {
    setMsgSeverity(L_SEVERITY_NONE);
    leptSetStderrHandler([](const char*) {});
    return true;
  }();
  const auto* data = bytes.as<l_uint8>();
  const auto size = static_cast<size_t>(bytes.size());
  constexpr size_t least_bytes = 12; // formats are told apart by the first ones
  l_int32 format = 0, width = 0, height = 0, bits = 0, samples = 0, has_map = 0;
  if (!quiet || size < least_bytes || findFileFormatBuffer(data, &format) != 0 || !is_known(format) ||
      pixReadHeaderMem(data, size, &format, &width, &height, &bits, &samples, &has_map) != 0)
    return nullptr;
  const std::string_view file(bytes.as<char>(), size);
  if (!check_file(file, format, width, height))
    return nullptr;
  const pix_ptr read(pixReadMem(data, size));
  pix_ptr made(read ? pixConvertTo32(read.get()) : nullptr);
  if (made && format == IFF_BMP && bmp_bits(file) == 32 && exchanges_colours())
    exchange_colours(*made);
  return made;
}

void write_row(const l_uint32* from, int64_t count, pixel_format format, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t r = from[i] >> L_RED_SHIFT & 0xff, g = from[i] >> L_GREEN_SHIFT & 0xff,
                   b = from[i] >> L_BLUE_SHIFT & 0xff;
    if (format == pixel_format::grey) {
      *to++ = static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
      continue;
    }
    *to++ = static_cast<uint8_t>(format == pixel_format::rgb ? r : b);
    *to++ = static_cast<uint8_t>(g);
    *to++ = static_cast<uint8_t>(format == pixel_format::rgb ? b : r);
  }
}

void infer_decoder(infer_context& c) {
  const int64_t channels = channels_of(parse_format(c.attrs()));
  if (c.rank(0) != 1)
    fail(errc::invalid_model, "the bytes of a file must be a vector, not {}", to_string(c.dims(0)));
  c.set_output(0, dtype::uint8, {c.data_dependent(0, 0), c.data_dependent(0, 1), channels});
}

void image_decoder(kernel_context& c) {
  const pixel_format format = parse_format(c.attrs());
  const int64_t channels = channels_of(format);
  const pix_ptr image = decode(c.input(0));
  const int64_t height = image ? pixGetHeight(image.get()) : 0, width = image ? pixGetWidth(image.get()) : 0;
  auto* to = output_of(c, 0, {height, width, channels}).as<uint8_t>();
  for (int64_t y = 0; y < height; ++y)
    write_row(pixGetData(image.get()) + y * pixGetWpl(image.get()), width, format, to + y * width * channels);
}

constexpr auto image_decoder_rows = std::to_array<op_def>({
    op_row("ImageDecoder", 20, infer_decoder, image_decoder,
           {.types = set_of(dtype::uint8), .mixes = "takes the bytes of one file"}),
});

} // namespace

extern constinit const op_table onnx_image_decoder_ops = image_decoder_rows;

} // namespace troupe
