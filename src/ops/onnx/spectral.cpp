// What spectra are made with: HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix.
//
// A window of n points is w[i] = a0 − a1 · cos(2πi / m) + a2 · cos(4πi / m), where m is n if it is periodic, else n −
// 1; one point is 1. The element (f, b) of a mel weight matrix is how much frequency bin f counts in mel band b: a
// triangle over bins that are evenly spaced in mel = 2595 · log10(1 + hertz / 700). Their operands are sizes, so a
// device hardly ever computes them: they are folded as soon as the sizes are known. Computed in double.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe {
namespace {

constexpr dtype_set size_types = set_of(dtype::int32, dtype::int64);

/// The type that attribute output_datatype asks for; float32 if it is absent.
dtype spectral_type(const attributes& attrs) {
  const dtype type = dtype_from_onnx(static_cast<int>(attrs.integer("output_datatype", 1)));
  if (!(types::numeric & set_of(type)))
    fail(errc::invalid_model, "attribute 'output_datatype' asks for {}, which is not a number", to_string(type));
  return type;
}

template <class T>
T spectral_element(double value) {
  if constexpr (std::is_integral_v<T>)
    return to_integer<T>(value);
  else
    return static_cast<T>(value);
}

void require_one(int64_t count, const char* what) {
  if (count != 1)
    fail(errc::invalid_model, "{} is {} elements instead of one", what, count);
}

// -- windows

struct cosine_sum {
  double a0, a1, a2;
};

constexpr cosine_sum hann{0.5, 0.5, 0}, hamming{25. / 46, 21. / 46, 0}, blackman{0.42, 0.5, 0.08};

int64_t checked_window_size(int64_t size) {
  if (size < 0)
    fail(errc::invalid_input, "a window cannot have {} points", size);
  return size;
}

void infer_cosine_window(infer_context& c) {
  const auto size = c.known(0);
  if (size) {
    require_one(std::ssize(*size), "the window's size");
    if (size->front().is_constant())
      checked_window_size(size->front().constant());
  }
  c.set_output(0, spectral_type(c.attrs()), {size ? size->front() : c.data_dependent(0, 0)});
}

template <const cosine_sum& Window>
void cosine_window(kernel_context& c) {
  const std::vector<int64_t> sizes = to_int64(c.input(0));
  require_one(std::ssize(sizes), "the window's size");
  const int64_t size = checked_window_size(sizes[0]), m = c.attrs().integer("periodic", 1) != 0 ? size : size - 1;
  const mutable_view out = output_of(c, 0, {size});
  visit_numeric(out.type, [&]<class T>(type_tag<T>) {
    parallel_for(size, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(m);
        const double value = m == 0 ? 1 : Window.a0 - Window.a1 * std::cos(angle) + Window.a2 * std::cos(2 * angle);
        out.as<T>()[i] = spectral_element<T>(value);
      }
    });
  });
}

// -- mel bands

/// The operands of MelWeightMatrix.
struct mel_call {
  int64_t bands, dft_length, sample_rate;
  double lower, upper; // hertz
};

void infer_mel_weights(infer_context& c) {
  const std::vector<dim> bands = c.require_known(0), dft_length = c.require_known(1);
  require_one(std::ssize(bands), "num_mel_bins");
  require_one(std::ssize(dft_length), "dft_length");
  for (const dim& d : {bands[0], dft_length[0]})
    if (d.is_constant() && d.constant() < 1)
      fail(errc::invalid_model, "num_mel_bins and dft_length must be positive, not {}", d.constant());
  c.set_output(0, spectral_type(c.attrs()), {floor_div(dft_length[0], 2) + 1, bands[0]});
}

mel_call mel_operands(const kernel_context& c) {
  const auto integer = [&](size_t i, const char* what) {
    require_one(c.input(i).size(), what);
    const int64_t value = to_int64(c.input(i))[0];
    if (value < 1)
      fail(errc::invalid_input, "{} must be positive, not {}", what, value);
    return value;
  };
  const auto hertz = [&](size_t i, const char* what) {
    require_one(c.input(i).size(), what);
    return to_double(c.input(i))[0];
  };
  const mel_call m{integer(0, "num_mel_bins"), integer(1, "dft_length"), integer(2, "sample_rate"),
                   hertz(3, "lower_edge_hertz"), hertz(4, "upper_edge_hertz")};
  if (!(m.lower >= 0 && m.lower <= m.upper && 2 * m.upper <= static_cast<double>(m.sample_rate)))
    fail(errc::invalid_input,
         "the mel bands reach from {} to {} hertz, which is not inside 0 to {}, half the sample rate", m.lower, m.upper,
         static_cast<double>(m.sample_rate) / 2);
  return m;
}

/// Returns the frequency bins at which the bands begin, have their tops, and end: band b has edges b, b + 1 and b + 2.
std::vector<int64_t> mel_edges(const mel_call& m) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(m.lower), step = (mel(m.upper) - low) / static_cast<double>(m.bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < m.bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    const double bin = std::floor((static_cast<double>(m.dft_length) + 1) * hertz / static_cast<double>(m.sample_rate));
    edges.push_back(
        std::clamp<int64_t>(static_cast<int64_t>(bin), 0, m.dft_length / 2)); // rounding may leave the range
  }
  return edges;
}

void mel_weights(kernel_context& c) {
  const mel_call m = mel_operands(c);
  const std::vector<int64_t> edges = mel_edges(m);
  const mutable_view& out = c.output(0);
  visit_numeric(out.type, [&]<class T>(type_tag<T>) {
    T* y = out.as<T>();
    std::fill_n(y, out.size(), T());
    const auto set = [&](int64_t bin, int64_t band, int64_t part, int64_t whole) {
      y[bin * m.bands + band] = spectral_element<T>(static_cast<double>(part) / static_cast<double>(whole));
    };
    for (int64_t b = 0; b < m.bands; ++b) {
      const int64_t first = edges[static_cast<size_t>(b)], top = edges[static_cast<size_t>(b) + 1],
                    last = edges[static_cast<size_t>(b) + 2];
      for (int64_t bin = first; bin < top; ++bin)
        set(bin, b, bin - first, top - first);
      set(top, b, 1, 1);
      for (int64_t bin = top; bin < last; ++bin)
        set(bin, b, last - bin, last - top);
    }
  });
}

// -- rows

/// About forty operations a cosine.
constexpr auto cosine_window_cost = cost_per_output<80>;

constexpr op_def window_row(std::string_view name, void (*reference)(kernel_context&)) {
  return op_row(
      name, 17, infer_cosine_window, reference,
      {.types = size_types, .host_inputs = 0b1, .cost = cosine_window_cost, .mixes = "has a point for each position"});
}

constexpr auto spectral_rows = std::to_array<op_def>({
    window_row("BlackmanWindow", cosine_window<blackman>),
    window_row("HammingWindow", cosine_window<hamming>),
    window_row("HannWindow", cosine_window<hann>),
    op_row("MelWeightMatrix", 17, infer_mel_weights, mel_weights,
           {.inputs = {5, 5}, .types = size_types, .host_inputs = 0b11, .mixes = "makes a matrix of numbers"}),
});

} // namespace

extern constinit const op_table onnx_spectral_ops = spectral_rows;

} // namespace troupe
