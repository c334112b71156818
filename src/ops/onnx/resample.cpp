#include "ops/onnx/resample.hpp"

#include "base/checked.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

/// The coordinate of output index `o` on the input's axis, in the arithmetic T. Nearest neighbours are found in float:
/// the rounding of o / scale then gives whole numbers if a file's float scale only approximates 1/3.
template <class T>
T coordinate(const resample_options& options, const resample_axis& axis, int64_t o) {
  const auto x = static_cast<T>(o), scale = static_cast<T>(axis.scale), in = static_cast<T>(axis.in);
  const std::string& mode = options.coordinates;
  if (mode == "half_pixel")
    return (x + T(0.5)) / scale - T(0.5);
  if (mode == "pytorch_half_pixel")
    return axis.out > 1 ? (x + T(0.5)) / scale - T(0.5) : T(0);
  if (mode == "asymmetric")
    return x / scale;
  if (mode == "align_corners")
    return axis.out > 1 ? x * (in - 1) / (scale * in - 1) : T(0);
  if (mode == "tf_half_pixel_for_nn") // for the axes that are resized: the half pixel would move others
    return axis.scale == 1 ? x : (x + T(0.5)) / scale;
  if (mode == "half_pixel_symmetric") {
    const T adjustment = static_cast<T>(axis.out) / (scale * in);
    return in / 2 * (1 - adjustment) + (x + T(0.5)) / scale - T(0.5);
  }
  if (mode == "tf_crop_and_resize") {
    const auto begin = static_cast<T>(axis.roi_begin), end = static_cast<T>(axis.roi_end);
    if (axis.out > 1)
      return begin * (in - 1) + x * (end - begin) * (in - 1) / static_cast<T>(axis.out - 1);
    return (begin + end) * (in - 1) / 2;
  }
  fail(errc::invalid_model, "unknown coordinate_transformation_mode '{}'", mode);
}

int64_t nearest_index(const std::string& mode, float x) {
  const float low = std::floor(x), part = x - low;
  if (mode == "round_prefer_floor")
    return static_cast<int64_t>(part > 0.5f ? low + 1 : low);
  if (mode == "round_prefer_ceil")
    return static_cast<int64_t>(part >= 0.5f ? low + 1 : low);
  if (mode == "floor")
    return static_cast<int64_t>(low);
  if (mode == "ceil")
    return static_cast<int64_t>(std::ceil(x));
  fail(errc::invalid_model, "unknown nearest_mode '{}'", mode);
}

double linear_weight(double distance) {
  return std::max(0.0, 1 - std::abs(distance));
}

/// Keys' cubic convolution with parameter a.
double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Half the number of taps: the kernel's radius, wider if antialiasing shrinks.
int64_t radius_of(const resample_options& options, double shrink) {
  const double radius = std::ceil((options.mode == "cubic" ? 2 : 1) / shrink);
  if (!(radius < 1e6))
    fail(errc::invalid_model, "an antialiasing scale of {} is too small", shrink);
  return static_cast<int64_t>(radius);
}

void weigh(const resample_options& options, const resample_axis& axis, double x, double shrink, int64_t radius,
           int64_t* indices, double* weights) {
  const double low = std::floor(x);
  double sum = 0;
  std::vector<double> raw(static_cast<size_t>(2 * radius));
  for (int64_t k = 0; k < 2 * radius; ++k) {
    const double position = low + static_cast<double>(k + 1 - radius), distance = (position - x) * shrink;
    double weight = options.mode == "cubic" ? cubic_weight(distance, options.cubic_a) : linear_weight(distance);
    if (options.exclude_outside && (position < 0 || position > static_cast<double>(axis.in - 1)))
      weight = 0;
    raw[static_cast<size_t>(k)] = weight;
    sum += weight;
    indices[k] = static_cast<int64_t>(std::clamp(position, 0.0, static_cast<double>(axis.in - 1)));
  }
  const bool normalises = (options.antialias || options.exclude_outside) && sum != 0;
  for (int64_t k = 0; k < 2 * radius; ++k)
    weights[k] = raw[static_cast<size_t>(k)] / (normalises ? sum : 1);
}

bool is_outside(const resample_options& options, const resample_axis& axis, double x) {
  return options.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.in - 1));
}

} // namespace

bool resample_taps::is_identity(int64_t in) const {
  if (static_cast<int64_t>(outside.size()) != in || std::count(outside.begin(), outside.end(), 0) != in)
    return false;
  for (int64_t i = 0; i < in * count; ++i)
    if (const auto k = static_cast<size_t>(i); indices[k] != i / count && weights[k] != 0)
      return false;
  return true;
}

double resample_coordinate(const resample_options& options, const resample_axis& axis, int64_t o) {
  return coordinate<double>(options, axis, o);
}

resample_taps taps_of(const resample_options& options, const resample_axis& axis) {
  if (!(axis.scale > 0) || !std::isfinite(axis.scale))
    fail(errc::invalid_model, "a scale of {} is not positive", axis.scale);
  resample_taps taps;
  const auto out = static_cast<size_t>(axis.out);
  taps.outside.resize(out);
  if (options.mode == "nearest") {
    taps.weights.assign(out, 1);
    const std::string rounding = options.shrinks_upwards && axis.scale < 1 ? "ceil" : options.nearest;
    for (int64_t o = 0; o < axis.out; ++o) {
      const auto x = coordinate<float>(options, axis, o);
      taps.outside[static_cast<size_t>(o)] = is_outside(options, axis, x);
      const float clamped = std::clamp(x, -1.f, static_cast<float>(axis.in));
      taps.indices.push_back(std::clamp<int64_t>(nearest_index(rounding, clamped), 0, axis.in - 1));
    }
    return taps;
  }
  if (options.mode != "linear" && options.mode != "cubic")
    fail(errc::invalid_model, "unknown mode '{}' of Resize", options.mode);
  const double shrink = options.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const int64_t radius = radius_of(options, shrink);
  taps.count = 2 * radius;
  const auto total = static_cast<size_t>(checked_mul(axis.out, taps.count));
  // Taps grow with 1 / scale and outputs with scale, so that their product is a few times the larger size, unless a
  // region that is far larger than the input is scaled down.
  constexpr double usual_taps = 64;
  if (static_cast<double>(total) > usual_taps * static_cast<double>(axis.in + axis.out + 64))
    fail(errc::unsupported, "resizing {} elements to {} by a scale of {} takes too many taps", axis.in, axis.out,
         axis.scale);
  taps.indices.resize(total);
  taps.weights.resize(total);
  for (int64_t o = 0; o < axis.out; ++o) {
    const auto x = coordinate<double>(options, axis, o);
    taps.outside[static_cast<size_t>(o)] = is_outside(options, axis, x);
    const double limit = static_cast<double>(axis.in) + static_cast<double>(taps.count);
    weigh(options, axis, std::clamp(x, -limit, limit), shrink, radius, taps.indices.data() + o * taps.count,
          taps.weights.data() + o * taps.count);
  }
  return taps;
}

} // namespace troupe
