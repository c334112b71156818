// troupe.Reorder of images of bytes with few channels, as models begin with them: planes become pixels. One loop for
// each number of channels, which compilers make shuffles of.
#include "base/parallel.hpp"
#include "cpu/kernels.hpp"

namespace troupe {
namespace {

using interleave_function = void (*)(const uint8_t* x, int64_t pixels, int64_t begin, int64_t end, uint8_t* y);

/// Pixels [begin, end) of one image.
template <int64_t Channels>
void interleave(const uint8_t* x, int64_t pixels, int64_t begin, int64_t end, uint8_t* y) {
  for (int64_t i = begin; i < end; ++i)
    for (int64_t c = 0; c < Channels; ++c)
      y[i * Channels + c] = x[c * pixels + i];
}

class channel_interleave_kernel final : public kernel {
public:
  channel_interleave_kernel(const shape& dims, interleave_function f)
      : images_(dims[0]), channels_(dims[1]), pixels_(volume(std::span(dims).subspan(2))), interleave_(f) {}

  void run(const kernel_run& r) override {
    for (int64_t i = 0; i < images_; ++i) {
      const auto* x = r.input<uint8_t>(0) + i * channels_ * pixels_;
      auto* y = r.output<uint8_t>(0) + i * channels_ * pixels_;
      parallel_for(pixels_, 32 * 1024, [&](int64_t begin, int64_t end) { interleave_(x, pixels_, begin, end, y); });
    }
  }

private:
  int64_t images_, channels_, pixels_;
  interleave_function interleave_;
};

} // namespace

kernel_ptr make_channel_interleave(const kernel_request& r) {
  const operand& x = r.inputs[0];
  const shape& dims = x.dims;
  const bool bytes = x.type == dtype::uint8 || x.type == dtype::int8;
  if (!bytes || r.call.attrs.text("to", "") != "channels_last" || dims[1] < 2 || dims[1] > 4)
    return nullptr;
  constexpr interleave_function functions[] = {interleave<2>, interleave<3>, interleave<4>};
  return std::make_unique<channel_interleave_kernel>(dims, functions[dims[1] - 2]);
}

} // namespace troupe
