// Convolutions of channels-last bytes: ConvInteger, QLinearConv and troupe.QuantizedConv, as products whose rows are the windows of
// output pixels. A window of one pixel is a row of X itself; others are gathered, padding being X's zero point.
#include "cpu/int8_tiles.hpp"
#include "cpu/int8_weights.hpp"
#include "cpu/int8_window.hpp"
#include "cpu/kernels.hpp"

#include <cstring>

namespace troupe {
namespace {

class int8_conv_kernel final : public kernel {
public:
  int8_conv_kernel(const kernel_request& r, const int8::operand_positions& at, const int8::window& w)
      : at_(at), window_(w), end_(r, at, w.filters, w.depth()),
        weights_(r.resources.weights.get(int8::pack_filters(r.inputs[at.b].constant, w.groups))) {
    const int64_t columns = w.filters / w.groups;
    for (int64_t g = 0; g < w.groups; ++g) {
      const std::vector<int32_t> sums = int8::column_sums(panel_of(g));
      column_sums_.insert(column_sums_.end(), sums.begin(), sums.begin() + columns);
    }
  }

  bool reads(size_t i) const override { return i != at_.b; }

  void run(const kernel_run& r) override {
    end_.bind(r, column_sums_.data());
    for (int64_t g = 0; g < window_.groups; ++g)
      multiply_group(r, g);
  }

private:
  int8::panel panel_of(int64_t g) const {
    const int64_t quads = int8::quads_of(window_.depth()), blocks = int8::blocks_of(window_.filters / window_.groups);
    const auto* all = static_cast<const int8_t*>(weights_->data());
    return {all + g * quads * blocks * int8::quad * int8::block_columns, quads, blocks};
  }

  void multiply_group(const kernel_run& r, int64_t g) const {
    const int8::panel b = panel_of(g);
    const int64_t columns = window_.filters / window_.groups, channels = window_.channels / window_.groups;
    const auto* x = r.input<uint8_t>(at_.a) + g * channels;
    auto* y = r.output<std::byte>(0) + g * columns * end_.bytes_each();
    const bool in_place = window_.is_pointwise() && channels % int8::quad == 0 && end_.a_flip() == 0;
    const auto gather = [&](int64_t first, int64_t count) -> int8::row_range {
      if (in_place)
        return {x + first * window_.channels, window_.channels};
      thread_local std::vector<uint8_t> rows;
      const int64_t step = b.quads * int8::quad;
      rows.resize(std::max(rows.size(), static_cast<size_t>(count * step)));
      for (int64_t i = 0; i < count; ++i)
        gather_window(x, first + i, channels, rows.data() + i * step);
      return {rows.data(), step};
    };
    int8::multiply_tiles(window_.pixels(), columns, g * columns, b, end_, gather, y,
                         window_.filters * end_.bytes_each());
  }

  /// Copies the window of output pixel `pixel` with all taps, flipped if X is int8.
  void gather_window(const uint8_t* x, int64_t pixel, int64_t channels, uint8_t* to) const {
    const auto padding = static_cast<uint8_t>(end_.a_zero() ^ end_.a_flip());
    uint8_t* const begin = to;
    const auto& [d, h, v] = window_.axes;
    const auto o = window_.position(pixel);
    const uint8_t* image = x + window_.image(pixel) * window_.in_volume() * window_.channels;
    for (int64_t i = 0; i < d.kernel; ++i)
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t plane = d.start(o[0]) + i * d.dilation, row = h.start(o[1]) + j * h.dilation;
        if (plane < 0 || plane >= d.in || row < 0 || row >= h.in)
          std::memset(to, padding, static_cast<size_t>(v.kernel * channels));
        else
          gather_line(image + (plane * h.in + row) * v.in * window_.channels, v.start(o[2]), channels, padding, to);
        to += v.kernel * channels;
      }
    if (end_.a_flip() != 0)
      for (uint8_t* at = begin; at < to; ++at)
        *at ^= int8::sign_bit;
  }

  /// Copies the taps of one line, the first of which is at `start` of `line`.
  void gather_line(const uint8_t* line, int64_t start, int64_t channels, uint8_t padding, uint8_t* to) const {
    const window_axis& v = window_.axes[2];
    const bool inside = start >= 0 && start + (v.kernel - 1) * v.dilation < v.in;
    if (inside && v.dilation == 1 && channels == window_.channels) {
      std::memcpy(to, line + start * channels, static_cast<size_t>(v.kernel * channels));
      return;
    }
    for (int64_t k = 0; k < v.kernel; ++k, to += channels) {
      const int64_t at = start + k * v.dilation;
      if (at < 0 || at >= v.in)
        std::memset(to, padding, static_cast<size_t>(channels));
      else
        std::memcpy(to, line + at * window_.channels, static_cast<size_t>(channels));
    }
  }

  const int8::operand_positions at_;
  const int8::window window_;
  int8::finish end_;
  weight_cache::handle weights_;
  std::vector<int32_t> column_sums_;
};

} // namespace

kernel_ptr make_int8_conv(const kernel_request& r) {
  const int8::operand_positions at = int8::positions_of(r.call);
  const auto window = int8::window_of(r, at);
  if (!window || !int8::finish::takes(r, at, window->filters))
    return nullptr;
  return std::make_unique<int8_conv_kernel>(r, at, *window);
}

} // namespace troupe
