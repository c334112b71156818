// ImageDecoder: an image file's bytes as [height, width, channels]: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP, whichever it is.
//
// Leptonica reads them all, by the libraries that everybody reads these formats with; only this file includes it. What is no such image, or
// broken, gives an image without pixels, as ONNX asks for. Transparency is left out. Grey is (299 R + 587 G + 114 B) / 1000, rounded.
#include "ops/families.hpp"
#include "ops/movement.hpp"

#include <leptonica/allheaders.h>

#include <memory>

namespace troupe {
namespace {

/// Files state their dims, and a small one may state large ones: an image has at most so many pixels.
constexpr int64_t most_pixels = int64_t{1} << 26;

enum class pixel_format : uint8_t { rgb, bgr, grey };

pixel_format parse_format(const attributes& attrs) {
  const std::string name = attrs.text("pixel_format", "RGB");
  if (name == "RGB")
    return pixel_format::rgb;
  if (name == "BGR")
    return pixel_format::bgr;
  if (name == "Grayscale")
    return pixel_format::grey;
  fail(errc::invalid_model, "attribute 'pixel_format' is '{}', not RGB, BGR or Grayscale", name);
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

/// Returns whether all sizes that a JPEG 2000 codestream states are small enough: those of a file's header may be others.
bool has_small_codestreams(std::string_view bytes) {
  constexpr std::string_view start("\xff\x4f\xff\x51",
                                   4); // SOC and SIZ; behind them two numbers of 2 bytes, then width and height
  constexpr size_t before_sizes = 8;
  const auto number = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = at; i < at + 4; ++i)
      value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  };
  for (size_t at = bytes.find(start); at != std::string_view::npos; at = bytes.find(start, at + 1))
    if (at + before_sizes + 8 <= bytes.size() &&
        number(at + before_sizes) * number(at + before_sizes + 4) > static_cast<uint64_t>(most_pixels))
      return false;
  return true;
}

/// Returns the image with 8 bits for each of red, green and blue; null if the bytes are none.
pix_ptr decode(const const_view& bytes) {
  // What is wrong with a file is no news for stderr.
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
      pixReadHeaderMem(data, size, &format, &width, &height, &bits, &samples, &has_map) != 0 || width < 1 || height < 1)
    return nullptr;
  const std::string_view text(bytes.as<char>(), size);
  if (int64_t{width} * height > most_pixels || (format == IFF_JP2 && !has_small_codestreams(text)))
    fail(errc::invalid_input, "an image of {} x {} pixels is larger than the {} that are decoded", width, height,
         most_pixels);
  const pix_ptr read(pixReadMem(data, size));
  return pix_ptr(read ? pixConvertTo32(read.get()) : nullptr);
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
    op_row("ImageDecoder", 20, infer_decoder, image_decoder, {.types = set_of(dtype::uint8)}),
});

} // namespace

std::span<const op_def> image_decoder_ops() {
  return image_decoder_rows;
}

} // namespace troupe
