// Rotary embedding (RoPE) of projections' results becomes part of troupe.Projections, which turns queries and keys
// where it makes them: no dispatch of its own in a decoder's step. A result is rotated as [batch, positions, heads ·
// width] by RotaryEmbedding, or by troupe.Rotary after the Reshape that takes its heads apart.
#include "graph/bodies.hpp"
#include "ops/composed/projections.hpp"
#include "ops/head_layout.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

#include <algorithm>
#include <unordered_set>

namespace troupe {
namespace {

/// Attributes of RotaryEmbedding beside its heads.
constexpr std::array attribute_names{"interleaved", "rotary_embedding_dim"};

/// What rotates a result.
struct rotation {
  node_id at;
  int64_t heads;
  std::vector<value_id> angles; // cosines, sines, perhaps positions

  int64_t attribute(const graph_editor& e, const char* name) const { return e.at(at).attrs.integer(name, 0); }
  bool turns_like(const graph_editor& e, const rotation& other) const {
    return e.at(at).op_type == e.at(other.at).op_type && angles == other.angles &&
           std::ranges::all_of(attribute_names,
                               [&](const char* a) { return attribute(e, a) == other.attribute(e, a); });
  }
};

/// troupe.Rotary of a result [batch, positions, columns] whose heads `n`, a Reshape, takes apart.
std::optional<rotation> rotary_after(const graph_editor& e, node_id n, const symbolic_shape& rows) {
  const value_id heads = e.at(n).outputs[0];
  const node_id at = e.used_once(heads) ? e.only_consumer(heads) : -1;
  if (at < 0 || !is_own(e.at(at), "Rotary") || e.at(at).inputs[0] != heads)
    return std::nullopt;
  const auto& dims = e.val(heads).dims;
  if (!dims || dims->size() != 4 || !((*dims)[0] == rows[0]))
    return std::nullopt;
  // [B, H, 1, D] has its elements in the order of [B, 1, H, D]
  const bool bshd = is_bshd(e.at(at).attrs, "layout");
  const dim &positions = (*dims)[bshd ? 1 : 2], &count = (*dims)[bshd ? 2 : 1];
  if (!(positions == rows[1]) || (!bshd && !positions.is(1)) || !count.is_constant())
    return std::nullopt;
  return rotation{at, count.constant(), {e.at(at).inputs[1], e.at(at).inputs[2]}};
}

/// What rotates result `v` of projections of `rows`, and is alone in reading it.
std::optional<rotation> rotation_of(const graph_editor& e, value_id v, const symbolic_shape& rows) {
  const node_id n = v != no_value && e.used_once(v) ? e.only_consumer(v) : -1;
  if (n < 0 || !e.val(v).dims || e.at(n).inputs[0] != v)
    return std::nullopt;
  const node& call = e.at(n);
  if (is_op(call, "Reshape"))
    return rotary_after(e, n, rows);
  const int64_t heads = call.attrs.integer("num_heads", 0);
  if (!is_op(call, "RotaryEmbedding") || heads < 1)
    return std::nullopt;
  return rotation{n, heads, {call.inputs.begin() + 1, call.inputs.end()}};
}

/// Whether node `n` may be needed for a value of `from`. Gives up, with yes, on values that many nodes make.
bool may_lead_to(const graph_editor& e, node_id n, std::vector<value_id> from) {
  constexpr size_t most = 200;
  std::unordered_set<node_id> seen;
  while (!from.empty()) {
    const node_id maker = e.producer(from.back());
    from.pop_back();
    if (maker == n || seen.size() > most)
      return true;
    if (maker < 0 || !seen.insert(maker).second)
      continue;
    if (has_body(e.at(maker)))
      return true;
    for (const value_id v : e.at(maker).inputs)
      from.push_back(v);
  }
  return false;
}

/// Rotates in projections `n`: result `p` by `found[p]` where there is one; all turn alike.
bool rotate(graph_editor& e, node_id n, const std::vector<std::optional<rotation>>& found, const rotation& like) {
  node turned = e.at(n);
  turned.name += "+rotary";
  turned.attrs.set("rotary", e.at(like.at).op_type);
  turned.inputs.resize(projection::input(found.size(), projection::cosines), no_value);
  turned.inputs.insert(turned.inputs.end(), like.angles.begin(), like.angles.end());
  std::vector<int64_t> heads(found.size(), 0);
  std::vector<node_id> old{n};
  const bool apart = e.at(like.at).domain == "troupe"; // heads are, after a Reshape
  attributes how;
  if (!apart)
    for (const char* name : attribute_names)
      how.set(name, like.attribute(e, name));
  add_part(turned.attrs, how, "rotary");
  for (size_t p = 0; p < found.size(); ++p) {
    if (!found[p])
      continue;
    heads[p] = found[p]->heads;
    if (!apart) {
      turned.outputs[p] = e.at(found[p]->at).outputs[0];
      old.push_back(found[p]->at);
      continue;
    }
    turned.outputs[p] = e.add_result(e.val(turned.outputs[p]).name + "/rotated");
  }
  turned.attrs.set("rotary_heads", std::move(heads));
  const std::vector<value_id> results = turned.outputs;
  if (!e.replace_all(old, std::move(turned)))
    return false;
  for (size_t p = 0; p < found.size(); ++p)
    if (found[p] && apart) {
      const node rotary = e.at(found[p]->at);
      const symbolic_shape dims = *e.val(rotary.outputs[0]).dims;
      expects(e.replace(found[p]->at, make_reshape(e, rotary.name, results[p], dims, rotary.outputs[0])),
              "a view of other dims than it is asked for");
    }
  return true;
}

bool fuse_rotations_at(graph_editor& e, node_id n) {
  const node& call = e.at(n);
  const auto& dims = e.val(call.inputs[0]).dims;
  const projection_attributes how(call.attrs);
  if (!dims || dims->size() != 3 || how.gated || !how.rotary.empty())
    return false;
  std::vector<std::optional<rotation>> found(how.products);
  std::optional<rotation> like;
  for (size_t p = 0; p < how.products; ++p) {
    found[p] = rotation_of(e, call.outputs[p], *dims);
    if (found[p] && may_lead_to(e, n, found[p]->angles))
      found[p].reset();
    if (!like)
      like = found[p];
    if (found[p] && !found[p]->turns_like(e, *like))
      found[p].reset();
  }
  return like && rotate(e, n, found, *like);
}

} // namespace

bool fuse_rotations(graph_editor& e) {
  return each_present_node(e, [&](node_id n) { return is_own(e.at(n), "Projections") && fuse_rotations_at(e, n); });
}

} // namespace troupe
