// GPU launches of MaxUnpool: zeros (shaders/fill.comp), then every element to its place (shaders/max_unpool.comp).
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "ops/window.hpp"
#include "tensor/shape.hpp"

namespace troupe {
namespace {

launch_lists max_unpool_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = movement_variant(x.type, call.gpu);
  const window_spec spec = parse_window(call.attrs, call.attrs.integers("kernel_shape"));
  if (!variant || spec.rank() + 2 != x.dims.size())
    return {};
  const shape strides = strides_of(y.dims);
  shader::max_unpool block{.count = x.size(), .rank = x.dims.size()};
  int64_t counted = 1;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    int64_t size = x.dims[i];
    if (i >= 2)
      size = (size - 1) * spec.strides[i - 2] + spec.kernel[i - 2] - spec.pads[i - 2] - spec.pads[i - 2 + spec.rank()];
    if (size > y.dims[i]) // the CPU's kernel says what is wrong
      return {};
    block.axes[x.dims.size() - 1 - i] = {size, strides[i]};
    counted *= size;
  }
  block.counted = counted;
  launch_builder b(call, "max_unpool");
  b.add("fill." + *variant, flat_groups(y.size(), 256, call.gpu), {b.out(0)}).params =
      words_of(shader::fill{.count = y.size()});
  b.next_step();
  b.add("max_unpool." + *variant, flat_groups(x.size(), 256, call.gpu), {b.in(0), b.in(1), b.out(0)}).params =
      words_of(block);
  return single_list(b);
}

} // namespace

extern constinit const launch_rows max_unpool_rules = {
    {"", "MaxUnpool", max_unpool_launches},
};

} // namespace troupe
