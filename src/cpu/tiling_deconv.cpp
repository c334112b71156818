// Transposed convolution whose windows tile the output (kernel = stride, no padding): what decoders of segmentation
// nets and text detectors double their sizes with. oneDNN computes it as a convolution's gradient, some twenty times
// slower than the arithmetic needs.
//
// Each input pixel alone makes a tile of output pixels: a 1 × 1 convolution to (tile row, tile column, channel), then
// the rows of the tiles move to their place. Both are done by bands of a few image rows, whose tiles stay in the cache.
// Channels-last only, where a tile's row is contiguous.
#include "base/parallel.hpp"
#include "cpu/dnnl_call.hpp"
#include "cpu/kernels.hpp"
#include "ops/pack.hpp"
#include "ops/window.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// Tiles of a band: they should stay in a core's cache.
constexpr int64_t band_bytes = int64_t{1} << 20;

/// Floats a thread should move.
constexpr int64_t floats_of_thread = 32 * 1024;

struct tiling {
  int64_t batch, channels_in, rows, columns; // of the input
  int64_t channels_out, tile_rows, tile_columns;

  int64_t tile_size() const { return tile_rows * tile_columns * channels_out; }
  /// Floats that are together in the output: a row of a tile.
  int64_t run() const { return tile_columns * channels_out; }
};

/// The product for `rows` rows of one image, into tiles.
class band {
public:
  band(const kernel_request& r, const tiling& t, int64_t rows, const weight_ptr& packed, weight_cache::handle& weights,
       const float* bias)
      : end_(parse_activation(r.call.attrs)), size_(rows * t.columns * t.tile_size()) {
    const auto x = dnn::describe({1, t.channels_in, rows, t.columns}, layout::channels_last);
    const auto y = dnn::describe({1, t.tile_size(), rows, t.columns}, layout::channels_last);
    const shape dims{t.tile_size(), t.channels_in, 1, 1};
    const auto b = bias ? dnn::describe({t.tile_size()}) : dnn::memory_desc();
    const dnn::window_dims window{{1, 1}, {1, 1}, {0, 0}, {0, 0}, {0, 0}};
    const auto desc = dnn::make_ended({}, end_, [&](const dnnl::post_ops& ops) {
      return dnn::convolution(dnn::engine(), x, dnn::describe_any(dims), b, y, window, dnn::user_scratchpad(ops), {});
    });
    call_ = dnn::call(dnnl::convolution_forward(desc), desc.scratchpad_desc(), r.resources.scratch);
    x_ = call_.add(DNNL_ARG_SRC, x);
    y_ = call_.add(DNNL_ARG_DST, y);
    weights = dnn::pack(r.resources.weights, packed, dnn::describe(dims), desc.weights_desc());
    call_.add(DNNL_ARG_WEIGHTS, desc.weights_desc(), weights->data());
    if (bias)
      call_.add(DNNL_ARG_BIAS, b, bias);
  }

  void run(const float* x, float* tiles) {
    call_.set(x_, x);
    call_.set(y_, tiles);
    call_.run();
    dnn::end_result(end_, tiles, size_);
  }

private:
  activation end_; // that oneDNN does not do
  int64_t size_;
  dnn::call call_;
  size_t x_ = 0, y_ = 0;
};

class tiling_deconv_kernel final : public kernel {
public:
  tiling_deconv_kernel(const kernel_request& r, const tiling& t) : t_(t) {
    const int64_t row_bytes = t.columns * t.tile_size() * static_cast<int64_t>(sizeof(float));
    band_rows_ = std::clamp<int64_t>(band_bytes / row_bytes, 1, t.rows);
    tiles_ = tensor(dtype::float32, {band_rows_ * t.columns * t.tile_size()});
    // [I, O, H, W] → [H, W, O, I]: one filter for each element of a tile.
    const weight_ptr packed = pack(r.inputs[1].constant, r.inputs[1].dims, {2, 3, 1, 0},
                                   {t.tile_rows, t.tile_columns, t.channels_out, t.channels_in});
    if (r.has_input(2))
      repeat_bias(*r.resources.weights.get(r.inputs[2].constant));
    const float* bias = bias_.empty() ? nullptr : bias_.data();
    whole_.emplace(r, t, band_rows_, packed, weights_, bias);
    if (const int64_t rest = t.rows % band_rows_)
      rest_.emplace(r, t, rest, packed, rest_weights_, bias);
  }

  bool reads(size_t i) const override { return i == 0; }

  void run(const kernel_run& r) override {
    for (int64_t image = 0; image < t_.batch; ++image)
      for (int64_t row = 0; row < t_.rows; row += band_rows_) {
        const int64_t rows = std::min(band_rows_, t_.rows - row), first = image * t_.rows + row;
        (rows == band_rows_ ? *whole_ : *rest_)
            .run(r.input<float>(0) + first * t_.columns * t_.channels_in, tiles_.mutable_data<float>());
        place(rows, r.output<float>(0) + first * t_.columns * t_.tile_size());
      }
  }

private:
  void repeat_bias(const tensor& bias) {
    for (int64_t i = 0; i < t_.tile_rows * t_.tile_columns; ++i)
      bias_.insert(bias_.end(), bias.data<float>(), bias.data<float>() + t_.channels_out);
  }

  /// Moves the tiles of `rows` input rows to their output rows from `y` on.
  void place(int64_t rows, float* y) const {
    const int64_t width = t_.columns * t_.run(); // of an output row
    parallel_for(rows * t_.tile_rows, std::max<int64_t>(1, floats_of_thread / width), [&](int64_t begin, int64_t end) {
      for (int64_t out = begin; out < end; ++out) {
        const float* from =
            tiles_.data<float>() + out / t_.tile_rows * t_.columns * t_.tile_size() + out % t_.tile_rows * t_.run();
        place_row(from, y + out * width);
      }
    });
  }

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
  int64_t band_rows_;
  tensor tiles_;            // of a band
  std::vector<float> bias_; // for each element of a tile; empty if there is none
  weight_cache::handle weights_, rest_weights_;
  std::optional<band> whole_, rest_; // for bands of `band_rows_`, and for the last one
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
  return dnn::try_make([&] { return std::make_unique<tiling_deconv_kernel>(r, t); });
}

} // namespace troupe
