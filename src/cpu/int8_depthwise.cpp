// Depthwise convolutions of channels-last bytes, one filter a channel: for each output line and 64 channels, the lines
// of X that meet it are interleaved, some columns at a time so that these stay in a core's cache, then multiplied for
// all pixels (int8_product.hpp).
//
// The weights' zero point is taken off when they are packed, so that their sums need no correction for it; weights that
// do not fit 8 bits then are left to the reference.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/int8_product.hpp"
#include "cpu/int8_window.hpp"
#include "cpu/kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace troupe {
namespace {

/// Interleaved columns and packed weights are kept in lines of the core's cache, so that no vector that is loaded of
/// them meets two: where such loads do, a convolution takes a fifth more.
struct alignas(64) cache_line {
  std::array<uint8_t, 64> bytes;
};
using line_buffer = std::vector<cache_line>;

/// Returns the bytes of a buffer, `count` or more.
uint8_t* room(line_buffer& b, int64_t count) {
  b.resize(std::max(b.size(), static_cast<size_t>(ceil_div(count, 64))));
  return reinterpret_cast<uint8_t*>(b.data());
}

/// Returns bytes in such a buffer.
line_buffer in_lines(const std::vector<int8_t>& bytes) {
  line_buffer lines;
  std::memcpy(room(lines, std::ssize(bytes)), bytes.data(), bytes.size());
  return lines;
}

/// Returns the weights without their zero point; nullopt if they do not fit 8 bits or the zero point is not a constant.
std::optional<std::vector<uint8_t>> centred_weights(const kernel_request& r, const int8::operand_positions& at) {
  const operand& w = r.inputs[at.b];
  if (r.has_input(at.b_zero) && !r.inputs[at.b_zero].constant)
    return std::nullopt;
  const weight_cache::handle weights = r.resources.weights.get(w.constant);
  const weight_cache::handle zeros =
      r.has_input(at.b_zero) ? r.resources.weights.get(r.inputs[at.b_zero].constant) : nullptr;
  const auto element = [&](const tensor& t, int64_t i) -> int32_t {
    return w.type == dtype::uint8 ? int32_t{t.data<uint8_t>()[i]} : int32_t{t.data<int8_t>()[i]};
  };
  const int64_t taps = weights->size() / w.dims[0];
  std::vector<uint8_t> centred(static_cast<size_t>(weights->size()));
  for (int64_t i = 0; i < weights->size(); ++i) {
    const int32_t zero = zeros ? element(*zeros, zeros->size() == 1 ? 0 : i / taps) : 0;
    const int32_t v = element(*weights, i) - zero;
    if (v < -128 || v > 127)
      return std::nullopt;
    centred[static_cast<size_t>(i)] = static_cast<uint8_t>(v);
  }
  return centred;
}

class int8_depthwise_kernel final : public kernel {
public:
  int8_depthwise_kernel(const kernel_request& r, const int8::operand_positions& at, const int8::window& w,
                        const std::vector<uint8_t>& weights)
      : at_(at), window_(w), end_(r, at, w.filters, w.taps()),
        lines_(w.axes[0].kernel * w.axes[1].kernel), taps_{w.axes[2].kernel, w.axes[2].stride, w.axes[2].dilation,
                                                           int8::quads_of(lines_)},
        packed_(in_lines(int8::pack_channels(weights.data(), w.channels, lines_, taps_.kernel))) {
    for (int64_t c = 0; c < w.channels; ++c) {
      int32_t sum = 0;
      for (int64_t t = 0; t < w.taps(); ++t)
        sum += static_cast<int8_t>(weights[static_cast<size_t>(c * w.taps() + t)]);
      column_sums_.push_back(sum);
    }
    end_.take_centred_b();
  }

  bool reads(size_t i) const override { return i != at_.b && i != at_.b_zero; }

  void run(const kernel_run& r) override {
    if (end_.bind(r, column_sums_.data()))
      prepare();
    const int64_t groups = (window_.channels + int8::group_channels - 1) / int8::group_channels;
    const int64_t lines = window_.pixels() / window_.axes[2].out;
    const int64_t work = window_.axes[2].out * taps_.kernel * taps_.quads * int8::column_bytes;
    parallel_for(lines * groups, std::max<int64_t>(1, least_work / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        run_line(r, i / groups, i % groups * int8::group_channels);
    });
  }

private:
  /// Bytes of columns that are interleaved at a time, and products that are worth a thread.
  static constexpr int64_t cached_bytes = 16 * 1024, least_work = 128 * 1024;

  /// Puts the end's parameters, which have changed, into the order of packed channels.
  void prepare() {
    padding_.assign(static_cast<size_t>(window_.axes[2].in * window_.channels), end_.a_zero() ^ end_.a_flip());
    to_bytes_ = end_.is_bytes() ? int8::best().multiply_channels_to_bytes : nullptr;
    if (!to_bytes_)
      return;
    const auto size = static_cast<size_t>(round_up(window_.channels, int8::group_channels));
    correction_.assign(size, 0);
    scale_.assign(size, 0);
    offset_.assign(size, 0);
    const int8::byte_end all = end_.bytes(0);
    for (int64_t c = 0; c < window_.channels; ++c) {
      const int64_t group = c / int8::group_channels * int8::group_channels;
      const auto to = static_cast<size_t>(group + int8::place_in_group(c - group));
      correction_[to] = all.correction[c];
      scale_[to] = all.scale[c];
      offset_[to] = all.offset[c];
    }
  }

  /// Computes channels [first, first + 64) of output line `line`.
  void run_line(const kernel_run& r, int64_t line, int64_t first) const {
    thread_local std::vector<const uint8_t*> lines;
    thread_local line_buffer buffer;
    lines.assign(static_cast<size_t>(taps_.quads * int8::quad), padding_.data() + first);
    find_lines(r.input<uint8_t>(at_.a), line, first, lines.data());
    const window_axis& v = window_.axes[2];
    const int64_t column = taps_.quads * int8::column_bytes, extent = (v.kernel - 1) * v.dilation + 1;
    if (v.dilation > 1 && extent > cached_bytes / column)
      return run_far_taps(r, line, first, lines.data(), buffer);
    const int64_t tile = std::clamp<int64_t>((cached_bytes / column - extent) / v.stride + 1, 1, v.out);
    uint8_t* columns = room(buffer, ((tile - 1) * v.stride + extent) * column);
    for (int64_t o = 0; o < v.out; o += tile) {
      const int64_t count = std::min(tile, v.out - o);
      gather_columns(lines.data(), v.start(o), (count - 1) * v.stride + extent, first, columns);
      multiply(r, columns, taps_, line * v.out + o, count, first);
    }
  }

  /// The same where too many columns are between the taps to interleave them all: pixel by pixel, the taps alone.
  void run_far_taps(const kernel_run& r, int64_t line, int64_t first, const uint8_t** lines,
                    line_buffer& buffer) const {
    const window_axis& v = window_.axes[2];
    const int64_t column = taps_.quads * int8::column_bytes;
    const int8::line_taps side_by_side{v.kernel, v.kernel, 1, taps_.quads};
    uint8_t* columns = room(buffer, v.kernel * column);
    for (int64_t o = 0; o < v.out; ++o) {
      for (int64_t k = 0; k < v.kernel; ++k)
        gather_columns(lines, v.start(o) + k * v.dilation, 1, first, columns + k * column);
      multiply(r, columns, side_by_side, line * v.out + o, 1, first);
    }
  }

  /// Finds an output line's taps among the lines of X; those beside the image are X's zero point.
  void find_lines(const uint8_t* x, int64_t line, int64_t first, const uint8_t** to) const {
    const auto& [d, h, v] = window_.axes;
    const int8::pixel_place at = window_.place_of(line * v.out);
    const uint8_t* image = x + at.image * window_.in_volume() * window_.channels + first;
    for (int64_t i = 0; i < d.kernel; ++i)
      for (int64_t j = 0; j < h.kernel; ++j, ++to) {
        const int64_t plane = d.start(at.o[0]) + i * d.dilation, row = h.start(at.o[1]) + j * h.dilation;
        if (plane >= 0 && plane < d.in && row >= 0 && row < h.in)
          *to = image + (plane * h.in + row) * v.in * window_.channels;
      }
  }

  /// Interleaves `count` columns, the first of which is pixel `start` of the lines; those beside the image are X's zero
  /// point.
  void gather_columns(const uint8_t** lines, int64_t start, int64_t count, int64_t first, uint8_t* to) const {
    const int64_t column = taps_.quads * int8::column_bytes, in = window_.axes[2].in;
    const int64_t begin = std::clamp<int64_t>(-start, 0, count), end = std::clamp<int64_t>(in - start, begin, count);
    std::memset(to, end_.a_zero(), static_cast<size_t>(begin * column));
    std::memset(to + end * column, end_.a_zero(), static_cast<size_t>((count - end) * column));
    if (begin == end)
      return;
    thread_local std::vector<const uint8_t*> from;
    from.assign(lines, lines + taps_.quads * int8::quad);
    for (const uint8_t*& line : from)
      line += (start + begin) * window_.channels;
    int8::best().interleave({from.data(), taps_.quads, window_.channels}, end - begin,
                            std::min(int8::group_channels, window_.channels - first), end_.a_flip(),
                            to + begin * column);
  }

  void multiply(const kernel_run& r, const uint8_t* columns, const int8::line_taps& taps, int64_t pixel, int64_t count,
                int64_t first) const {
    const int64_t channels = std::min(int8::group_channels, window_.channels - first), each = end_.bytes_each();
    const int64_t y_step = window_.channels * each;
    auto* y = r.output<uint8_t>(0) + pixel * y_step + first * each;
    const auto* w = reinterpret_cast<const int8_t*>(packed_.data()) + first * taps_.kernel * taps_.quads * int8::quad;
    if (to_bytes_) {
      const int8::byte_end all = end_.bytes(0);
      const int8::byte_end end{correction_.data() + first, scale_.data() + first, offset_.data() + first, all.end,
                               all.is_signed};
      return to_bytes_(columns, taps, count, w, end, channels, y, y_step);
    }
    thread_local std::vector<int32_t> sums;
    sums.resize(std::max(sums.size(), static_cast<size_t>(count * int8::group_channels)));
    int8::best().multiply_channels(columns, taps, count, w, sums.data());
    std::array<int32_t, int8::group_channels> ordered{};
    for (int64_t p = 0; p < count; ++p, y += y_step) {
      for (int64_t c = 0; c < channels; ++c)
        ordered[static_cast<size_t>(c)] = sums[static_cast<size_t>(p * int8::group_channels + int8::place_in_group(c))];
      end_.apply({ordered.data(), channels, 1, nullptr, y, y_step}, first, channels);
    }
  }

  const int8::operand_positions at_;
  const int8::window window_;
  int8::finish end_;
  int64_t lines_; // of the kernel
  int8::line_taps taps_;
  line_buffer packed_; // weights
  std::vector<int32_t> column_sums_;
  int8::channels_to_bytes_function to_bytes_ = nullptr; // null: sums are finished apart
  std::vector<int32_t> correction_;                     // these if not, in the order of packed channels
  std::vector<float> scale_, offset_;
  std::vector<uint8_t> padding_; // a line of X's zero point
};

} // namespace

kernel_ptr make_int8_depthwise(const kernel_request& r) {
  const int8::operand_positions at = int8::positions_of(r.call);
  const auto window = int8::window_of(r, at);
  if (!window || window->channels != window->groups || window->filters != window->groups ||
      !int8::finish::takes(r, at, window->filters))
    return nullptr;
  const auto weights = centred_weights(r, at);
  return weights ? std::make_unique<int8_depthwise_kernel>(r, at, *window, *weights) : nullptr;
}

} // namespace troupe
