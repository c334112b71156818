// troupe.ToFloat16: float32 → float16 that keeps finite what is finite.
//
// Y = X rounded to the nearest float16; finite X beyond ±65504 becomes ±65504, where ai.onnx's Cast gives an infinity.
// Infinities, NaN and signed zeros are kept. Made by the rewrite for `--precision fp16`.
#include "ops/composed/to_float16.hpp"

#include "base/parallel.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"
#include "tensor/half_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

void infer_to_float16(infer_context& c) {
  c.set_output(0, dtype::float16, c.dims(0));
}

void to_float16_reference(kernel_context& c) {
  const float* x = c.input(0).as<float>();
  float16* y = c.output(0).as<float16>();
  parallel_for(c.input(0).size(), elementwise_grain,
               [&](int64_t begin, int64_t end) { to_float16_row(x + begin, y + begin, end - begin); });
}

constexpr auto to_float16_rows = std::to_array<op_def>({
    op_row("ToFloat16", 1, infer_to_float16, to_float16_reference,
           {.domain = "troupe", .types = set_of(dtype::float32), .layouts = layout_support::agnostic}),
});

} // namespace

void to_float16_row(const float* from, float16* to, int64_t n) {
  std::array<float, 256> finite;
  for (int64_t at = 0; at < n; at += std::ssize(finite)) {
    const int64_t count = std::min<int64_t>(std::ssize(finite), n - at);
    for (int64_t i = 0; i < count; ++i) {
      const float v = from[at + i], clamped = std::min(std::max(v, -largest_float16), largest_float16);
      finite[static_cast<size_t>(i)] = std::abs(v) <= std::numeric_limits<float>::max() ? clamped : v;
    }
    narrow_row(finite.data(), to + at, count);
  }
}

extern constinit const op_table composed_to_float16_ops = to_float16_rows;

} // namespace troupe
