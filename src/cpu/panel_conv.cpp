// Convolutions of floats by constant weights in one group, along one or two axes, with a channels-last output, from
// panels of filters (panel_product.hpp).
//
// Output pixels of an image row are the rows of a product: their windows begin at a constant step, and what a window
// has of an input row follows each other (a *tap*; with dilations, each of its pixels is one). Where windows reach
// beyond the image, or the input is not channels-last, a task first copies the input rows of its output rows, its
// *band*, with zeros around them.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/conv_call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/panel_product.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

namespace troupe {
namespace {

struct conv_sizes {
  int64_t images, channels, filters;
  window_axis rows, columns;
  bool plain_input;

  /// Pixels of a row, from the first that a window has to the last.
  int64_t width() const { return (columns.out - 1) * columns.stride + (columns.kernel - 1) * columns.dilation + 1; }
  /// Rows that the windows of `lines` output rows have.
  int64_t height(int64_t lines) const { return (lines - 1) * rows.stride + (rows.kernel - 1) * rows.dilation + 1; }
  int64_t lines() const { return images * rows.out; }
  /// Whether windows are inside of the image, whose floats can be read where they are.
  bool in_place() const {
    return !plain_input && rows.pad_begin == 0 && columns.pad_begin == 0 && width() <= columns.in &&
           height(rows.out) <= rows.in;
  }
  /// Floats from one row of input pixels to the next, in the image or in a band.
  int64_t pitch() const { return (in_place() ? columns.in : width()) * channels; }
};

/// The copy of some input rows of one image, which a thread keeps for the next task of the same rows.
struct band {
  uint64_t run = 0; // of a kernel; 0 is none
  int64_t first_line = 0, lines = 0;
  std::vector<float> floats;
};

/// Copies rows of an image's pixels, channels-last, with zeros where windows reach beyond it.
class row_copy {
public:
  row_copy(const conv_sizes& s, const float* image) : s_(s), image_(image) {}

  void run(int64_t row, float* to) const {
    const int64_t first = s_.columns.start(0), end = first + s_.width();
    if (row < 0 || row >= s_.rows.in) {
      std::fill_n(to, s_.width() * s_.channels, 0.f);
      return;
    }
    const int64_t inside = std::max<int64_t>(first, 0), last = std::clamp(end, inside, std::max(inside, s_.columns.in));
    to = std::fill_n(to, (inside - first) * s_.channels, 0.f);
    if (s_.plain_input)
      copy_planes(row, inside, last, to);
    else
      std::copy_n(image_ + (row * s_.columns.in + inside) * s_.channels, (last - inside) * s_.channels, to);
    std::fill_n(to + (last - inside) * s_.channels, (end - last) * s_.channels, 0.f);
  }

private:
  void copy_planes(int64_t row, int64_t begin, int64_t end, float* to) const {
    const int64_t plane = s_.rows.in * s_.columns.in;
    for (int64_t c = 0; c < s_.channels; ++c) {
      const float* const from = image_ + c * plane + row * s_.columns.in;
      for (int64_t i = begin; i < end; ++i)
        to[(i - begin) * s_.channels + c] = from[i];
    }
  }

  const conv_sizes& s_;
  const float* const image_;
};

class panel_conv_kernel final : public kernel {
public:
  panel_conv_kernel(const kernel_request& r, const conv_sizes& s)
      : s_(s), product_(r.resources.weights.get(pack_filter_panels(
                            r.inputs[1].constant, {s.filters, s.channels, s.rows.kernel, s.columns.kernel})),
                        s.filters, taps_of(s), depth_of(s), parse_activation(r.call.attrs)),
        bias_(r.has_input(2)), residual_(r.has_input(3)), grid_(grid()) {}

  bool reads(size_t i) const override { return i != 1; }

  void run(const kernel_run& r) override {
    static std::atomic<uint64_t> runs{0};
    const uint64_t run = ++runs;
    // Neighbouring tasks have the same band; without bands, the same panels.
    const bool groups_inside = !s_.in_place();
    parallel_for(grid_.tasks(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = groups_inside ? task / grid_.panel_groups : task % grid_.row_blocks;
        const int64_t group = groups_inside ? task % grid_.panel_groups : task / grid_.row_blocks;
        const int64_t panels = product_.panels();
        run_block(r, run, s_.lines() * block / grid_.row_blocks, s_.lines() * (block + 1) / grid_.row_blocks,
                  panels * group / grid_.panel_groups, panels * (group + 1) / grid_.panel_groups);
      }
    });
  }

private:
  static bool merges_taps(const conv_sizes& s) { return s.columns.dilation == 1; }

  static int64_t depth_of(const conv_sizes& s) { return (merges_taps(s) ? s.columns.kernel : 1) * s.channels; }

  static std::vector<int64_t> taps_of(const conv_sizes& s) {
    std::vector<int64_t> taps;
    for (int64_t row = 0; row < s.rows.kernel; ++row)
      for (int64_t column = 0; column < (merges_taps(s) ? 1 : s.columns.kernel); ++column)
        taps.push_back(row * s.rows.dilation * s.pitch() + column * s.columns.dilation * s.channels);
    return taps;
  }

  product_grid grid() const {
    constexpr int64_t band_floats = 128 * 1024;
    product_sizes sizes{
        .units = s_.lines(), .unit_rows = s_.columns.out, .unit_floats = s_.rows.stride * s_.columns.in * s_.channels};
    if (!s_.in_place())
      sizes.fewest_blocks = ceil_div(s_.images * s_.height(s_.rows.out) * s_.pitch(), band_floats);
    return product_.grid_of(sizes);
  }

  /// Output rows [begin, end) of all images.
  void run_block(const kernel_run& r, uint64_t run, int64_t begin, int64_t end, int64_t first, int64_t last) const {
    while (begin < end) {
      const int64_t lines = std::min(end - begin, s_.rows.out - begin % s_.rows.out); // of one image
      const float* x = input_rows(r, run, begin, lines);
      for (int64_t i = 0; i < lines; ++i) {
        const int64_t y = (begin + i) * s_.columns.out * s_.filters;
        product_.run({.x = x + i * s_.rows.stride * s_.pitch(),
                      .step = s_.columns.stride * s_.channels,
                      .rows = s_.columns.out,
                      .residual = residual_ ? r.input<float>(3) + y : nullptr,
                      .y = r.output<float>(0) + y},
                     first, last, bias_ ? r.input<float>(2) : nullptr);
      }
      begin += lines;
    }
  }

  /// Returns where the first window of output row `line` begins.
  const float* input_rows(const kernel_run& r, uint64_t run, int64_t line, int64_t lines) const {
    const int64_t image = line / s_.rows.out, row = s_.rows.start(line % s_.rows.out);
    const float* const x = r.input<float>(0) + image * s_.rows.in * s_.columns.in * s_.channels;
    if (s_.in_place())
      return x + row * s_.pitch();
    thread_local band kept;
    if (kept.run == run && kept.first_line == line && kept.lines == lines)
      return kept.floats.data();
    const int64_t rows = s_.height(lines);
    kept.run = 0; // until it is whole
    kept.floats.resize(std::max(kept.floats.size(), static_cast<size_t>(rows * s_.pitch())));
    for (int64_t i = 0; i < rows; ++i)
      row_copy(s_, x).run(row + i, kept.floats.data() + i * s_.pitch());
    kept.run = run;
    kept.first_line = line;
    kept.lines = lines;
    return kept.floats.data();
  }

  const conv_sizes s_;
  const panel_product product_;
  const bool bias_, residual_;
  const product_grid grid_;
};

} // namespace

kernel_ptr make_panel_conv(const kernel_request& r) {
  const operand &x = r.inputs[0], &w = r.inputs[1];
  if (x.dims.size() < 3 || x.dims.size() > 4 || !is_channels_last_conv(r, /*any_input=*/true))
    return nullptr;
  const auto axes = axes_of_conv(r);
  if (!axes)
    return nullptr;
  window_axis rows = (*axes)[1], columns = (*axes)[2];
  if (columns.in == 1 && columns.out == 1 && columns.kernel == 1) // the rows follow each other
    std::swap(rows, columns);
  const conv_sizes s{.images = x.dims[0],
                     .channels = x.dims[1],
                     .filters = w.dims[0],
                     .rows = rows,
                     .columns = columns,
                     .plain_input = r.layout_of(x) != layout::channels_last};
  return std::make_unique<panel_conv_kernel>(r, s);
}

} // namespace troupe
