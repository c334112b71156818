// troupe.ToFloat16: float32 → float16 that keeps finite what is finite.
//
// Y = X rounded to the nearest float16; finite X beyond ±65504 becomes ±65504, where ai.onnx's Cast gives an infinity.
// Infinities, NaN and signed zeros are kept. Made by the rewrite for `--precision fp16`.
#include "base/parallel.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr float largest_float16 = 65504;

void infer_to_float16(infer_context& c) {
  c.set_output(0, dtype::float16, c.dims(0));
}

void to_float16_reference(kernel_context& c) {
  const float* x = c.input(0).as<float>();
  float16* y = c.output(0).as<float16>();
  parallel_for(c.input(0).size(), elementwise_grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      y[i] = float16(std::isfinite(x[i]) ? std::clamp(x[i], -largest_float16, largest_float16) : x[i]);
  });
}

constexpr auto to_float16_rows = std::to_array<op_def>({
    op_row("ToFloat16", 1, infer_to_float16, to_float16_reference,
           {.domain = "troupe", .types = set_of(dtype::float32), .layouts = layout_support::agnostic}),
});

} // namespace

std::span<const op_def> to_float16_ops() {
  return to_float16_rows;
}

} // namespace troupe
