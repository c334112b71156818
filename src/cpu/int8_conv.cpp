// Convolutions of channels-last bytes: ConvInteger, QLinearConv and troupe.QuantizedConv, as products whose rows are
// the windows of output pixels. A window of one pixel is a row of X itself; others are gathered, padding being X's zero
// point.
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

  /// What windows are gathered from: a group's channels of X, and one past X's end.
  struct source {
    const uint8_t *x, *end;
    int64_t channels;
  };

  void multiply_group(const kernel_run& r, int64_t g) const {
    const int8::panel b = panel_of(g);
    const int64_t columns = window_.filters / window_.groups, channels = window_.channels / window_.groups;
    const auto* x = r.input<uint8_t>(at_.a);
    const source from{x + g * channels, x + window_.batch * window_.in_volume() * window_.channels, channels};
    auto* y = r.output<std::byte>(0) + g * columns * end_.bytes_each();
    const bool in_place = window_.is_pointwise() && channels % int8::quad == 0 && end_.a_flip() == 0;
    const auto gather = [&](int64_t first, int64_t count) -> int8::row_range {
      if (in_place)
        return {from.x + first * window_.channels, window_.channels};
      thread_local std::vector<uint8_t> rows;
      const int64_t step = b.quads * int8::quad;
      rows.resize(std::max(rows.size(), static_cast<size_t>(count * step + short_line)));
      gather_windows(from, first, count, rows.data(), step);
      return {rows.data(), step};
    };
    int8::tiled_product(window_.pixels(), columns, g * columns, b, end_, gather, y, window_.filters * end_.bytes_each())
        .run();
  }

  /// Copies the windows of `count` output pixels from `first` on, `step` bytes apart, flipped if X is int8. May write
  /// `short_line` bytes beyond them.
  void gather_windows(const source& from, int64_t first, int64_t count, uint8_t* to, int64_t step) const {
    thread_local std::vector<const uint8_t*> lines;
    for (const int64_t end = first + count; first < end;) {
      const int8::pixel_place at = window_.place_of(first);
      find_lines(from, at, lines);
      const int64_t pixels = std::min(window_.axes[2].out - at.o[2], end - first);
      for (int64_t p = 0; p < pixels; ++p, to += step)
        gather_window(from, lines, window_.axes[2].start(at.o[2] + p), to);
      first += pixels;
    }
    for (uint8_t* byte = to - count * step; end_.a_flip() != 0 && byte < to; ++byte)
      *byte ^= int8::sign_bit;
  }

  /// Finds the lines of X that pixels of one output line meet; null: beside the image.
  void find_lines(const source& from, const int8::pixel_place& at, std::vector<const uint8_t*>& lines) const {
    const auto& [d, h, v] = window_.axes;
    const uint8_t* image = from.x + at.image * window_.in_volume() * window_.channels;
    lines.clear();
    for (int64_t i = 0; i < d.kernel; ++i)
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t plane = d.start(at.o[0]) + i * d.dilation, row = h.start(at.o[1]) + j * h.dilation;
        const bool is_there = plane >= 0 && plane < d.in && row >= 0 && row < h.in;
        lines.push_back(is_there ? image + (plane * h.in + row) * v.in * window_.channels : nullptr);
      }
  }

  /// Copies the window of one pixel, the first taps of which are at `start` of `lines`.
  void gather_window(const source& from, const std::vector<const uint8_t*>& lines, int64_t start, uint8_t* to) const {
    const window_axis& v = window_.axes[2];
    const int64_t bytes = v.kernel * from.channels;
    const bool together =
        v.dilation == 1 && from.channels == window_.channels && start >= 0 && start + v.kernel <= v.in;
    for (const uint8_t* line : lines) {
      if (!line)
        std::memset(to, padding(), static_cast<size_t>(bytes));
      else if (!together)
        gather_taps(line, start, from.channels, to);
      else if (const uint8_t* tap = line + start * from.channels; bytes <= short_line && from.end - tap >= short_line)
        std::memcpy(to, tap, short_line); // more than asked for, but of a size that is known
      else
        std::memcpy(to, tap, static_cast<size_t>(bytes));
      to += bytes;
    }
  }

  /// Copies the taps of one pixel, the first of which is at `start` of `line`.
  void gather_taps(const uint8_t* line, int64_t start, int64_t channels, uint8_t* to) const {
    const window_axis& v = window_.axes[2];
    for (int64_t k = 0; k < v.kernel; ++k, to += channels) {
      const int64_t at = start + k * v.dilation;
      if (at < 0 || at >= v.in)
        std::memset(to, padding(), static_cast<size_t>(channels));
      else
        std::memcpy(to, line + at * window_.channels, static_cast<size_t>(channels));
    }
  }

  uint8_t padding() const { return end_.a_zero() ^ end_.a_flip(); }

  static constexpr int64_t short_line = 16;

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
