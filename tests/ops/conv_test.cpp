#include "ops/run_op.hpp"
#include "ops/window.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("Conv adds the bias and honours strides and asymmetric padding", "[ops]") {
  // x = 0 … 8 as 3 × 3, padded by one row above: windows of 2 × 2 ones at stride 2 × 1.
  const auto attrs = attrs_of({{"strides", int_list{2, 1}}, {"pads", int_list{1, 0, 0, 0}}});
  const tensor y =
      run_op("Conv", 11, attrs, {ramp({1, 1, 3, 3}), floats({1, 1, 2, 2}, {1, 1, 1, 1}), floats({1}, {10})})[0];
  CHECK(y.dims() == shape{1, 1, 2, 2});
  CHECK(elements(y) == std::vector<double>{11, 13, 30, 34});
}

TEST_CASE("Conv steps over columns by its stride", "[ops]") {
  // x = 0 … 11 as 3 × 4: every second column of every row.
  const auto attrs = attrs_of({{"strides", int_list{1, 2}}});
  const tensor y = run_op("Conv", 11, attrs, {ramp({1, 1, 3, 4}), floats({1, 1, 1, 1}, {1})})[0];
  CHECK(elements(y) == std::vector<double>{0, 2, 4, 6, 8, 10});
}

TEST_CASE("Conv keeps groups apart", "[ops]") {
  const tensor w = floats({2, 1, 1}, {2, -1});
  const tensor y = run_op("Conv", 1, attrs_of({{"group", int64_t{2}}}), {floats({1, 2, 2}, {1, 2, 3, 4}), w})[0];
  CHECK(elements(y) == std::vector<double>{2, 4, -3, -4});
}

TEST_CASE("Conv in three dimensions with dilation equals a direct sum", "[ops]") {
  const tensor x = ramp({2, 2, 4, 5, 6}, 0.25f), w = ramp({3, 2, 2, 1, 3}, -0.5f);
  const auto attrs = attrs_of({{"dilations", int_list{2, 1, 2}}, {"pads", int_list{1, 0, 2, 0, 1, 1}}});
  const tensor y = run_op("Conv", 22, attrs, {x, w})[0];
  REQUIRE(y.dims() == shape{2, 3, 3, 6, 5});
  size_t at = 0;
  const auto element = [&](int64_t n, int64_t c, int64_t d, int64_t h, int64_t q) {
    const bool inside = d >= 0 && d < 4 && h >= 0 && h < 5 && q >= 0 && q < 6;
    return inside ? x.values<float>()[static_cast<size_t>((((n * 2 + c) * 4 + d) * 5 + h) * 6 + q)] : 0.f;
  };
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t m = 0; m < 3; ++m)
      for (int64_t d = 0; d < 3; ++d)
        for (int64_t h = 0; h < 6; ++h)
          for (int64_t q = 0; q < 5; ++q) {
            double sum = 0;
            for (int64_t t = 0; t < 12; ++t) // channel, depth tap, width tap
              sum += element(n, t / 6, d - 1 + t / 3 % 2 * 2, h, q - 2 + t % 3 * 2) *
                     w.values<float>()[static_cast<size_t>(m * 12 + t)];
            CHECK(y.values<float>()[at++] == Approx(sum));
          }
}

TEST_CASE("SAME padding puts the odd element where it is asked for", "[ops]") {
  const std::vector<tensor> operands{floats({1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 2}, {1, 10})};
  const auto run = [&](const char* mode) {
    return elements(run_op("Conv", 11, attrs_of({{"auto_pad", std::string(mode)}}), operands)[0]);
  };
  CHECK(run("SAME_UPPER") == std::vector<double>{21, 32, 43, 4});
  CHECK(run("SAME_LOWER") == std::vector<double>{10, 21, 32, 43});
  CHECK(run("VALID") == std::vector<double>{21, 32, 43});
}

TEST_CASE("float16 convolution accumulates in float", "[ops]") {
  // 4096 ones: a float16 sum would stop at 2048.
  tensor x(dtype::float16, {1, 4096, 1}), w(dtype::float16, {1, 4096, 1});
  for (tensor* t : {&x, &w})
    std::fill_n(t->mutable_data<float16>(), 4096, float16(1.f));
  CHECK(elements(run_op("Conv", 11, {}, {x, w})[0]) == std::vector<double>{4096});
}

TEST_CASE("Conv refuses operands that do not fit", "[ops]") {
  const tensor x = ramp({1, 2, 3}), w = ramp({1, 2, 2});
  const auto refuses = [&](const attributes& attrs, std::vector<tensor> inputs) {
    CHECK_THROWS_AS(run_op("Conv", 11, attrs, std::move(inputs)), error);
  };
  refuses({}, {x, ramp({1, 2, 4})});                      // kernel larger than the input
  refuses({}, {x, ramp({1, 3, 2})});                      // channels differ
  refuses({}, {x, w, ramp({2})});                         // bias of the wrong length
  refuses(attrs_of({{"strides", int_list{0}}}), {x, w});  // zero stride
  refuses(attrs_of({{"pads", int_list{-1, 0}}}), {x, w}); // negative padding
  refuses(attrs_of({{"pads", int_list{1}}}), {x, w});     // one pad for two sides
  refuses(attrs_of({{"dilations", int_list{int64_t{1} << 40}}}), {x, w});
  refuses(attrs_of({{"kernel_shape", int_list{3}}}), {x, w}); // not the weights' shape
  refuses(attrs_of({{"group", int64_t{0}}}), {x, w});
  refuses(attrs_of({{"auto_pad", std::string("MIRROR")}}), {x, w});
}

TEST_CASE("Output sizes follow symbolic input sizes", "[ops]") {
  window_spec spec = parse_window(attrs_of({{"strides", int_list{2}}, {"pads", int_list{1, 1}}}), {3});
  const dim out = window_output(spec, 0, dim::symbol("n"));
  CHECK(out.evaluate({{"n", 7}}) == 4);
  CHECK(out.evaluate({{"n", 8}}) == 4);
  spec.ceil = true;
  CHECK(window_output(spec, 0, dim::symbol("n")).evaluate({{"n", 8}}) == 5);
  // The last window would start after the input: it is dropped.
  const window_spec wide = parse_window(attrs_of({{"strides", int_list{3}}, {"ceil_mode", int64_t{1}}}), {1});
  CHECK(window_output(wide, 0, dim::symbol("n")).evaluate({{"n", 3}}) == 1);
}

TEST_CASE("ConvTranspose spreads inputs and derives its padding from the output shape", "[ops]") {
  const tensor x = floats({1, 1, 3}, {1, 2, 3}), w = floats({1, 1, 2}, {1, 10});
  CHECK(elements(run_op("ConvTranspose", 11, {}, {x, w})[0]) == std::vector<double>{1, 12, 23, 30});
  const auto strided = attrs_of({{"strides", int_list{2}}, {"output_padding", int_list{1}}});
  CHECK(elements(run_op("ConvTranspose", 11, strided, {x, w, floats({1}, {5})})[0]) ==
        std::vector<double>{6, 15, 7, 25, 8, 35, 5});
  const auto shaped = attrs_of({{"output_shape", int_list{3}}, {"auto_pad", std::string("SAME_UPPER")}});
  CHECK(elements(run_op("ConvTranspose", 11, shaped, {x, w})[0]) == std::vector<double>{1, 12, 23});
  // Every other mode cuts the odd element off at the front, VALID too.
  for (const char* mode : {"NOTSET", "SAME_LOWER", "VALID"}) {
    INFO(mode);
    const auto cut = attrs_of({{"output_shape", int_list{3}}, {"auto_pad", std::string(mode)}});
    CHECK(elements(run_op("ConvTranspose", 11, cut, {x, w})[0]) == std::vector<double>{12, 23, 30});
  }
  CHECK_THROWS_AS(run_op("ConvTranspose", 11, attrs_of({{"pads", int_list{3, 3}}}), {x, w}), error);
}

TEST_CASE("ConvTranspose keeps groups apart", "[ops]") {
  const tensor x = floats({1, 2, 2}, {1, 2, 3, 4}), w = floats({2, 2, 1}, {1, 10, 2, 20});
  const tensor y = run_op("ConvTranspose", 11, attrs_of({{"group", int64_t{2}}}), {x, w})[0];
  CHECK(y.dims() == shape{1, 4, 2});
  CHECK(elements(y) == std::vector<double>{1, 2, 10, 20, 6, 8, 60, 80});
}
