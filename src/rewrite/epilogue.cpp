#include "rewrite/epilogue.hpp"

#include "rewrite/match.hpp"

namespace troupe {

std::optional<activation> activation_of(const graph_editor& e, node_id n, value_id x) {
  if (n < 0 || e.at(n).inputs.empty() || e.at(n).inputs[0] != x)
    return std::nullopt;
  const auto call = scalar_call_of(e, e.at(n));
  if (!call || call->values != 1 || !function_of(call->code).ends_products)
    return std::nullopt;
  activation act{call->code};
  for (size_t i = 0; i < call->numbers.size(); ++i)
    (i == 0 ? act.alpha : act.beta) = call->numbers[i];
  return act;
}

value_id residual_of(const graph_editor& e, node_id n, value_id x) {
  if (n < 0 || !is_op(e.at(n), "Add") || e.at(n).inputs[0] == e.at(n).inputs[1])
    return no_value;
  const value_id other = e.at(n).inputs[e.at(n).inputs[0] == x ? 1 : 0];
  const bool fits = other != no_value && same_dims(e, x, other) && same_dims(e, x, e.at(n).outputs[0]) &&
                    e.val(x).type == e.val(other).type;
  return fits ? other : no_value;
}

std::string suffix_of(const activation& act) {
  std::string text{function_of(act.code).name};
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("+{}", text);
}

} // namespace troupe
