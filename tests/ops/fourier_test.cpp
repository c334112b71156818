#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <complex>
#include <numbers>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

using complex = std::complex<double>;

/// Numbers of no pattern, [1, n, parts].
tensor some_signal(int64_t n, int64_t parts, int64_t batch = 1) {
  tensor x(dtype::float64, {batch, n, parts});
  for (int64_t i = 0; i < x.size(); ++i)
    x.mutable_data<double>()[i] = static_cast<double>((i * 7919 + 13) % 101) / 50 - 1;
  return x;
}

/// The transform by its definition, of n elements of which those beyond x are zero.
std::vector<complex> direct_transform(const tensor& x, int64_t n, bool inverse) {
  const int64_t parts = x.dims().back();
  const auto at = [&](int64_t j) {
    if (j >= x.dims()[1])
      return complex();
    const double* v = x.data<double>() + j * parts;
    return complex(v[0], parts == 2 ? v[1] : 0);
  };
  std::vector<complex> sums;
  for (int64_t k = 0; k < n; ++k) {
    complex sum;
    for (int64_t j = 0; j < n; ++j) {
      const double angle =
          (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      sum += at(j) * complex(std::cos(angle), std::sin(angle));
    }
    sums.push_back(inverse ? sum / static_cast<double>(n) : sum);
  }
  return sums;
}

void check_complex(const tensor& y, std::span<const complex> wanted) {
  REQUIRE(y.size() == 2 * std::ssize(wanted));
  for (size_t k = 0; k < wanted.size(); ++k) {
    CHECK(y.values<double>()[2 * k] == Approx(wanted[k].real()).margin(1e-9));
    CHECK(y.values<double>()[2 * k + 1] == Approx(wanted[k].imag()).margin(1e-9));
  }
}

attributes along_1(bool inverse = false, bool onesided = false) {
  return attrs_of({{"axis", int64_t{1}}, {"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}});
}

} // namespace

TEST_CASE("DFT of any length is the sum that defines it", "[ops][fourier]") {
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, 97, 100})
    for (const int64_t parts : {1, 2})
      for (const bool inverse : {false, true}) {
        INFO(n << " numbers of " << parts << (inverse ? ", inverse" : ""));
        const tensor x = some_signal(n, parts);
        check_complex(run_op("DFT", 17, along_1(inverse), {x})[0], direct_transform(x, n, inverse));
      }
}

TEST_CASE("DFT cuts, or appends zeros to, signals that are not of its length", "[ops][fourier]") {
  const tensor x = some_signal(6, 2);
  for (const int64_t n : {1, 4, 9, 16})
    check_complex(run_op("DFT", 20, {}, {x, tensor::scalar(n), tensor::scalar(int64_t{1})})[0],
                  direct_transform(x, n, false));
}

TEST_CASE("A onesided DFT comes back as the real signal", "[ops][fourier]") {
  for (const int64_t n : {2, 5, 8, 13}) {
    const tensor x = some_signal(n, 1), half = run_op("DFT", 19, along_1(false, true), {x})[0];
    CHECK(half.dims() == shape{1, n / 2 + 1, 2});
    const tensor back = run_op("DFT", 19, along_1(true, true), {half, tensor::scalar(n)})[0];
    REQUIRE(back.dims() == shape{1, n, 1});
    for (int64_t i = 0; i < n; ++i)
      CHECK(elements(back)[static_cast<size_t>(i)] == Approx(elements(x)[static_cast<size_t>(i)]).margin(1e-12));
  }
  CHECK(run_op("DFT", 19, along_1(true, true), {some_signal(6, 2)})[0].dims() == shape{1, 10, 1});
}

TEST_CASE("DFT takes the axis that is asked for", "[ops][fourier]") {
  tensor x(dtype::float32, {2, 3, 4, 1});
  for (int64_t i = 0; i < x.size(); ++i)
    x.mutable_data<float>()[i] = static_cast<float>(i % 5);
  // Along an axis of equal elements only the first sum is not zero.
  for (const int64_t axis : {0, 1, 2, -2, -3}) {
    const tensor y = run_op("DFT", 20, {}, {x, {}, tensor::scalar(axis)})[0];
    CHECK(y.dims() == shape{2, 3, 4, 2});
    double first = 0, all = 0;
    const size_t at = static_cast<size_t>(axis < 0 ? axis + 4 : axis);
    for (size_t i = 0; i < 24; ++i) {
      const std::array<size_t, 3> index{i / 12, i / 4 % 3, i % 4};
      if (index[at] == 0)
        first += y.values<float>()[2 * i];
      all += x.values<float>()[i];
    }
    CHECK(first == Approx(all));
  }
}

TEST_CASE("STFT takes a real signal without an axis of its parts", "[ops][fourier]") {
  const tensor step = tensor::scalar(int64_t{2}), four = tensor::scalar(int64_t{4});
  std::vector<float> values{1, -2, 3, 0, 5, 2, -1, 4};
  const tensor flat = tensor::of<float>({1, 8}, values), stated = tensor::of<float>({1, 8, 1}, values);
  const tensor y = run_op("STFT", 17, {}, {flat, step, {}, four})[0];
  const tensor expected = run_op("STFT", 17, {}, {stated, step, {}, four})[0];
  REQUIRE(y.dims() == shape{1, 3, 3, 2});
  CHECK(std::ranges::equal(y.values<float>(), expected.values<float>()));
}

TEST_CASE("STFT transforms each frame under its window", "[ops][fourier]") {
  const tensor signal = some_signal(20, 1, 2);
  tensor window(dtype::float64, {6});
  for (int64_t i = 0; i < 6; ++i)
    window.mutable_data<double>()[i] = 1 + static_cast<double>(i) / 4;
  const tensor step = tensor::scalar(int64_t{3});
  const tensor y = run_op("STFT", 17, {}, {signal, step, window})[0];
  REQUIRE(y.dims() == shape{2, 5, 4, 2});
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t f = 0; f < 5; ++f) {
      tensor frame(dtype::float64, {1, 6, 1});
      for (int64_t i = 0; i < 6; ++i)
        frame.mutable_data<double>()[i] = signal.data<double>()[b * 20 + 3 * f + i] * window.data<double>()[i];
      const std::vector<complex> wanted = direct_transform(frame, 6, false);
      for (int64_t k = 0; k < 4; ++k) {
        const double* got = y.data<double>() + ((b * 5 + f) * 4 + k) * 2;
        CHECK(got[0] == Approx(wanted[static_cast<size_t>(k)].real()).margin(1e-9));
        CHECK(got[1] == Approx(wanted[static_cast<size_t>(k)].imag()).margin(1e-9));
      }
    }
  CHECK(run_op("STFT", 17, attrs_of({{"onesided", int64_t{0}}}), {signal, step, {}, tensor::scalar(int64_t{6})})[0]
            .dims() == shape{2, 5, 6, 2});
}

TEST_CASE("Transforms that cannot be are refused", "[ops][fourier][E5]") {
  const auto dft = [](tensor x, const attributes& attrs, tensor length = {}) {
    return run_op("DFT", 17, attrs, {std::move(x), std::move(length)});
  };
  CHECK_THROWS_WITH(dft(ramp({4, 3}), {}), Contains("the last dim is [3]"));
  CHECK_THROWS_WITH(dft(ramp({4}), {}), Contains("no axis before"));
  CHECK_THROWS_WITH(dft(ramp({4, 1}), attrs_of({{"axis", int64_t{1}}})), Contains("is that of the complex numbers"));
  CHECK_THROWS_AS(dft(ramp({4, 1}), attrs_of({{"axis", int64_t{5}}})), error);
  CHECK_THROWS_WITH(dft(ramp({1, 4, 2}), along_1(false, true)), Contains("onesided"));
  CHECK_THROWS_WITH(dft(ramp({1, 4, 1}), along_1(true, true)), Contains("onesided"));
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{1} << 40})
    CHECK_THROWS_WITH(dft(ramp({1, 4, 1}), along_1(), tensor::scalar(n)), Contains("a transform of"));
  const tensor signal = ramp({1, 8, 1}), four = tensor::scalar(int64_t{4});
  CHECK_THROWS_WITH(run_op("STFT", 17, {}, {signal, tensor::scalar(int64_t{0}), {}, four}), Contains("frame_step"));
  CHECK_THROWS_WITH(run_op("STFT", 17, {}, {signal, four}), Contains("how long a frame is"));
  CHECK_THROWS_WITH(run_op("STFT", 17, {}, {signal, four, ramp({5}), four}), Contains("differ"));
  CHECK_THROWS_WITH(run_op("STFT", 17, {}, {signal, four, {}, tensor::scalar(int64_t{9})}),
                    Contains("shorter than a frame"));
  CHECK_THROWS_WITH(run_op("STFT", 17, {}, {ramp({1, 8, 2}), four, {}, four}), Contains("onesided"));
}

TEST_CASE("Whether numbers are complex may be known when they come", "[ops][fourier]") {
  test::graph_builder b;
  const value_id x = b.input("x", {1, 16, dim::symbol("parts")});
  const value_id spectrum = b.inferred("DFT", {x});
  const value_id frames =
      b.inferred("STFT", {x, b.integer(4), no_value, b.integer(8)}, attrs_of({{"onesided", int64_t{0}}}));
  CHECK(b.g.values[spectrum].dims->back().is(2));
  CHECK(b.g.values[frames].dims->back().is(2));
  for (const int64_t parts : {1, 2}) {
    tensor signal(dtype::float32, {1, 16, parts});
    for (int64_t i = 0; i < signal.size(); ++i)
      signal.mutable_data<float>()[i] = static_cast<float>(i * 7 % 11);
    const auto made = test::run_graph(*b.program({spectrum, frames}), {signal});
    CHECK(elements(made[0]) == elements(run_op("DFT", 17, {}, {signal})[0]));
  }
}
