// DFT and STFT: discrete Fourier transforms along one axis, X[k] = Σ over j of x[j] · e^(∓2πi jk / n), the inverse
// divided by n.
//
// A complex number is the last dim's two elements, a real one is one. DFT: x [d…, 1 or 2] and an axis before the last;
// dft_length (absent: what the axis has) cuts it or appends zeros. onesided: forward, of real numbers, the first ⌊n /
// 2⌋ + 1; inverse, from those of a real signal, the real signal. STFT: signal [B, L, 1 or 2], frames of frame_length
// every frame_step elements, each times the window, give [B, frames, n or ⌊n / 2⌋ + 1, 2].
//
// Powers of two by Cooley and Tukey's algorithm (1965), other lengths by Bluestein's (1970), which makes a convolution
// of them. Computed in double.
#include "base/round_up.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <numbers>

namespace troupe {
namespace {

using complex = std::complex<double>;

/// Longer transforms are refused: Bluestein's takes four times their memory.
constexpr int64_t longest_transform = int64_t{1} << 28;

/// Returns e^(−2πi k / n).
complex root(int64_t k, int64_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

/// A forward transform of one length: prepared once, used for many lines.
class transform {
public:
  explicit transform(int64_t n) : n_(n), padded_(n) {
    if (!std::has_single_bit(static_cast<uint64_t>(n)))
      padded_ = next_power_of_two(2 * n - 1);
    roots_.resize(static_cast<size_t>(std::max<int64_t>(1, padded_ / 2)));
    for (int64_t k = 0; k < std::ssize(roots_); ++k)
      roots_[static_cast<size_t>(k)] = root(k, padded_);
    if (padded_ != n_)
      prepare_chirp();
  }

  /// Transforms n elements in place.
  void operator()(std::vector<complex>& line) const {
    if (padded_ == n_)
      return by_halves(line);
    std::vector<complex> work(static_cast<size_t>(padded_));
    for (size_t i = 0; i < line.size(); ++i)
      work[i] = line[i] * chirp_[i];
    by_halves(work);
    for (size_t i = 0; i < work.size(); ++i)
      work[i] = std::conj(work[i] * filter_[i]);
    by_halves(work); // of conjugates: the inverse's conjugate, times the length
    for (size_t i = 0; i < line.size(); ++i)
      line[i] = std::conj(work[i]) / static_cast<double>(padded_) * chirp_[i];
  }

private:
  /// Bluestein: jk = (j² + k² − (k − j)²) / 2, so the sums are a convolution with e^(πi j² / n).
  void prepare_chirp() {
    filter_.resize(static_cast<size_t>(padded_));
    for (int64_t j = 0; j < n_; ++j) {
      const complex c = root(
          static_cast<int64_t>(static_cast<uint64_t>(j) * static_cast<uint64_t>(j) % static_cast<uint64_t>(2 * n_)),
          2 * n_);
      chirp_.push_back(c);
      filter_[static_cast<size_t>(j)] = std::conj(c);
      if (j > 0)
        filter_[static_cast<size_t>(padded_ - j)] = std::conj(c);
    }
    by_halves(filter_);
  }

  void by_halves(std::vector<complex>& line) const {
    const size_t n = line.size();
    for (size_t i = 1, j = 0; i < n; ++i) { // in the order of reversed bits
      size_t bit = n >> 1;
      for (; j & bit; bit >>= 1)
        j ^= bit;
      j ^= bit;
      if (i < j)
        std::swap(line[i], line[j]);
    }
    for (size_t half = 1; half < n; half *= 2)
      for (size_t first = 0; first < n; first += 2 * half)
        for (size_t k = 0; k < half; ++k) {
          const complex odd = line[first + half + k] * roots_[k * (n / (2 * half))], even = line[first + k];
          line[first + k] = even + odd;
          line[first + half + k] = even - odd;
        }
  }

  int64_t n_, padded_;
  std::vector<complex> roots_, chirp_, filter_;
};

void require_complex(const dim& last) {
  if (last.is_constant() && last.constant() != 1 && last.constant() != 2)
    fail(errc::invalid_model, "the last dim is {}; 1 (real) or 2 (complex) is needed", to_string(symbolic_shape{last}));
}

void check_transform(int64_t n) {
  if (n < 1 || n > longest_transform)
    fail(errc::invalid_input, "a transform of {} elements; 1 to {} are possible", n, longest_transform);
}

// -- DFT

struct dft_options {
  bool inverse, onesided;
};

dft_options parse_dft(const attributes& attrs) {
  return {attrs.integer("inverse", 0) != 0, attrs.integer("onesided", 0) != 0};
}

/// Returns the transform's length.
dim dft_length(const dft_options& o, const dim& in, const std::optional<dim>& stated) {
  if (stated)
    return *stated;
  return o.inverse && o.onesided ? 2 * (in - 1) : in;
}

void infer_dft(infer_context& c, int64_t axis) {
  const dft_options o = parse_dft(c.attrs());
  symbolic_shape dims = c.dims(0);
  if (dims.size() < 2)
    fail(errc::invalid_model, "an input of shape {} has no axis before that of its complex numbers", to_string(dims));
  require_complex(dims.back());
  const size_t at = normalize_axis(axis, dims.size());
  if (at + 1 == dims.size())
    fail(errc::invalid_model, "axis {} is that of the complex numbers", axis);
  if (o.onesided && dims.back().is_constant() && o.inverse == dims.back().is(1))
    fail(errc::invalid_model, "a {} transform that is onesided has {} numbers, not {}",
         o.inverse ? "backward" : "forward", o.inverse ? "complex" : "real", o.inverse ? "real" : "complex");
  const auto known = c.has_input(1) ? std::optional(c.require_known(1)) : std::nullopt;
  if (known && known->size() != 1)
    fail(errc::invalid_model, "dft_length has {} elements", known->size());
  const dim n = dft_length(o, dims[at], known ? std::optional(known->front()) : std::nullopt);
  if (n.is_constant())
    check_transform(n.constant());
  dims[at] = o.onesided && !o.inverse ? floor_div(n, 2) + 1 : n;
  dims.back() = o.onesided && o.inverse ? 1 : 2;
  c.set_output(0, c.type(0), std::move(dims));
}

int64_t axis_operand(const std::vector<int64_t>& axis) {
  if (axis.size() != 1)
    fail(errc::invalid_model, "the axis (input 2) has {} elements", axis.size());
  return axis[0];
}

void infer_dft_17(infer_context& c) {
  infer_dft(c, c.attrs().integer("axis", 1));
}

void infer_dft_20(infer_context& c) {
  infer_dft(c, c.has_input(2) ? axis_operand(c.require_constants(2)) : -2);
}

/// A line of an operand: `count` numbers that are `step` elements apart, each of `parts` elements.
template <class C>
struct number_line {
  C* first;
  int64_t count, step, parts;
};

template <class C>
void read_line(const number_line<const C>& from, std::vector<complex>& line) {
  for (size_t i = 0; i < line.size(); ++i) {
    const C* at = from.first + static_cast<int64_t>(i) * from.step;
    line[i] = static_cast<int64_t>(i) < from.count ? complex(at[0], from.parts == 2 ? static_cast<double>(at[1]) : 0)
                                                   : complex();
  }
}

template <class C>
void write_line(const std::vector<complex>& line, const number_line<C>& to) {
  for (int64_t i = 0; i < to.count; ++i) {
    to.first[i * to.step] = static_cast<C>(line[static_cast<size_t>(i)].real());
    if (to.parts == 2)
      to.first[i * to.step + 1] = static_cast<C>(line[static_cast<size_t>(i)].imag());
  }
}

/// The second half of a real signal's transform is the first's conjugate, backwards. `kept` elements were read.
void mirror_half(std::vector<complex>& line, int64_t kept) {
  const int64_t n = std::ssize(line);
  for (int64_t k = std::max<int64_t>(n / 2 + 1, 1); k < n; ++k)
    line[static_cast<size_t>(k)] = n - k < kept ? std::conj(line[static_cast<size_t>(n - k)]) : complex();
}

/// Transforms a line as the options say. An inverse is the conjugate of the conjugates' transform.
void run_transform(const transform& f, std::vector<complex>& line, bool inverse) {
  if (!inverse)
    return f(line);
  for (complex& v : line)
    v = std::conj(v);
  f(line);
  for (complex& v : line)
    v = std::conj(v) / static_cast<double>(line.size());
}

template <class C>
void run_dft(kernel_context& c, int64_t axis) {
  const const_view& x = c.input(0);
  const mutable_view& out = c.output(0);
  const dft_options o = parse_dft(c.attrs());
  const size_t at = normalize_axis(axis, x.dims.size());
  const int64_t in = x.dims[at];
  const std::optional<dim> stated = c.has_input(1) ? std::optional(dim(to_int64(c.input(1)).at(0))) : std::nullopt;
  const int64_t n = dft_length(o, in, stated).constant();
  check_transform(n);
  const read_as<C> from(x);
  write_as<C> y(out);
  const transform f(n);
  const int64_t inner = volume(x.dims.subspan(at + 1, x.dims.size() - at - 2)),
                lines = volume(x.dims.first(at)) * inner;
  const int64_t in_parts = x.dims.back(), out_parts = out.dims.back(), bins = out.dims[at];
  const int64_t read = std::min(in, o.inverse && o.onesided ? n / 2 + 1 : n);
  parallel_for(lines, 1, [&](int64_t begin, int64_t end) {
    std::vector<complex> line(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t outer = i / inner, rest = i % inner;
      read_line<C>({from.data() + (outer * in * inner + rest) * in_parts, read, inner * in_parts, in_parts}, line);
      if (o.inverse && o.onesided)
        mirror_half(line, read);
      run_transform(f, line, o.inverse);
      write_line<C>(line, {y.data() + (outer * bins * inner + rest) * out_parts, bins, inner * out_parts, out_parts});
    }
  });
  y.commit();
}

void dft_17(kernel_context& c) {
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_dft<T>(c, c.attrs().integer("axis", 1)); });
}

void dft_20(kernel_context& c) {
  const int64_t axis = c.has_input(2) ? axis_operand(to_int64(c.input(2))) : -2;
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_dft<T>(c, axis); });
}

// -- STFT

void infer_stft(infer_context& c) {
  const symbolic_shape& signal = c.dims(0);
  if (signal.size() != 2 && signal.size() != 3)
    fail(errc::invalid_model, "a signal of shape {}; [batch, length] or [batch, length, 1 or 2] is needed",
         to_string(signal));
  const dim parts = signal.size() == 3 ? signal[2] : dim(1);
  require_complex(parts);
  const bool onesided = c.attrs().integer("onesided", 1) != 0;
  if (onesided && parts.is(2))
    fail(errc::invalid_model, "a complex signal has no onesided transform");
  const auto scalar = [&](size_t i, const char* what) {
    const std::vector<dim> known = c.require_known(i);
    if (known.size() != 1)
      fail(errc::invalid_model, "{} has {} elements", what, known.size());
    return known[0];
  };
  const dim step = scalar(1, "frame_step");
  if (!step.is_constant() || step.constant() < 1)
    fail(errc::invalid_model, "frame_step is {}; a positive number is needed", to_string(symbolic_shape{step}));
  if (!c.has_input(2) && !c.has_input(3))
    fail(errc::invalid_model, "neither a window (input 2) nor frame_length (input 3) says how long a frame is");
  if (c.has_input(2) && c.rank(2) != 1)
    fail(errc::invalid_model, "a window of shape {} is not a list", to_string(c.dims(2)));
  const dim n = c.has_input(3) ? scalar(3, "frame_length") : c.dims(2)[0];
  if (c.has_input(2))
    require_same(c.dims(2)[0], n, "the window's and the frames' length");
  if (n.is_constant())
    check_transform(n.constant());
  if (signal[1].is_constant() && n.is_constant() && signal[1].constant() < n.constant())
    fail(errc::invalid_model, "a signal of {} elements is shorter than a frame of {}", signal[1].constant(),
         n.constant());
  c.set_output(0, c.type(0),
               {signal[0], floor_div(signal[1] - n, step.constant()) + 1, onesided ? floor_div(n, 2) + 1 : n, 2});
}

template <class C>
void run_stft(kernel_context& c) {
  const const_view& signal = c.input(0);
  const int64_t length = signal.dims[1], parts = signal.dims.size() == 3 ? signal.dims[2] : 1,
                step = to_int64(c.input(1)).at(0);
  const read_as<C> from(signal), window(optional_input(c, 2));
  const int64_t n = c.has_input(3) ? to_int64(c.input(3)).at(0) : window.size();
  const int64_t frames = c.output(0).dims[1], bins = c.output(0).dims[2];
  check_transform(n);
  if ((window && window.size() != n) || step < 1 || (frames > 0 && (frames - 1) * step + n > length))
    fail(errc::invalid_input, "frames of {} elements every {}, a window of {} and a signal of {} do not fit", n, step,
         window.size(), length);
  write_as<C> y(c.output(0));
  const transform f(n);
  parallel_for(signal.dims[0] * frames, 1, [&](int64_t begin, int64_t end) {
    std::vector<complex> line(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      const C* first = from.data() + (i / frames * length + i % frames * step) * parts;
      read_line<C>({first, n, parts, parts}, line);
      for (int64_t k = 0; window && k < n; ++k)
        line[static_cast<size_t>(k)] *= static_cast<double>(window[k]);
      f(line);
      write_line<C>(line, {y.data() + i * bins * 2, bins, 2, 2});
    }
  });
  y.commit();
}

void stft(kernel_context& c) {
  visit_compute(c.input(0).type, [&]<class T>(type_tag<T>) { run_stft<T>(c); });
}

/// About 5 n log2 n operations a transform: some 80 an element.
constexpr auto fourier_cost = cost_per_output<80>;

/// All but the transformed dim, and that of the complex numbers.
void dft_axes(call_axes& a, int64_t transformed) {
  const size_t rank = a.call().rank(0), along = normalize_axis(transformed, rank);
  for (size_t axis = 0; axis < rank; ++axis)
    if (axis != along && axis + 1 != rank)
      a.map({{0, axis}}, axis);
}

void dft_17_axes(call_axes& a) {
  dft_axes(a, a.call().attrs().integer("axis", 1));
}

void dft_20_axes(call_axes& a) {
  dft_axes(a, a.call().has_input(2) ? axis_operand(a.call().require_constants(2)) : -2);
}

constexpr auto fourier_rows = std::to_array<op_def>({
    op_row("DFT", 17, infer_dft_17, dft_17,
           {.inputs = {1, 2},
            .types = types::floats,
            .host_inputs = 0b10,
            .cost = fourier_cost,
            .axes = dft_17_axes,
            .mixes = "transforms"}),
    op_row("DFT", 20, infer_dft_20, dft_20,
           {.inputs = {1, 3},
            .types = types::floats,
            .host_inputs = 0b110,
            .cost = fourier_cost,
            .axes = dft_20_axes,
            .mixes = "transforms"}),
    op_row("STFT", 17, infer_stft, stft,
           {.inputs = {2, 4},
            .types = types::floats,
            .host_inputs = 0b1010,
            .cost = fourier_cost,
            .axes = axes::batch<>,
            .mixes = "transforms"}),
});

} // namespace

extern constinit const op_table onnx_fourier_ops = fourier_rows;

} // namespace troupe
