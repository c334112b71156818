// GPU kernels of reductions (shaders/reduce.comp): one launch, or two if long results are too few to fill the device.
#include "ops/onnx/reduce.hpp"
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "launch/parameters.hpp"
#include "launch/row_walk.hpp"

namespace troupe {
namespace {

constexpr bool numbered_alike() {
  using enum reduce_kind;
  using namespace shader;
  return is(sum, reduce_sum) && is(mean, reduce_mean) && is(maximum, reduce_maximum) && is(minimum, reduce_minimum) &&
         is(product, reduce_product) && is(l1, reduce_l1) && is(l2, reduce_l2) && is(log_sum, reduce_log_sum) &&
         is(log_sum_exp, reduce_log_sum_exp) && is(sum_square, reduce_sum_square);
}
static_assert(numbered_alike());

/// Whether integers of a GPU give the same as the reference's, which are taken modulo 2^64 (or are double).
bool suits_integers(reduce_kind kind, dtype type) {
  switch (kind) {
    case reduce_kind::maximum:
    case reduce_kind::minimum: return true;
    case reduce_kind::sum:
    case reduce_kind::product:
    case reduce_kind::l1:
    case reduce_kind::sum_square: return type != dtype::boolean;
    default: return false;
  }
}

std::optional<std::vector<int64_t>> axes_of(const gpu_call& call, bool axes_input) {
  if (!axes_input)
    return call.attrs.integers("axes", {});
  if (!call.has_input(1))
    return std::vector<int64_t>{};
  const tensor axes = known_elements(call.inputs[1]);
  return axes.defined() ? std::optional(to_int64(axes.view())) : std::nullopt;
}

std::optional<launch_list> reduce(const gpu_call& call, reduce_kind kind, const std::string& variant,
                                  const row_walk& walk, const row_team& team) {
  launch_builder b(call, team.plain ? "reduce.plain" : "reduce");
  const std::string shader = fmt::format("reduce.{}{}", variant, team.plain ? "_plain" : "");
  const launch_binding states = walk.parts > 1 ? b.scratch(walk.results * walk.parts * 8) : b.out(0);
  const auto add = [&](const row_team& t, uint32_t phase, launch_binding y, launch_binding scratch) {
    const bool merges = phase == shader::reduce_merge;
    launch& l = b.add(shader, t.groups(walk.results * (merges ? 1 : walk.parts), call.gpu), {b.in(0), y, scratch});
    l.constants = t.constants({static_cast<uint32_t>(kind), phase});
    l.params = walk.parameters(0, merges);
  };
  if (walk.parts == 1) {
    add(team, shader::reduce_all, b.out(0), states);
  } else {
    add(team, shader::reduce_parts, written(states), written(states));
    b.next_step();
    const row_extent merged{1, walk.parts, walk.results};
    add(choose_team(merged, 1, team.plain, call.gpu), shader::reduce_merge, b.out(0), states);
  }
  return b.finish();
}

/// `axes_input`: axes are input 1, not an attribute.
launch_lists reduce_launches(const gpu_call& call, reduce_kind kind, bool axes_input) {
  const operand& x = call.inputs.at(0);
  const bool floats = (types::floats & set_of(x.type)) != 0;
  const auto variant = arithmetic_variant(x.type, call.gpu);
  const auto axes = axes_of(call, axes_input);
  if (!variant || !axes || (!floats && !suits_integers(kind, x.type)))
    return {};
  const bool noop = axes_input && call.attrs.integer("noop_with_empty_axes", 0) != 0;
  auto walk = walk_rows(x, reduced_axes(*axes, x.dims.size(), noop));
  if (!walk)
    return {};
  const bool teams_of_floats = float_variant(x.type, call.gpu).has_value();
  if (teams_of_floats)
    cut_into_parts(*walk, call.gpu);
  launch_lists lists;
  const std::vector<row_team> teams = teams_of_floats ? row_teams(walk->extent(), 1, call.gpu)
                                                      : std::vector{choose_team(walk->extent(), 1, true, call.gpu)};
  for (row_team team : teams) {
    team.plain = team.plain || !teams_of_floats;
    if (auto list = reduce(call, kind, *variant, *walk, team))
      lists.push_back(std::move(*list));
  }
  return lists;
}

template <reduce_kind Kind, bool AxesInput>
launch_lists reduce_rule(const gpu_call& call) {
  return reduce_launches(call, Kind, AxesInput);
}

} // namespace

extern constinit const launch_rows reduce_rules = {
    {"", "ReduceL1", reduce_rule<reduce_kind::l1, false>},
    {"", "ReduceL1", reduce_rule<reduce_kind::l1, true>, 18},
    {"", "ReduceL2", reduce_rule<reduce_kind::l2, false>},
    {"", "ReduceL2", reduce_rule<reduce_kind::l2, true>, 18},
    {"", "ReduceLogSum", reduce_rule<reduce_kind::log_sum, false>},
    {"", "ReduceLogSum", reduce_rule<reduce_kind::log_sum, true>, 18},
    {"", "ReduceLogSumExp", reduce_rule<reduce_kind::log_sum_exp, false>},
    {"", "ReduceLogSumExp", reduce_rule<reduce_kind::log_sum_exp, true>, 18},
    {"", "ReduceMax", reduce_rule<reduce_kind::maximum, false>},
    {"", "ReduceMax", reduce_rule<reduce_kind::maximum, true>, 18},
    {"", "ReduceMean", reduce_rule<reduce_kind::mean, false>},
    {"", "ReduceMean", reduce_rule<reduce_kind::mean, true>, 18},
    {"", "ReduceMin", reduce_rule<reduce_kind::minimum, false>},
    {"", "ReduceMin", reduce_rule<reduce_kind::minimum, true>, 18},
    {"", "ReduceProd", reduce_rule<reduce_kind::product, false>},
    {"", "ReduceProd", reduce_rule<reduce_kind::product, true>, 18},
    {"", "ReduceSum", reduce_rule<reduce_kind::sum, false>},
    {"", "ReduceSum", reduce_rule<reduce_kind::sum, true>, 13},
    {"", "ReduceSumSquare", reduce_rule<reduce_kind::sum_square, false>},
    {"", "ReduceSumSquare", reduce_rule<reduce_kind::sum_square, true>, 18},
};

} // namespace troupe
