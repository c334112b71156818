// GridSample: y[n, c, o] is x[n, c] at the place that grid[n, o] names, between elements.
//
// x is [N, C, D1 … Dr], grid [N, O1 … Or, r], y [N, C, O1 … Or], r from 1 to 3. A place counts from −1 to 1 along each
// axis, the last axis first; with align_corners ±1 are the middles of the outermost elements, else their outer ends.
// Modes: nearest (halves to even), linear, cubic (Keys' kernel with a = −0.75). Elements outside are zero (zeros), the
// nearest one inside (border), or mirrored (reflection). Opset 16 calls linear bilinear and cubic bicubic. A place that
// is NaN counts as outside on the left. A float64 is computed in double, all else in float.
#include "ops/onnx/grid_sample.hpp"

#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe {
namespace {

constexpr size_t most_axes = 3, most_taps = 4;

} // namespace

sampling parse_sampling(const attributes& attrs) {
  const std::string mode = attrs.text("mode", "linear");
  sampling s{.align_corners = attrs.integer("align_corners", 0) != 0};
  if (mode == "linear" || mode == "bilinear")
    s.mode = sample_mode::linear;
  else if (mode == "cubic" || mode == "bicubic")
    s.mode = sample_mode::cubic;
  else if (mode == "nearest")
    s.mode = sample_mode::nearest;
  else
    fail(errc::invalid_model, "attribute 'mode' is '{}', not nearest, linear or cubic", mode);
  s.padding = attrs.text("padding_mode", "") == border_of_taps
                  ? sample_padding::border_taps
                  : word_as<sample_padding>(attrs, "padding_mode", "zeros", {"zeros", "border", "reflection"});
  return s;
}

namespace {

/// Returns y's dims; throws unless x and grid fit each other.
symbolic_shape sampled_dims(const symbolic_shape& x, const symbolic_shape& grid) {
  if (x.size() < 3 || x.size() != grid.size())
    fail(errc::invalid_model, "an input of shape {} and a grid of shape {}: both need the same rank, 3 or more",
         to_string(x), to_string(grid));
  if (x.size() > 2 + most_axes)
    fail(errc::unsupported, "an input of shape {} has more than {} spatial axes", to_string(x), most_axes);
  require_same(x[0], grid[0], "the batches of input and grid");
  require_same(grid.back(), static_cast<int64_t>(x.size() - 2), "coordinates of a place, and spatial axes");
  symbolic_shape y{x[0], x[1]};
  y.insert(y.end(), grid.begin() + 1, grid.end() - 1);
  return y;
}

void infer_grid_sample(infer_context& c) {
  parse_sampling(c.attrs());
  if (!(types::floats & set_of(c.type(1))))
    fail(errc::invalid_model, "the grid is of {}, not of floats", to_string(c.type(1)));
  c.set_output(0, c.type(0), sampled_dims(c.dims(0), c.dims(1)));
}

/// Mirrors a place at both ends of a range as often as it takes.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0)
    return low;
  double off = std::fmod(std::abs(x - low), 2 * range);
  if (off > range)
    off = 2 * range - off;
  return low + off;
}

/// What one place reads along one axis: `count` elements and their weights. An index of −1 reads zero.
template <class C>
struct axis_taps {
  size_t count = 1;
  std::array<int64_t, most_taps> index{};
  std::array<C, most_taps> weight{};
};

/// Returns the element that an index means; −1 where that is zero.
int64_t inside(int64_t i, int64_t size, const sampling& s) {
  if (i >= 0 && i < size)
    return i;
  switch (s.padding) {
    case sample_padding::zeros: return -1;
    case sample_padding::border:
    case sample_padding::border_taps: return std::clamp<int64_t>(i, 0, size - 1);
    case sample_padding::reflection: {
      const double end = static_cast<double>(size) - 1, half = s.align_corners ? 0 : 0.5;
      return std::clamp<int64_t>(std::llround(reflected(static_cast<double>(i), -half, end + half)), 0, size - 1);
    }
  }
  return -1;
}

/// Keys' cubic kernel for the four elements around a place that is `t` after the second.
template <class C>
std::array<C, most_taps> cubic_weights(C t) {
  constexpr C a = C(-0.75);
  const auto outer = [](C d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; }; // 1 ≤ d ≤ 2
  const auto inner = [](C d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };       // 0 ≤ d ≤ 1
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

/// Returns what a coordinate from −1 to 1 reads of an axis of `size` elements, one at least.
template <class C>
axis_taps<C> taps_at(C coordinate, int64_t size, const sampling& s) {
  const C extent = static_cast<C>(size), half = s.align_corners ? C(0) : C(0.5);
  const C low = -half, high = extent - 1 + half;
  C x = s.align_corners ? (coordinate + 1) / 2 * (extent - 1) : ((coordinate + 1) * extent - 1) / 2;
  x = std::isnan(x) ? low - 2 * extent - 4 : std::clamp(x, C(-1e9), C(1e9)); // an index must be an integer
  if (s.mode == sample_mode::nearest)
    x = std::nearbyint(x);
  if (s.padding == sample_padding::border && (x < low || x > high))
    x = std::clamp(x, C(0), extent - 1);
  else if (s.padding == sample_padding::reflection && (x < low || x > high))
    x = static_cast<C>(reflected(x, low, high));
  axis_taps<C> taps;
  if (s.mode == sample_mode::nearest) {
    taps.index[0] = inside(std::llround(x), size, s);
    taps.weight[0] = 1;
    return taps;
  }
  const C floor = std::floor(x), t = x - floor;
  int64_t first = static_cast<int64_t>(floor);
  if (s.mode == sample_mode::linear) {
    taps.count = 2;
    taps.weight = {1 - t, t};
  } else {
    taps.count = 4;
    taps.weight = cubic_weights(t);
    --first;
  }
  for (size_t i = 0; i < taps.count; ++i)
    taps.index[i] = inside(first + static_cast<int64_t>(i), size, s);
  return taps;
}

/// Returns one sample: the sum over all combinations of the axes' taps, of which axes that are missing have one.
template <class C>
C sample(const C* plane, const std::array<axis_taps<C>, most_axes>& taps, const std::array<int64_t, most_axes>& sizes) {
  C sum = 0;
  for (size_t i = 0; i < taps[0].count; ++i)
    for (size_t j = 0; j < taps[1].count; ++j)
      for (size_t k = 0; k < taps[2].count; ++k) {
        const int64_t a = taps[0].index[i], b = taps[1].index[j], d = taps[2].index[k];
        if (a >= 0 && b >= 0 && d >= 0)
          sum += taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k] * plane[(a * sizes[1] + b) * sizes[2] + d];
      }
  return sum;
}

template <class C>
void run_grid_sample(kernel_context& c) {
  const const_view& x = c.input(0);
  const sampling s = parse_sampling(c.attrs());
  const size_t axes = x.dims.size() - 2;
  const read_as<C> from(x), grid(c.input(1));
  write_as<C> y(c.output(0));
  std::array<int64_t, most_axes> sizes{1, 1, 1};
  std::copy(x.dims.begin() + 2, x.dims.end(), sizes.begin() + static_cast<ptrdiff_t>(most_axes - axes));
  const int64_t channels = x.dims[1], area = volume(sizes);
  const int64_t places = volume(c.input(1).dims.subspan(1, axes));
  if (area == 0 && y.data() && c.output(0).size() > 0)
    fail(errc::invalid_input, "an input of shape {} has no elements to sample", to_string(x.dims));
  parallel_for(x.dims[0] * places, 64, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      std::array<axis_taps<C>, most_axes> taps;
      for (auto& missing : taps)
        missing.weight[0] = 1;
      for (size_t i = 0; i < axes; ++i) // the last axis comes first in the grid
        taps[most_axes - 1 - i] =
            taps_at(grid[p * static_cast<int64_t>(axes) + static_cast<int64_t>(i)], sizes[most_axes - 1 - i], s);
      const int64_t n = p / places, o = p % places;
      for (int64_t ch = 0; ch < channels; ++ch)
        y[(n * channels + ch) * places + o] = sample(from.data() + (n * channels + ch) * area, taps, sizes);
    }
  });
  y.commit();
}

void grid_sample(kernel_context& c) {
  sampled_dims(to_symbolic(c.input(0).dims), to_symbolic(c.input(1).dims));
  if (c.input(0).type == dtype::float64 || !(types::floats & set_of(c.input(0).type)))
    run_grid_sample<double>(c);
  else
    run_grid_sample<float>(c);
}

/// Some ten operations for each element that is read; the cubic mode reads most.
op_cost grid_sample_cost(const attributes& attrs, const call_shapes& call) {
  const sample_mode mode = parse_sampling(attrs).mode;
  const double taps = mode == sample_mode::nearest ? 1 : mode == sample_mode::linear ? 2 : 4;
  const auto axes = static_cast<double>(call.inputs[0].size() - 2);
  return {10 * std::pow(taps, axes) * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

/// Each place of an image's grid picks from all places of it.
void grid_sample_axes(call_axes& a) {
  a.batches({1});
  a.map({{0, 1}}, 1);
  for (size_t axis = 2; axis < a.call().rank(0); ++axis)
    a.map({{1, axis - 1}}, axis);
}

constexpr op_def grid_sample_row(int64_t since) {
  return op_row("GridSample", since, infer_grid_sample, grid_sample,
                {.inputs = {2, 2},
                 .types = types::numeric,
                 .cost = grid_sample_cost,
                 .axes = grid_sample_axes,
                 .mixes = "samples"});
}

constexpr auto grid_sample_rows = std::to_array<op_def>({
    grid_sample_row(16),
    grid_sample_row(20),
    grid_sample_row(22),
});

} // namespace

extern constinit const op_table onnx_grid_sample_ops = grid_sample_rows;

} // namespace troupe
