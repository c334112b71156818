// Products of com.microsoft: FusedMatMul, FusedGemm, FusedConv, ConvTransposeWithDynamicPads.
//
//   FusedMatMul: alpha · op(A) · op(B); transBatchA moves A's first axis after its batch axes before anything else
//   FusedGemm, FusedConv: act(Gemm) and act(Conv + Z), where `activation` names an operator
//   ConvTransposeWithDynamicPads: ConvTranspose whose pads are an operand, which the host must know
#include "ops/expansion.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

/// Returns a factor with its last two axes last, and these transposed where the attributes ask for it.
value_id factor(expansion& e, size_t i, const char* transposes, const char* moves) {
  const value_id v = e.input(i);
  const size_t rank = e.rank(v);
  if (rank < 2)
    return v;
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (e.attrs().integer(moves, 0) != 0)
    std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (e.attrs().integer(transposes, 0) != 0)
    std::swap(axes[rank - 2], axes[rank - 1]);
  return std::is_sorted(axes.begin(), axes.end()) ? v : e.transpose(v, std::move(axes));
}

void expand_matmul(expansion& e) {
  const value_id a = factor(e, 0, "transA", "transBatchA"), b = factor(e, 1, "transB", "transBatchB");
  value_id y = e.add("MatMul", {a, b});
  if (const float alpha = e.attrs().real("alpha", 1); alpha != 1)
    y = e.add("Mul", {y, e.scalar(e.type(y), alpha)});
  e.set_output(0, y);
}

/// Returns the attributes but those of the activation, which begin with "activation".
attributes own_attributes(const attributes& all) {
  attributes own;
  for (const auto& [name, value] : all.all())
    if (!name.starts_with("activation"))
      own.set(name, value);
  return own;
}

void require_activation(const std::string& name) {
  for (const char* known : {"Relu", "LeakyRelu", "Tanh", "Sigmoid", "Clip", "HardSigmoid", "HardSwish", "Elu", "Selu",
                            "Softplus", "Softsign", "ThresholdedRelu", "Gelu"})
    if (name == known)
      return;
  fail(errc::unsupported, "activation '{}' is not supported", name);
}

/// Returns alpha · f(beta · y) where `name` is such a function of f, no_value where it is another.
value_id scaled_activation(expansion& e, const std::string& name, value_id y) {
  const char* inner = name == "ScaledTanh" ? "Tanh" : name == "ParametricSoftplus" ? "Softplus" : nullptr;
  if (!inner)
    return no_value;
  const auto factor = [&](const char* attribute) {
    if (!e.attrs().has(attribute))
      fail(errc::invalid_model, "activation '{}' needs attribute '{}'", name, attribute);
    return e.scalar(e.type(y), e.attrs().real(attribute));
  };
  const value_id made = e.add(inner, {e.add("Mul", {y, factor("activation_beta")})});
  return e.add("Mul", {made, factor("activation_alpha")});
}

/// Each attribute activation_x is attribute x of the activation.
void expand_gemm(expansion& e) {
  const value_id y = e.add("Gemm", {e.input(0), e.input(1), e.input(2)}, own_attributes(e.attrs()));
  const std::string name = e.attrs().text("activation", "");
  if (name.empty())
    return e.set_output(0, y);
  if (const value_id scaled = scaled_activation(e, name, y); scaled != no_value)
    return e.set_output(0, scaled);
  require_activation(name);
  attributes own;
  for (const auto& [key, value] : e.attrs().all())
    if (key.starts_with("activation_"))
      own.set(key.substr(key.find('_') + 1), value);
  e.set_output(0, e.add(name, {y}, std::move(own)));
}

/// Returns an activation whose parameters are a list.
value_id activate(expansion& e, value_id y, const std::string& name, const std::vector<float>& parameters) {
  require_activation(name);
  const size_t wanted = name == "LeakyRelu" ? 1 : name == "Clip" || name == "HardSigmoid" ? 2 : 0;
  if (parameters.size() != wanted)
    fail(errc::invalid_model, "'activation_params' has {} numbers, but {} takes {}", parameters.size(), name, wanted);
  if (name == "Clip")
    return e.add(name, {y, e.scalar(e.type(y), parameters[0]), e.scalar(e.type(y), parameters[1])});
  attributes own;
  if (wanted > 0)
    own.set("alpha", parameters[0]);
  if (wanted > 1)
    own.set("beta", parameters[1]);
  return e.add(name, {y}, std::move(own));
}

void expand_conv(expansion& e) {
  value_id y = e.plus_input(e.add("Conv", {e.input(0), e.input(1), e.input(2)}, own_attributes(e.attrs())), 3);
  if (const std::string name = e.attrs().text("activation", ""); !name.empty())
    y = activate(e, y, name, e.attrs().reals("activation_params", {}));
  e.set_output(0, y);
}

void expand_conv_transpose(expansion& e) {
  attributes own = e.attrs();
  if (e.has_input(2))
    own.set("pads", e.call().require_constants(2));
  e.set_output(0, e.add("ConvTranspose", {e.input(0), e.input(1), e.input(3)}, std::move(own)));
}

constexpr auto contrib_product_rows = std::to_array<op_def>({
    composition_row("ConvTransposeWithDynamicPads", 1, expand_conv_transpose,
                    {.domain = microsoft, .inputs = {2, 4}, .types = types::floats, .host_inputs = 0b100}),
    composition_row("FusedMatMul", 1, expand_matmul, {.domain = microsoft, .inputs = {2, 2}, .types = types::floats}),
    composition_row("FusedGemm", 1, expand_gemm, {.domain = microsoft, .inputs = {2, 3}, .types = types::floats}),
    composition_row("FusedConv", 1, expand_conv, {.domain = microsoft, .inputs = {2, 4}, .types = types::floats}),
});

} // namespace

extern constinit const op_table contrib_product_ops = contrib_product_rows;

} // namespace troupe
