// GPU launch of GridSample (shaders/grid_sample.comp): an invocation an element.
#include "ops/onnx/grid_sample.hpp"
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

static_assert(shader::is(sample_mode::nearest, shader::grid_nearest) &&
              shader::is(sample_mode::linear, shader::grid_linear) &&
              shader::is(sample_mode::cubic, shader::grid_cubic) &&
              shader::is(sample_padding::zeros, shader::grid_zeros) &&
              shader::is(sample_padding::border, shader::grid_border) &&
              shader::is(sample_padding::reflection, shader::grid_reflection) &&
              shader::is(sample_padding::border_taps, shader::grid_border_taps));

launch_lists grid_sample_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &grid = call.inputs.at(1), &y = call.outputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  const sampling s = parse_sampling(call.attrs);
  const auto is_long = [](int64_t size) { return size >= 1 << 20; }; // places are float32 numbers
  if (!variant || grid.type != x.type || (x.size() == 0 && y.size() > 0) ||
      std::any_of(x.dims.begin() + 2, x.dims.end(), is_long))
    return {};
  const size_t axes = x.dims.size() - 2;
  shader::grid_sample block{.count = y.size(),
                            .channels = x.dims[1],
                            .places = volume(std::span(grid.dims).subspan(1, axes)),
                            .axes = axes,
                            .size = {1, 1, 1, 0}};
  for (size_t i = 0; i < axes; ++i)
    block.size[3 - axes + i] = x.dims[2 + i];
  launch_builder b(call, "grid_sample");
  launch& l = b.add("grid_sample." + *variant, flat_groups(y.size(), 128, call.gpu), {b.in(0), b.in(1), b.out(0)});
  l.constants = {static_cast<uint32_t>(s.mode), static_cast<uint32_t>(s.padding), s.align_corners ? 1u : 0u};
  l.params = words_of(block);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows grid_sample_rules = {
    {"", "GridSample", grid_sample_launches},
};

} // namespace troupe
