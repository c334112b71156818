// GPU launch of Col2Im (shaders/col2im.comp): an invocation an element of the images.
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "ops/window.hpp"

#include <algorithm>

namespace troupe {
namespace {

launch_lists col2im_launches(const gpu_call& call) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = arithmetic_variant(x.type, call.gpu);
  const tensor image = known_elements(call.inputs.at(1)), block_shape = known_elements(call.inputs.at(2));
  if (!variant || !image.defined() || !block_shape.defined())
    return {};
  window_spec spec = parse_window(call.attrs, to_int64(block_shape.view()));
  spec.mode = auto_pad::notset; // not attributes of Col2Im
  spec.ceil = false;
  const auto [d, h, w] = bind_window(spec, to_int64(image.view()));
  launch_builder b(call, "col2im");
  launch& l = b.add("col2im." + *variant, flat_groups(y.size(), 128, call.gpu), {b.in(0), b.out(0)});
  l.params = words_of(shader::col2im{.count = y.size(),
                                     .taps = d.kernel * h.kernel * w.kernel,
                                     .positions = d.out * h.out * w.out,
                                     .in_size = {d.in, h.in, w.in},
                                     .out_size = {d.out, h.out, w.out},
                                     .kernel = {d.kernel, h.kernel, w.kernel},
                                     .stride = {d.stride, h.stride, w.stride},
                                     .dilation = {d.dilation, h.dilation, w.dilation},
                                     .pad = {d.pad_begin, h.pad_begin, w.pad_begin}});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows col2im_rules = {
    {"", "Col2Im", col2im_launches},
};

} // namespace troupe
