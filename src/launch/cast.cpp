// GPU launches of Cast and CastLike: shaders/cast.comp, a variant for each pair of element types.
#include "launch/launches.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Types that shaders/cast.comp has variants for.
constexpr dtype_set cast_types = set_of(dtype::float32, dtype::float16, dtype::int64, dtype::int32, dtype::uint32,
                                        dtype::int8, dtype::uint8, dtype::boolean);

} // namespace

launch_lists cast_launches(const gpu_call& call) {
  const dtype from = call.inputs.at(0).type, to = call.outputs.at(0).type;
  const auto source = arithmetic_variant(from, call.gpu), target = arithmetic_variant(to, call.gpu);
  if (!(cast_types & set_of(from)) || !(cast_types & set_of(to)) || !source || !target)
    return {};
  launch_builder b(call, "cast");
  const int64_t in_size = bytes_of(from, 1), out_size = bytes_of(to, 1), count = call.outputs[0].size();
  const int64_t alignment = call.gpu.binding_alignment;
  const int64_t most = call.gpu.max_binding_bytes / std::max(in_size, out_size) / alignment * alignment;
  for (int64_t begin = 0; begin < count; begin += most) { // a launch a part that a binding can hold
    const int64_t part = std::min(most, count - begin);
    launch& l = b.add(
        "cast." + *source + "_" + *target, flat_groups(part, 256 * 4, call.gpu),
        {part_of(b.in(0), begin * in_size, part * in_size), part_of(b.out(0), begin * out_size, part * out_size)});
    l.constants = {from == dtype::boolean ? 1u : 0u, to == dtype::boolean ? 1u : 0u};
    l.params = words_of(shader::element_count{.count = part});
  }
  return single_list(b);
}

} // namespace troupe
