// GPU kernel of CumSum and CumProd along an axis that the host knows (shaders/cumulative.comp).
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "ops/op.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

launch_lists cumulative_launches(const gpu_call& call, bool product) {
  constexpr uint32_t threads = 128;
  constexpr int64_t segment = 16; // elements that one invocation adds up by itself
  const operand& x = call.inputs.at(0);
  const auto variant = arithmetic_variant(x.type, call.gpu);
  const tensor known = known_elements(call.inputs.at(1));
  if (!variant || x.type == dtype::boolean || !known.defined() || known.size() != 1 ||
      call.gpu.max_group_size < threads)
    return {};
  const size_t axis = normalize_axis(to_int64(known.view())[0], x.dims.size());
  const row_extent e{volume(std::span(x.dims).first(axis)), x.dims[axis], volume(std::span(x.dims).subspan(axis + 1))};
  const auto segments = std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(e.size / segment, 1, threads)));
  const auto lanes = static_cast<uint32_t>(threads / segments);
  launch_builder b(call, "cumulative");
  launch& l = b.add("cumulative." + *variant, flat_groups(e.rows(), lanes, call.gpu), {b.in(0), b.out(0)});
  l.constants = {threads, lanes, call.attrs.integer("exclusive", 0) != 0, call.attrs.integer("reverse", 0) != 0,
                 product};
  l.params = words_of(shader::row_extent{.rows = e.rows(), .size = e.size, .inner = e.inner});
  return single_list(b);
}

} // namespace

extern constinit const launch_rows cumulative_rules = {
    {"", "CumProd", [](const gpu_call& c) { return cumulative_launches(c, true); }},
    {"", "CumSum", [](const gpu_call& c) { return cumulative_launches(c, false); }},
};

} // namespace troupe
