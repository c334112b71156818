#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// One spatial axis.
struct line {
  int64_t image, block, stride, dilation, begin, end;
  int64_t positions() const { return (image + begin + end - dilation * (block - 1) - 1) / stride + 1; }
};

/// Adds blocks of a ramp of int64 up by the definition, element by element; batch 2, three channels.
std::vector<double> direct_sums(const tensor& x, const line& h, const line& w) {
  const int64_t taps = h.block * w.block, positions = h.positions() * w.positions();
  std::vector<double> y(static_cast<size_t>(6 * h.image * w.image), 0);
  for (int64_t plane = 0; plane < 6; ++plane)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t o = 0; o < positions; ++o) {
        const int64_t ih = o / w.positions() * h.stride - h.begin + tap / w.block * h.dilation;
        const int64_t iw = o % w.positions() * w.stride - w.begin + tap % w.block * w.dilation;
        if (ih >= 0 && ih < h.image && iw >= 0 && iw < w.image)
          y[static_cast<size_t>((plane * h.image + ih) * w.image + iw)] +=
              static_cast<double>(x.values<int64_t>()[static_cast<size_t>((plane * taps + tap) * positions + o)]);
      }
  return y;
}

std::vector<tensor> operands(tensor x, int_list image, int_list block) {
  return {std::move(x), longs(std::move(image)), longs(std::move(block))};
}

} // namespace

TEST_CASE("Col2Im adds blocks up where they overlap", "[ops][col2im]") {
  const line lines[] = {{5, 2, 1, 1, 0, 0}, {4, 3, 1, 1, 1, 2}, {6, 2, 2, 1, 0, 0}, {7, 2, 3, 2, 2, 0}};
  for (const line& h : lines)
    for (const line& w : lines) {
      tensor x(dtype::int64, {2, 3 * h.block * w.block, h.positions() * w.positions()});
      for (int64_t i = 0; i < x.size(); ++i)
        x.mutable_data<int64_t>()[i] = i % 101 - 50;
      const auto attrs = attrs_of({{"strides", int_list{h.stride, w.stride}},
                                   {"dilations", int_list{h.dilation, w.dilation}},
                                   {"pads", int_list{h.begin, w.begin, h.end, w.end}}});
      const tensor y = run_op("Col2Im", 18, attrs, operands(x, {h.image, w.image}, {h.block, w.block}))[0];
      REQUIRE(y.dims() == shape{2, 3, h.image, w.image});
      CHECK(elements(y) == direct_sums(x, h, w));
    }
}

TEST_CASE("Col2Im sums 16-bit floats in float, integers modulo their width", "[ops][col2im]") {
  tensor half(dtype::float16, {1, 4096, 4096}), bytes(dtype::uint8, {1, 2, 2});
  std::fill_n(half.mutable_data<float16>(), half.size(), float16(1.f));
  const tensor y = run_op("Col2Im", 18, {}, operands(half, {8191}, {4096}))[0];
  CHECK(elements(y)[4095] == 4096); // a float16 sum would stop at 2048
  std::fill_n(bytes.mutable_data<uint8_t>(), 4, uint8_t{200});
  CHECK(elements(run_op("Col2Im", 18, {}, operands(bytes, {3}, {2}))[0]) == std::vector<double>{200, 144, 200});
}

TEST_CASE("Col2Im of an empty batch is empty", "[ops][col2im]") {
  CHECK(run_op("Col2Im", 18, {}, operands(tensor(dtype::float32, {0, 4, 2}), {3}, {2}))[0].dims() == shape{0, 2, 3});
}

TEST_CASE("Col2Im refuses operands that do not fit", "[ops][col2im]") {
  const auto refuses = [](const std::vector<tensor>& inputs, const char* text, const attributes& attrs = {}) {
    CHECK_THROWS_WITH(run_op("Col2Im", 18, attrs, inputs), Catch::Contains(text));
  };
  const tensor x = ramp({1, 4, 2});
  refuses(operands(ramp({4, 2}), {3}, {2}), "rank 2, not 3");
  refuses(operands(x, {3, 3}, {2}), "block_shape has 1 elements");
  refuses(operands(x, {3}, {3}), "not a multiple of the block's 3");
  refuses(operands(x, {4}, {2}), "columns of the input");
  refuses(operands(x, {-3}, {2}), "negative");
  refuses(operands(x, {1}, {2}), "the kernel covers 2 elements");
  refuses(operands(x, {3}, {0}), "kernel size is 0");
  refuses(operands(x, {1, 1, 1, 3}, {1, 1, 1, 2}), "4 spatial axes");
  refuses(operands(x, {3}, {2}), "strides", attrs_of({{"strides", int_list{0}}}));
  CHECK_THROWS_AS(run_op("Col2Im", 18, {}, operands(x, {int64_t{1} << 62}, {2})), error);
}
