// What moves the result of an elementwise node moves its operands instead, where they are little: constants, which are
// moved now, and dims of 1, which need no moving. So a Transpose, or a Concat of one value with itself, of an outer
// product is folded, and what is left joins a chain:
//
// - Transpose(f(a, b)) becomes f(Transpose(a), Transpose(b)) if each operand is a constant or keeps the order of its
//   dims other than 1.
// - Concat(y, y …), y = f(a, b), becomes f(Concat(a, a …), b) if b has a dim of 1 there, and a is a constant.
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {
namespace {

/// The elementwise node of NumPy's broadcasting that makes `v`, which `reader` alone reads; -1 if there is none.
node_id made_for(const graph_editor& e, value_id v, node_id reader) {
  const node_id n = e.producer(v);
  if (n < 0 || e.only_consumer(v) != reader || !e.val(v).dims || e.at(n).outputs.size() != 1 || e.at(n).captures > 0 ||
      (e.at(n).def->since < 7 && e.at(n).attrs.has("broadcast")))
    return -1;
  const auto call = scalar_call_of(e, e.at(n));
  const bool all = call && call->values == std::ssize(e.at(n).inputs) && e.at(n).op_type != "PRelu";
  return all && std::ranges::all_of(e.at(n).inputs, [&](value_id in) { return in != no_value && e.val(in).dims; }) ? n
                                                                                                                   : -1;
}

/// A value's dims, after as many of 1 as make up `rank`.
symbolic_shape padded(const graph_editor& e, value_id v, size_t rank) {
  const symbolic_shape& dims = *e.val(v).dims;
  symbolic_shape all(rank - std::min(rank, dims.size()), 1);
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

bool is_single(const symbolic_shape& dims) {
  return std::ranges::all_of(dims, [](const dim& d) { return d.is(1); });
}

/// Whether dims other than 1 are in the same order after a Transpose.
bool keeps_order(const symbolic_shape& dims, const std::vector<int64_t>& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm)
    if (!dims[static_cast<size_t>(axis)].is(1) && std::exchange(last, axis) > axis)
      return false;
  return true;
}

bool is_small_constant(const graph_editor& e, value_id v) {
  const weight_ptr& w = e.val(v).constant;
  return w && volume(w->dims) <= static_cast<int64_t>(max_known_elements);
}

/// The operands of an elementwise node as they are to be, nullopt if moving one of them is no less than moving the
/// result.
class moved_operands {
public:
  moved_operands(graph_editor& e, node_id f, size_t rank) : editor_(e), node_(f), rank_(rank) {}

  std::optional<std::vector<value_id>> transposed(const std::vector<int64_t>& perm) const {
    const auto may = [&](value_id v, const symbolic_shape& dims) {
      return is_small_constant(editor_, v) || keeps_order(dims, perm);
    };
    return each(may, [&](value_id v, const symbolic_shape& dims) {
      symbolic_shape wanted;
      for (const int64_t axis : perm)
        wanted.push_back(dims[static_cast<size_t>(axis)]);
      if (!is_small_constant(editor_, v))
        return view(v, wanted);
      attributes attrs;
      attrs.set("perm", perm);
      return constant(v, derive("Transpose", {derive_reshape(editor_.val(v).constant, constants(dims))}, attrs));
    });
  }

  /// `times` over along `axis`, where the result has `whole` elements, not 1.
  std::optional<std::vector<value_id>> repeated(size_t axis, const dim& whole, size_t times) const {
    const auto may = [&](value_id v, const symbolic_shape& dims) {
      return dims[axis].is(1) || (is_small_constant(editor_, v) && dims[axis] == whole);
    };
    return each(may, [&](value_id v, const symbolic_shape& dims) {
      if (dims[axis].is(1))
        return v;
      attributes attrs;
      attrs.set("axis", static_cast<int64_t>(axis));
      const weight_ptr once = derive_reshape(editor_.val(v).constant, constants(dims));
      return constant(v, derive("Concat", std::vector<weight_ptr>(times, once), attrs));
    });
  }

private:
  /// Moves all operands that are not single elements, or none if one of them may not.
  template <class May, class Move>
  std::optional<std::vector<value_id>> each(const May& may, const Move& move) const {
    std::vector<value_id> all = editor_.at(node_).inputs;
    std::vector<symbolic_shape> dims;
    for (const value_id v : all) {
      dims.push_back(padded(editor_, v, rank_));
      if (!is_single(dims.back()) && !may(v, dims.back()))
        return std::nullopt;
    }
    for (size_t i = 0; i < all.size(); ++i)
      if (!is_single(dims[i]))
        all[i] = move(all[i], dims[i]);
    return all;
  }

  value_id constant(value_id like, weight_ptr w) const {
    return editor_.add_constant(editor_.val(like).name + "/moved", std::move(w));
  }

  value_id view(value_id v, const symbolic_shape& dims) const {
    const value_id made = editor_.add_result(editor_.val(v).name + "/moved");
    editor_.add_node(make_reshape(editor_, editor_.val(made).name, v, dims, made));
    return made;
  }

  graph_editor& editor_;
  const node_id node_;
  const size_t rank_;
};

/// Puts the elementwise node `f` of these operands in the place of `n`.
bool put(graph_editor& e, node_id n, node_id f, std::optional<std::vector<value_id>> operands) {
  if (!operands)
    return false;
  node moved = e.at(f);
  moved.inputs = std::move(*operands);
  moved.outputs = e.at(n).outputs;
  return e.replace(n, std::move(moved));
}

bool hoist_transpose(graph_editor& e, node_id n) {
  const value_id x = e.at(n).inputs[0];
  const node_id f = made_for(e, x, n);
  if (f < 0)
    return false;
  const symbolic_shape dims = *e.val(x).dims;
  const std::vector<int64_t> perm = permutation_of(e.at(n), dims.size());
  if (keeps_order(dims, perm))
    return false; // a Reshape: merge_reshapes
  return put(e, n, f, moved_operands(e, f, dims.size()).transposed(perm));
}

bool hoist_concat(graph_editor& e, node_id n) {
  const std::vector<value_id> inputs = e.at(n).inputs;
  const bool one = inputs.size() > 1 && std::ranges::all_of(inputs, [&](value_id v) { return v == inputs[0]; });
  const node_id f = one ? made_for(e, inputs[0], n) : -1;
  if (f < 0)
    return false;
  const symbolic_shape dims = *e.val(inputs[0]).dims;
  const size_t axis = normalize_axis(e.at(n).attrs.integer("axis", 1), dims.size());
  if (dims[axis].is(1))
    return false;
  return put(e, n, f, moved_operands(e, f, dims.size()).repeated(axis, dims[axis], inputs.size()));
}

} // namespace

bool hoist_moves(graph_editor& e) {
  return each_present_node(e, [&](node_id n) {
    return is_op(e.at(n), "Transpose") ? hoist_transpose(e, n) : is_op(e.at(n), "Concat") && hoist_concat(e, n);
  });
}

} // namespace troupe
