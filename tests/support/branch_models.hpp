// Models whose Ifs give another rank in each branch.
#pragma once

#include "support/control_models.hpp"

namespace troupe::test {

/// If `condition` then x without its axis 1 (Squeeze) else x; `x` has the dims [n, 1, 4]. The result is called
/// `name`.0.
inline value_id add_squeeze(graph_builder& b, const std::string& name, value_id condition, value_id x) {
  body_builder yes(&b), no(&b);
  yes.output(yes.op("Squeeze", {yes.capture(x), yes.integers({1})}));
  no.output(no.capture(x));
  return add_control(b, "If", name, {condition}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
}

/// A model with inputs c (bool) and x [n, 1, 4], and the result of `add_squeeze` for them.
struct squeezed_model : graph_builder {
  value_id c = input("c", {}, dtype::boolean), x = input("x", {dim::symbol("n"), 1, 4});
  value_id squeezed = add_squeeze(*this, "squeeze", c, x);
};

/// Returns inputs with x = 0, 1, 2 … of two rows.
inline named_tensors squeezed_inputs(bool c) {
  return {{"c", tensor::scalar(c)}, {"x", floats({2, 1, 4}, {0, 1, 2, 3, 4, 5, 6, 7})}};
}

} // namespace troupe::test
