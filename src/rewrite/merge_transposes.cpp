// Transpose of a transpose: one Transpose with the composed permutation (remove_noops takes out those that cancel).
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"

namespace troupe {

bool merge_transposes(graph_editor& e) {
  return each_node(e, [&](node_id n) {
    if (!is_op(e.at(n), "Transpose"))
      return false;
    const node_id before = produced_by(e, e.at(n).inputs[0], "Transpose");
    const auto& dims = e.val(e.at(n).outputs[0]).dims;
    if (before < 0 || !dims)
      return false;
    const auto outer = permutation_of(e.at(n), dims->size()), inner = permutation_of(e.at(before), dims->size());
    std::vector<int64_t> composed(outer.size());
    for (size_t i = 0; i < outer.size(); ++i)
      composed[i] = inner[static_cast<size_t>(outer[i])];
    attributes attrs;
    attrs.set("perm", composed);
    return e.replace(
        n, make_node(e.at(n).name, "", "Transpose", {e.at(before).inputs[0]}, {e.at(n).outputs[0]}, std::move(attrs)));
  });
}

} // namespace troupe
