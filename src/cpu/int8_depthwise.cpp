// Depthwise convolutions of channels-last bytes, one filter a channel: a row of X for each tap, all channels of a pixel at a time.
//
// The weights' zero point is taken off when they are packed, so that their sums need no correction for it; weights that do not fit 8
// bits then are left to the reference.
#include "base/parallel.hpp"
#include "cpu/int8_product.hpp"
#include "cpu/int8_window.hpp"
#include "cpu/kernels.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

/// Returns the weights without their zero point; nullopt if they do not fit 8 bits or the zero point is no constant.
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
      : at_(at), window_(w), end_(r, at, w.filters, w.taps()), scratch_(r.resources.scratch),
        packed_(int8::pack_channels(weights.data(), w.channels, w.taps(), 0)),
        taps_(int8::quads_of(w.taps()) * int8::quad), type_(r.outputs[0].type) {
    for (int64_t c = 0; c < w.channels; ++c) {
      int32_t sum = 0;
      for (int64_t t = 0; t < w.taps(); ++t)
        sum += static_cast<int8_t>(weights[static_cast<size_t>(c * w.taps() + t)]);
      column_sums_.push_back(sum);
    }
    end_.take_centred_b();
    if (end_.a_flip() != 0)
      scratch_.reserve(bytes());
  }

  bool reads(size_t i) const override { return i != at_.b && i != at_.b_zero; }

  void run(const kernel_run& r) override {
    end_.bind(r, column_sums_.data());
    is_simple_ = end_.is_simple() && end_.bytes_each() == 1;
    if (is_simple_)
      order_parameters();
    const auto* x = r.input<uint8_t>(at_.a);
    if (end_.a_flip() != 0)
      x = flip(x);
    padding_.assign(static_cast<size_t>(window_.channels), end_.a_zero());
    const int64_t grain = std::max<int64_t>(1, 64 * 1024 / (window_.channels * taps_));
    parallel_for(window_.pixels(), grain, [&](int64_t begin, int64_t end) { run_pixels(r, x, begin, end); });
  }

private:
  int64_t bytes() const { return window_.batch * window_.in_volume() * window_.channels; }

  /// Returns X with every highest bit flipped.
  const uint8_t* flip(const uint8_t* x) const {
    auto* to = static_cast<uint8_t*>(scratch_.data());
    parallel_for(bytes(), 64 * 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = x[i] ^ int8::sign_bit;
    });
    return to;
  }

  /// Puts the end's parameters into the order of packed channels.
  void order_parameters() {
    const auto size = static_cast<size_t>((window_.channels + int8::group_channels - 1) / int8::group_channels *
                                          int8::group_channels);
    correction_.assign(size, 0);
    scale_.assign(size, 0);
    offset_.assign(size, 0);
    for (int64_t c = 0; c < window_.channels; ++c) {
      const int64_t place = int8::place_in_group(c % int8::group_channels), from = c;
      const auto to = static_cast<size_t>(c / int8::group_channels * int8::group_channels + place);
      correction_[to] = end_.correction()[static_cast<size_t>(from)];
      scale_[to] = end_.scale()[static_cast<size_t>(from)];
      offset_[to] = end_.offset().empty() ? 0 : end_.offset()[static_cast<size_t>(from)];
    }
  }

  void run_pixels(const kernel_run& r, const uint8_t* x, int64_t begin, int64_t end) const {
    const int64_t channels = window_.channels, y_step = channels * end_.bytes_each();
    const auto multiply = int8::best().multiply_channels;
    const bool is_signed = type_ == dtype::int8;
    const int8::quantised_end quantised = is_simple_ ? end_.end() : int8::quantised_end{};
    std::vector<const uint8_t*> taps(static_cast<size_t>(taps_), padding_.data());
    std::array<int32_t, int8::group_channels> sums{}, ordered{};
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      find_taps(x, pixel, taps.data());
      auto* y = r.output<uint8_t>(0) + pixel * y_step;
      for (int64_t first = 0; first < channels; first += int8::group_channels) {
        const int64_t count = std::min(int8::group_channels, channels - first);
        multiply(taps.data(), first, taps_, count, packed_.data() + first * taps_, sums.data());
        if (is_simple_) {
          int8::finish_channels({count, correction_.data() + first, scale_.data() + first, offset_.data() + first,
                                 quantised, is_signed, y + first},
                                sums.data());
          continue;
        }
        for (int64_t c = 0; c < count; ++c)
          ordered[static_cast<size_t>(c)] = sums[static_cast<size_t>(int8::place_in_group(c))];
        end_.apply({ordered.data(), count, 1, nullptr, y + first * end_.bytes_each(), y_step}, first, count);
      }
    }
  }

  /// Finds the input pixels of an output pixel's taps; those beside the image are X's zero point.
  void find_taps(const uint8_t* x, int64_t pixel, const uint8_t** to) const {
    const auto& [d, h, v] = window_.axes;
    const auto o = window_.position(pixel);
    const uint8_t* image = x + window_.image(pixel) * window_.in_volume() * window_.channels;
    const int64_t start = v.start(o[2]), step = v.dilation * window_.channels;
    const bool inside = start >= 0 && start + (v.kernel - 1) * v.dilation < v.in;
    for (int64_t i = 0; i < d.kernel; ++i)
      for (int64_t j = 0; j < h.kernel; ++j, to += v.kernel) {
        const int64_t plane = d.start(o[0]) + i * d.dilation, row = h.start(o[1]) + j * h.dilation;
        const bool line_inside = plane >= 0 && plane < d.in && row >= 0 && row < h.in;
        if (line_inside && inside) {
          const uint8_t* at = image + ((plane * h.in + row) * v.in + start) * window_.channels;
          for (int64_t k = 0; k < v.kernel; ++k)
            to[k] = at + k * step;
          continue;
        }
        for (int64_t k = 0; k < v.kernel; ++k) {
          const int64_t column = start + k * v.dilation;
          to[k] = line_inside && column >= 0 && column < v.in
                      ? image + ((plane * h.in + row) * v.in + column) * window_.channels
                      : padding_.data();
        }
      }
  }

  const int8::operand_positions at_;
  const int8::window window_;
  int8::finish end_;
  scratch_buffer& scratch_;
  std::vector<int8_t> packed_;
  int64_t taps_; // a multiple of 4: those that are added have weight 0
  dtype type_;
  std::vector<int32_t> column_sums_;
  bool is_simple_ = false;
  std::vector<int32_t> correction_; // these if so, in the order of packed channels
  std::vector<float> scale_, offset_;
  std::vector<uint8_t> padding_; // a pixel of X's zero point
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
