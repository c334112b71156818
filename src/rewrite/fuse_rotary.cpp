// Rotary position embedding (RoPE): x · cos + concat(−x[…, D/2:], x[…, :D/2]) · sin becomes troupe.Rotary, ahead of the
// transpose that brings the heads forward (which attention then absorbs).
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// Returns x if `v` = x[…, begin : begin + D/2] along the last of x's four axes.
value_id half_of(const graph_editor& e, value_id v, bool upper) {
  const node_id n = produced_by(e, v, "Slice");
  if (n < 0 || e.at(n).inputs.size() < 4)
    return no_value;
  const node& call = e.at(n);
  const auto& dims = e.val(call.inputs[0]).dims;
  if (!dims || dims->size() != 4 || !dims->back().is_constant() || dims->back().constant() % 2 != 0)
    return no_value;
  const auto starts = known_integers(e, call.inputs[1]), ends = known_integers(e, call.inputs[2]),
             axes = known_integers(e, call.inputs[3]);
  if (!starts || !ends || !axes || starts->size() != 1 || ((*axes)[0] != 3 && (*axes)[0] != -1))
    return no_value;
  if (input_of(call, 4) != no_value && !all_equal(e.val(call.inputs[4]), 1))
    return no_value;
  const int64_t width = dims->back().constant();
  const bool from_start = (*starts)[0] == 0 && (*ends)[0] == width / 2;
  const bool to_end = (*starts)[0] == width / 2 && (*ends)[0] >= width;
  return (upper ? to_end : from_start) ? call.inputs[0] : no_value;
}

/// Returns x if `v` = concat(−x[…, D/2:], x[…, :D/2]).
value_id rotated(const graph_editor& e, value_id v) {
  const node_id n = produced_by(e, v, "Concat");
  if (n < 0 || e.at(n).inputs.size() != 2)
    return no_value;
  const int64_t axis = e.at(n).attrs.integer("axis", 0);
  const node_id negation = produced_by(e, e.at(n).inputs[0], "Neg");
  if ((axis != 3 && axis != -1) || negation < 0)
    return no_value;
  const value_id x = half_of(e, e.at(negation).inputs[0], true);
  return x != no_value && half_of(e, e.at(n).inputs[1], false) == x ? x : no_value;
}

/// Returns `angle` [B or 1, 1, S, D] as [B or 1, S, D], adding a Reshape if no value has these dims yet; no_value if it
/// has other dims.
value_id angles(graph_editor& e, value_id angle, const symbolic_shape& x) {
  if (angle == no_value)
    return no_value;
  const auto& dims = e.val(angle).dims;
  if (!dims || dims->size() != 4 || !(*dims)[1].is(1) || !((*dims)[2] == x[2]) || !((*dims)[3] == x[3]) ||
      !((*dims)[0].is(1) || (*dims)[0] == x[0]))
    return no_value;
  const symbolic_shape wanted{(*dims)[0], (*dims)[2], (*dims)[3]};
  for (auto view : {"Reshape", "Unsqueeze"})
    if (const node_id n = produced_by(e, angle, view); n >= 0)
      if (const auto& source = e.val(e.at(n).inputs[0]).dims; source && *source == wanted)
        return e.at(n).inputs[0];
  const value_id out = e.add_result(e.val(angle).name + "/flat");
  e.add_node(make_reshape(e, e.val(out).name, angle, wanted, out));
  return out;
}

struct match {
  value_id x, cos, sin;
};

/// Finds the operands of the sum `n`.
std::optional<match> find(const graph_editor& e, node_id n) {
  for (size_t i : {0, 1}) {
    const node_id plain = produced_by(e, e.at(n).inputs[i], "Mul"),
                  turned = produced_by(e, e.at(n).inputs[1 - i], "Mul");
    if (plain < 0 || turned < 0)
      continue;
    for (size_t k : {0, 1}) {
      const value_id x = rotated(e, e.at(turned).inputs[k]);
      for (size_t j : {0, 1})
        if (x != no_value && e.at(plain).inputs[j] == x)
          return match{x, e.at(plain).inputs[1 - j], e.at(turned).inputs[1 - k]};
    }
  }
  return std::nullopt;
}

bool fuse_rotary_at(graph_editor& e, node_id n) {
  const auto m = find(e, n);
  if (!m || m->cos == no_value || !e.val(m->x).dims || !same_dims(e, m->x, e.at(n).outputs[0]) ||
      e.val(m->x).type != e.val(m->cos).type)
    return false;
  const symbolic_shape dims = *e.val(m->x).dims;
  const value_id out = e.at(n).outputs[0];
  const std::string name = e.at(n).name + "+rotary";
  const value_id cos = angles(e, m->cos, dims), sin = cos == no_value ? no_value : angles(e, m->sin, dims);
  if (sin == no_value)
    return false;
  const node_id swap = produced_by(e, m->x, "Transpose");
  if (swap < 0 || permutation_of(e.at(swap), 4) != std::vector<int64_t>{0, 2, 1, 3}) {
    return e.replace(n, make_node(name, "troupe", "Rotary", {m->x, cos, sin}, {out}));
  }
  // rotary(transpose(u)) = transpose(rotary(u))
  const value_id u = e.at(swap).inputs[0];
  const value_id inner = e.add_result(e.val(out).name + "/bshd");
  attributes layout, perm;
  layout.set("layout", std::string("bshd"));
  perm.set("perm", std::vector<int64_t>{0, 2, 1, 3});
  e.add_node(make_node(name, "troupe", "Rotary", {u, cos, sin}, {inner}, std::move(layout)));
  return e.replace(n, make_node(name + "/transpose", "", "Transpose", {inner}, {out}, std::move(perm)));
}

} // namespace

bool fuse_rotary(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return is_op(e.at(n), "Add") && fuse_rotary_at(e, n); });
}

} // namespace troupe
