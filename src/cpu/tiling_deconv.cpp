// Transposed convolution whose windows tile the output (kernel = stride, no padding): what decoders of segmentation
// nets and text detectors double their sizes with. oneDNN computes it as a convolution's gradient, some twenty times
// slower than the arithmetic needs.
//
// Each input pixel alone makes a tile of output pixels: a 1 × 1 convolution to (tile row, tile column, channel), then
// the rows of the tiles move to their place. Both are done by image row, whose tiles stay in the cache. Channels-last
// only, where a tile's row is contiguous.
#include "base/parallel.hpp"
#include "base/round_up.hpp"
#include "cpu/kernels.hpp"
#include "cpu/panel_product.hpp"
#include "ops/pack.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// Products that are worth a thread.
constexpr int64_t least_work = 100'000;

struct tiling {
  int64_t batch, channels_in, rows, columns; // of the input
  int64_t channels_out, tile_rows, tile_columns;

  int64_t tile_size() const { return tile_rows * tile_columns * channels_out; }
  /// Floats that are together in the output: a row of a tile.
  int64_t run() const { return tile_columns * channels_out; }
};

class tiling_deconv_kernel final : public kernel {
public:
  tiling_deconv_kernel(const kernel_request& r, const tiling& t) : t_(t) {
    // [I, O, H, W] → [H, W, O, I]: one filter for each element of a tile.
    const weight_ptr filters = pack(r.inputs[1].constant, r.inputs[1].dims, {2, 3, 1, 0},
                                    {t.tile_rows, t.tile_columns, t.channels_out, t.channels_in});
    product_ = panel_product(r.resources.weights.get(pack_panels(filters, t.channels_in, t.tile_size(), true)),
                             t.tile_size(), {0}, t.channels_in, parse_activation(r.call.attrs));
    if (r.has_input(2))
      repeat_bias(*r.resources.weights.get(r.inputs[2].constant));
  }

  bool reads(size_t i) const override { return i == 0; }

  void run(const kernel_run& r) override {
    const int64_t work = t_.columns * t_.tile_size() * t_.channels_in;
    parallel_for(t_.batch * t_.rows, ceil_div(least_work, work), [&](int64_t begin, int64_t end) {
      thread_local std::vector<float> tiles;
      tiles.resize(std::max(tiles.size(), static_cast<size_t>(t_.columns * t_.tile_size())));
      for (int64_t row = begin; row < end; ++row)
        run_row(r, row, tiles.data());
    });
  }

private:
  /// One row of input pixels.
  void run_row(const kernel_run& r, int64_t row, float* tiles) const {
    product_.run({.x = r.input<float>(0) + row * t_.columns * t_.channels_in,
                  .step = t_.channels_in,
                  .rows = t_.columns,
                  .residual = nullptr,
                  .y = tiles},
                 0, product_.panels(), bias_.empty() ? nullptr : bias_.data());
    float* const y = r.output<float>(0) + row * t_.columns * t_.tile_size();
    for (int64_t i = 0; i < t_.tile_rows; ++i)
      place_row(tiles + i * t_.run(), y + i * t_.columns * t_.run());
  }

  void repeat_bias(const tensor& bias) {
    for (int64_t i = 0; i < t_.tile_rows * t_.tile_columns; ++i)
      bias_.insert(bias_.end(), bias.data<float>(), bias.data<float>() + t_.channels_out);
  }

  /// Moves one row of each tile to an output row.
  void place_row(const float* from, float* to) const {
    const int64_t run = t_.run(), step = t_.tile_size();
    if (run >= 16) {
      for (int64_t i = 0; i < t_.columns; ++i)
        std::memcpy(to + i * run, from + i * step, static_cast<size_t>(run) * sizeof(float));
    } else {
      for (int64_t i = 0; i < t_.columns; ++i)
        for (int64_t k = 0; k < run; ++k)
          to[i * run + k] = from[i * step + k];
    }
  }

  const tiling t_;
  panel_product product_;   // of a pixel and a tile
  std::vector<float> bias_; // for each element of a tile; empty if there is none
};

/// Whether the windows tile the output.
bool tiles_output(const window_spec& spec, const shape& x, const shape& y) {
  for (size_t i = 0; i < spec.rank(); ++i)
    if (spec.kernel[i] != spec.strides[i] || spec.dilations[i] != 1 || spec.pads[i] != 0 ||
        y[i + 2] != x[i + 2] * spec.strides[i])
      return false;
  return true;
}

} // namespace

kernel_ptr make_tiling_deconv(const kernel_request& r) {
  const operand &x = r.inputs[0], &w = r.inputs[1], &y = r.outputs[0];
  if (!r.all_of_type(dtype::float32) || x.dims.size() != 4 || r.has_input(3) || !w.constant ||
      (r.has_input(2) && !r.inputs[2].constant) || volume(x.dims) == 0 || volume(y.dims) == 0 ||
      r.layout_of(x) != layout::channels_last || r.layout_of(y) != layout::channels_last ||
      r.call.attrs.integer("group", 1) != 1 || r.call.attrs.has("output_shape") ||
      parse_auto_pad(r.call.attrs) != auto_pad::notset)
    return nullptr;
  if (!tiles_output(parse_window(r.call.attrs, shape(w.dims.begin() + 2, w.dims.end())), x.dims, y.dims))
    return nullptr;
  const tiling t{x.dims[0], x.dims[1], x.dims[2], x.dims[3], w.dims[1], w.dims[2], w.dims[3]};
  return std::make_unique<tiling_deconv_kernel>(r, t);
}

} // namespace troupe
