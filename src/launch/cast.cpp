// GPU launches of Cast and CastLike: shaders/cast.comp has a variant for each pair of usual element types,
// shaders/convert.comp converts any type into any other, a variant a pair of widths.
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

static_assert(shader::is(dtype::float32, shader::type_float32) && shader::is(dtype::uint8, shader::type_uint8) &&
              shader::is(dtype::int8, shader::type_int8) && shader::is(dtype::uint16, shader::type_uint16) &&
              shader::is(dtype::int16, shader::type_int16) && shader::is(dtype::int32, shader::type_int32) &&
              shader::is(dtype::int64, shader::type_int64) && shader::is(dtype::boolean, shader::type_boolean) &&
              shader::is(dtype::float16, shader::type_float16) && shader::is(dtype::float64, shader::type_float64) &&
              shader::is(dtype::uint32, shader::type_uint32) && shader::is(dtype::uint64, shader::type_uint64) &&
              shader::is(dtype::bfloat16, shader::type_bfloat16));
static_assert(shader::is(dtype::float8e4m3fn, shader::type_e4m3fn) &&
              shader::is(dtype::float8e4m3fnuz, shader::type_e4m3fnuz) &&
              shader::is(dtype::float8e5m2, shader::type_e5m2) &&
              shader::is(dtype::float8e5m2fnuz, shader::type_e5m2fnuz) &&
              shader::is(dtype::uint4, shader::type_uint4) && shader::is(dtype::int4, shader::type_int4));

/// Types that shaders/cast.comp has variants for.
constexpr dtype_set usual_types = set_of(dtype::float32, dtype::float16, dtype::int64, dtype::int32, dtype::uint32,
                                         dtype::int8, dtype::uint8, dtype::boolean);
constexpr dtype_set convertible_types = types::fixed_size | types::float8 | set_of(dtype::uint4, dtype::int4);

/// A kernel for a pair of types.
struct cast_kernel {
  std::string shader;
  std::vector<uint32_t> constants;
  int64_t elements; // of a group
};

std::optional<cast_kernel> usual_kernel(dtype from, dtype to, const gpu_features& gpu) {
  const auto source = arithmetic_variant(from, gpu), target = arithmetic_variant(to, gpu);
  if (!(usual_types & set_of(from)) || !(usual_types & set_of(to)) || !source || !target)
    return std::nullopt;
  return cast_kernel{
      "cast." + *source + "_" + *target, {from == dtype::boolean ? 1u : 0u, to == dtype::boolean ? 1u : 0u}, 256 * 4};
}

/// The variant of convert.comp that holds a type's elements, those of 4 bits in bytes.
std::optional<std::string> width_variant(dtype type, const gpu_features& gpu) {
  const int bits = std::max(bits_of(type), 8);
  if (bits == 64 && !(gpu.int64 && gpu.float64))
    return std::nullopt;
  return (bits == 8 && !gpu.int8) || (bits == 16 && !gpu.float16) ? std::nullopt
                                                                  : std::optional(fmt::format("w{}", bits));
}

std::optional<cast_kernel> any_kernel(dtype from, dtype to, bool saturates, const gpu_features& gpu) {
  if (!(convertible_types & set_of(from)) || !(convertible_types & set_of(to)))
    return std::nullopt;
  const auto source = width_variant(from, gpu), target = width_variant(to, gpu);
  if (!source || !target)
    return std::nullopt;
  return cast_kernel{"convert." + *source + "_" + *target,
                     {static_cast<uint32_t>(from), static_cast<uint32_t>(to), saturates ? 1u : 0u},
                     bits_of(to) < 8 ? 512 : 256};
}

launch_lists cast_launches(const gpu_call& call) {
  const dtype from = call.inputs.at(0).type, to = call.outputs.at(0).type;
  auto kernel = usual_kernel(from, to, call.gpu);
  if (!kernel)
    kernel = any_kernel(from, to, call.attrs.integer("saturate", 1) != 0, call.gpu);
  if (!kernel)
    return {};
  launch_builder b(call, "cast");
  const int64_t count = call.outputs[0].size();
  const int64_t step = 2 * call.gpu.binding_alignment; // elements: whole bytes, and aligned ones
  const int64_t most = call.gpu.max_binding_bytes * 8 / std::max(bits_of(from), bits_of(to)) / step * step;
  for (int64_t begin = 0; begin < count; begin += most) { // a launch a part that a binding can hold
    const int64_t part = std::min(most, count - begin);
    launch& l = b.add(kernel->shader, flat_groups(part, kernel->elements, call.gpu),
                      {part_of(b.in(0), bytes_of(from, begin), bytes_of(from, part)),
                       part_of(b.out(0), bytes_of(to, begin), bytes_of(to, part))});
    l.constants = kernel->constants;
    l.params = words_of(shader::element_count{.count = part});
  }
  return single_list(b);
}

} // namespace

extern constinit const launch_rows cast_rules = {
    {"", "Cast", cast_launches},
    {"", "CastLike", cast_launches},
};

} // namespace troupe
