#include "rewrite/batch_norm.hpp"

#include "rewrite/match.hpp"

namespace troupe {

std::optional<channel_scaling> scaling_of(const graph_editor& e, const node& norm, int64_t channels, dtype type) {
  const bool inference = norm.attrs.integer("training_mode", 0) == 0 && norm.attrs.integer("is_test", 1) == 1 &&
                         norm.attrs.integer("spatial", 1) == 1;
  if (!inference)
    return std::nullopt;
  for (size_t i = 1; i < norm.outputs.size(); ++i)
    if (norm.outputs[i] != no_value && e.uses(norm.outputs[i]) > 0)
      return std::nullopt;
  std::array<weight_ptr, 4> p; // scale, shift, mean, variance
  for (size_t i = 0; i < p.size(); ++i) {
    const value_id v = input_of(norm, i + 1);
    p[i] = v == no_value ? nullptr : e.val(v).constant;
    if (!p[i] || p[i]->type != type || p[i]->dims != shape{channels} || !may_derive(*p[i]))
      return std::nullopt;
  }
  tensor epsilon(dtype::float32, {1});
  *epsilon.mutable_data<float>() = norm.attrs.real("epsilon", 1e-5f);
  attributes to;
  to.set("to", static_cast<int64_t>(type));
  const weight_ptr eps = derive("Cast", {weight::from_tensor(epsilon)}, to);
  return channel_scaling{derive("Div", {p[0], derive("Sqrt", {derive("Add", {p[3], eps})})}), p[1], p[2]};
}

} // namespace troupe
