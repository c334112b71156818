// DynamicTimeWarping of com.microsoft: the cheapest way through a matrix of costs (Sakoe and Chiba, "Dynamic
// programming algorithm optimization for spoken word recognition", 1978), as ONNX Runtime breaks its ties.
//
// x is [M, N] or [1, M, N], y [2, L] in int32: rows and columns of the elements on the way from the first to the last,
// each a step down, right or both beyond the one before. Of steps that cost the same a step right is taken, unless one
// of the others is cheaper than both.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

void infer_warping(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  if (x.size() != 2 && x.size() != 3)
    fail(errc::invalid_model, "costs of shape {}; [M, N] or [1, M, N] is needed", to_string(x));
  if (x.size() == 3 && x[0].is_constant() && !x[0].is(1))
    fail(errc::invalid_model, "costs of shape {}: only one matrix at a time can be warped", to_string(x));
  c.set_output(0, dtype::int32, {2, c.data_dependent(0, 1)});
}

enum class warping_step : uint8_t { both, down, right };

/// Returns how the cheapest way comes to each element of a matrix of costs.
std::vector<warping_step> cheapest_steps(const float* costs, int64_t rows, int64_t columns) {
  constexpr float none = std::numeric_limits<float>::infinity();
  std::vector<warping_step> steps(static_cast<size_t>(rows * columns));
  std::vector<float> above(static_cast<size_t>(columns) + 1, none), line(above); // element j + 1: of column j
  above[0] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    line[0] = none;
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<size_t>(j);
      const float both = above[at], down = above[at + 1], right = line[at];
      auto step = warping_step::right;
      if (both < down && both < right)
        step = warping_step::both;
      else if (down < both && down < right)
        step = warping_step::down;
      const float before = step == warping_step::both ? both : step == warping_step::down ? down : right;
      line[at + 1] = before + costs[i * columns + j];
      steps[static_cast<size_t>(i * columns + j)] = step;
    }
    std::swap(above, line);
  }
  return steps;
}

void dynamic_time_warping(kernel_context& c) {
  const std::span<const int64_t> dims = c.input(0).dims;
  if (dims.size() == 3 && dims[0] != 1)
    fail(errc::invalid_input, "{} matrices of costs; only one at a time can be warped", dims[0]);
  const int64_t rows = dims[dims.size() - 2], columns = dims[dims.size() - 1];
  if (std::max(rows, columns) > std::numeric_limits<int32_t>::max())
    fail(errc::unsupported, "a matrix of {} x {} costs: places are int32", rows, columns);
  const std::vector<warping_step> steps = cheapest_steps(c.input(0).as<float>(), rows, columns);
  std::vector<std::pair<int64_t, int64_t>> way; // from its end
  for (int64_t i = rows - 1, j = columns - 1; i >= 0 && j >= 0;) {
    way.emplace_back(i, j);
    const warping_step step = steps[static_cast<size_t>(i * columns + j)];
    i -= step != warping_step::right;
    j -= step != warping_step::down;
  }
  const int64_t length = std::ssize(way);
  auto* y = c.allocate(0, {2, length}).as<int32_t>();
  for (int64_t k = 0; k < length; ++k) {
    const auto [i, j] = way[static_cast<size_t>(length - 1 - k)];
    y[k] = static_cast<int32_t>(i);
    y[length + k] = static_cast<int32_t>(j);
  }
}

constexpr auto dynamic_time_warping_rows = std::to_array<op_def>({
    op_row("DynamicTimeWarping", 1, infer_warping, dynamic_time_warping,
           {.domain = microsoft,
            .types = set_of(dtype::float32),
            .hides_elements = true,
            .cost = cost_per_input<4>,
            .mixes = "looks for one path through all rows"}),
});

} // namespace

extern constinit const op_table contrib_dynamic_time_warping_ops = dynamic_time_warping_rows;

} // namespace troupe
