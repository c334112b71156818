// GPU kernels of ArgMax and ArgMin (shaders/arg_reduce.comp).
#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "launch/row_team.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

launch_lists arg_launches(const gpu_call& call, bool largest) {
  const operand& x = call.inputs.at(0);
  const auto variant = arithmetic_variant(x.type, call.gpu);
  if (!variant || x.type == dtype::boolean)
    return {};
  const bool subgroups =
      variant == "f32" || variant == "f16" || variant == "i32"; // other types have plain kernels only
  const size_t axis = normalize_axis(call.attrs.integer("axis", 0), x.dims.size());
  const row_extent e{volume(std::span(x.dims).first(axis)), x.dims[axis], volume(std::span(x.dims).subspan(axis + 1))};
  if (e.size == 0)
    return {};
  launch_lists lists;
  for (const row_team& team : subgroups ? row_teams(e, 1, call.gpu) : std::vector{choose_team(e, 1, true, call.gpu)}) {
    launch_builder b(call, team.plain ? "arg_reduce.plain" : "arg_reduce");
    launch& l = b.add(fmt::format("arg_reduce.{}{}", *variant, team.plain ? "_plain" : ""),
                      team.groups(e.rows(), call.gpu), {b.in(0), b.out(0)});
    l.constants = team.constants({largest, call.attrs.integer("select_last_index", 0) != 0});
    l.params = words_of(shader::row_extent{.rows = e.rows(), .size = e.size, .inner = e.inner});
    if (auto list = b.finish())
      lists.push_back(std::move(*list));
  }
  return lists;
}

} // namespace

extern constinit const launch_rows arg_reduce_rules = {
    {"", "ArgMax", [](const gpu_call& c) { return arg_launches(c, true); }},
    {"", "ArgMin", [](const gpu_call& c) { return arg_launches(c, false); }},
};

} // namespace troupe
