// GPU launch of RoiAlign (shaders/roi_align.comp): an invocation an element.
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

namespace troupe {
namespace {

launch_lists launch_roi_align(const gpu_call& call, std::string_view usual_coordinates) {
  const operand &x = call.inputs.at(0), &y = call.outputs.at(0);
  const auto variant = float_variant(x.type, call.gpu);
  if (!variant || call.inputs.at(1).type != x.type || (x.size() == 0 && y.size() > 0))
    return {};
  const bool half_pixel =
      call.attrs.text("coordinate_transformation_mode", std::string(usual_coordinates)) == "half_pixel";
  launch_builder b(call, "roi_align");
  launch& l =
      b.add("roi_align." + *variant, flat_groups(y.size(), 128, call.gpu), {b.in(0), b.in(1), b.in(2), b.out(0)});
  l.constants = {call.attrs.text("mode", "avg") == "max" ? 1u : 0u, half_pixel ? 1u : 0u};
  l.params = words_of(shader::roi_align{.count = y.size(),
                                        .images = x.dims[0],
                                        .channels = x.dims[1],
                                        .height = x.dims[2],
                                        .width = x.dims[3],
                                        .bins_high = y.dims[2],
                                        .bins_wide = y.dims[3],
                                        .ratio = call.attrs.integer("sampling_ratio", 0),
                                        .scale = call.attrs.real("spatial_scale", 1)});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows roi_align_rules = {
    {"", "RoiAlign", [](const gpu_call& c) { return launch_roi_align(c, "output_half_pixel"); }},
    {"", "RoiAlign", [](const gpu_call& c) { return launch_roi_align(c, "half_pixel"); }, 16},
};

} // namespace troupe
