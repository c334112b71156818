// GPU kernel of troupe.ToFloat16 (shaders/to_float16.comp).
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

namespace troupe {
namespace {

/// One launch a part that a binding can hold.
launch_lists to_float16_launches(const gpu_call& call) {
  if (!call.gpu.float16)
    return {};
  launch_builder b(call, "to_float16");
  const int64_t count = call.outputs[0].size();
  const int64_t most = call.gpu.max_binding_bytes / 4 / call.gpu.binding_alignment * call.gpu.binding_alignment;
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t part = std::min(most, count - begin);
    launch& l = b.add("to_float16.f16", flat_groups(part, 256, call.gpu),
                      {part_of(b.in(0), begin * 4, part * 4), part_of(b.out(0), begin * 2, part * 2)});
    l.params = words_of(shader::element_count{.count = part});
  }
  return single_list(b);
}

} // namespace

extern constinit const launch_rows to_float16_rules = {
    {"troupe", "ToFloat16", to_float16_launches},
};

} // namespace troupe
