// Range plus a number that the host knows (a past's length) is a Range that begins there; views between the two keep
// their place.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// The Range whose elements `v` has, -1 if it is not a view of one that is for nothing else.
node_id range_of(const graph_editor& e, value_id v) {
  while (v != no_value && e.used_once(v)) {
    const node_id n = e.producer(v);
    if (n < 0 || is_op(e.at(n), "Range"))
      return n;
    if (e.at(n).def->alias != aliasing::view)
      break;
    v = e.at(n).inputs[0];
  }
  return -1;
}

/// The only element of an integer that the host knows.
std::optional<dim> known_number(const graph_editor& e, value_id v) {
  if (v == no_value || !(types::integers & set_of(e.val(v).type)))
    return std::nullopt;
  if (e.val(v).known && e.val(v).known->size() == 1)
    return e.val(v).known->front();
  if (const auto elements = known_integers(e, v); elements && elements->size() == 1)
    return dim(elements->front());
  return std::nullopt;
}

/// Whether sums of such numbers stay far from where int64 ends.
bool is_moderate(const dim& d) {
  return !d.is_constant() || std::abs(d.constant()) < int64_t{1} << 40;
}

bool shift_at(graph_editor& e, node_id n) {
  for (const size_t i : {0, 1}) {
    const node call = e.at(n);
    const value_id shifted = call.inputs[i];
    const auto number = known_number(e, call.inputs[1 - i]);
    const node_id range = number && same_dims(e, shifted, call.outputs[0]) ? range_of(e, shifted) : -1;
    if (range < 0 || e.val(shifted).type != dtype::int64)
      continue;
    const node old = e.at(range);
    const auto start = known_number(e, old.inputs[0]), limit = known_number(e, old.inputs[1]);
    if (!start || !limit || !known_number(e, old.inputs[2]) || !is_moderate(*start) || !is_moderate(*limit) ||
        !is_moderate(*number))
      continue;
    const auto known = [&](const char* end, const dim& at) { return e.add_known(call.name + end, {at + *number}); };
    const value_id out = e.add_result(call.name + "/elements");
    const value_id from = known("/start", *start), to = known("/limit", *limit);
    e.add_node(make_node(call.name + "/range", "", "Range", {from, to, old.inputs[2]}, {out}));
    return e.replace(n, make_reshape(e, call.name, out, *e.val(call.outputs[0]).dims, call.outputs[0]));
  }
  return false;
}

} // namespace

bool shift_ranges(graph_editor& e) {
  return each_present_node(
      e, [&](node_id n) { return is_op(e.at(n), "Add") && e.at(n).inputs.size() == 2 && shift_at(e, n); });
}

} // namespace troupe
