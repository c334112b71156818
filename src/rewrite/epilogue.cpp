#include "rewrite/epilogue.hpp"

#include "rewrite/match.hpp"

#include <limits>

namespace troupe {
namespace {

/// Bounds of a Clip, infinite where absent; nullopt where they are not constant.
std::optional<activation> clip_of(const graph_editor& e, const node& n) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  activation act{activation_kind::clip, n.attrs.real("min", -infinity), n.attrs.real("max", infinity)};
  for (size_t i : {1, 2}) {
    if (input_of(n, i) == no_value)
      continue;
    const auto bound = scalar_constant(e, n.inputs[i]);
    if (!bound)
      return std::nullopt;
    (i == 1 ? act.alpha : act.beta) = static_cast<float>(*bound);
  }
  return act;
}

} // namespace

std::optional<activation> activation_of(const graph_editor& e, node_id n, value_id x) {
  if (n < 0 || !e.at(n).domain.empty() || e.at(n).inputs[0] != x)
    return std::nullopt;
  const node& call = e.at(n);
  using enum activation_kind;
  if (call.op_type == "Clip")
    return clip_of(e, call);
  if (call.op_type == "HardSigmoid")
    return activation{hard_sigmoid, call.attrs.real("alpha", 0.2f), call.attrs.real("beta", 0.5f)};
  if (call.op_type == "LeakyRelu")
    return activation{leaky_relu, call.attrs.real("alpha", 0.01f)};
  if (call.op_type == "Swish")
    return activation{swish, call.attrs.real("alpha", 1)};
  if (call.op_type == "Gelu")
    return activation{call.attrs.text("approximate", "none") == "tanh" ? gelu_tanh : gelu};
  for (auto kind : {relu, sigmoid, activation_kind::tanh, hard_swish})
    if (call.op_type == to_string(kind))
      return activation{kind};
  return std::nullopt;
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
  std::string text{to_string(act.kind)};
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return fmt::format("+{}", text);
}

} // namespace troupe
