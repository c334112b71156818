// A BatchNormalization that no convolution has taken in (the first node of a DenseNet's layers) becomes a product and a
// sum with constants, which chains of scalar functions take in: with the activation after it, one pass over the
// elements.
#include "ops/evaluate.hpp"
#include "rewrite/batch_norm.hpp"
#include "rewrite/match.hpp"
#include "rewrite/passes.hpp"
#include "tensor/half_rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace troupe {
namespace {

/// The constants of nodes with equal parameters, which many nodes of a file may share: scale, shift, mean, variance,
/// their ε, and the rank.
using norm_parameters = std::tuple<std::array<value_id, 4>, double, size_t>;
struct norm_constants {
  value_id factor = no_value, shift = no_value;
};

/// Whether a float16 holds the elements, as normal numbers if they are factors: in a float16 session they become that,
/// while BatchNormalization computes with wider ones.
bool fits_half(const weight& w, bool factors) {
  const auto fits = [&](double x) {
    return std::abs(x) <= largest_float16 && (!factors || x == 0 || std::abs(x) >= least_normal_float16);
  };
  const tensor t = materialise(w);
  return t.type() == dtype::float32 ? std::all_of(t.data<float>(), t.data<float>() + t.size(), fits)
                                    : std::all_of(t.data<double>(), t.data<double>() + t.size(), fits);
}

/// Not in 16 bits, where what makes factors might leave the range.
bool scale_by_constants(graph_editor& e, node_id n, std::map<norm_parameters, std::optional<norm_constants>>& made) {
  const node norm = e.at(n);
  const value& x = e.val(norm.inputs[0]);
  if (!(set_of(dtype::float32, dtype::float64) & set_of(x.type)) || !x.dims || x.dims->size() < 2 ||
      !(*x.dims)[1].is_constant())
    return false;
  const int64_t channels = (*x.dims)[1].constant();
  const auto scaling = scaling_of(e, norm, channels, x.type);
  if (!scaling)
    return false;
  norm_parameters key{{}, norm.attrs.real("epsilon", 1e-5f), x.dims->size()};
  for (size_t i = 0; i < 4; ++i)
    std::get<0>(key)[i] = norm.inputs[i + 1];
  const auto [known, is_new] = made.try_emplace(key);
  if (is_new) {
    shape column(x.dims->size() - 1, 1);
    column[0] = channels;
    const weight_ptr shift = derive("Sub", {scaling->shift, derive("Mul", {scaling->mean, scaling->factor})});
    if (fits_half(*scaling->factor, true) && fits_half(*shift, false))
      known->second = {e.add_constant(norm.name + "/factor", derive_reshape(scaling->factor, column)),
                       e.add_constant(norm.name + "/shift", derive_reshape(shift, column))};
  }
  if (!known->second)
    return false;
  const value_id scaled = add_inferred(
      e, make_node(norm.name + "/scaled", "", "Mul", {norm.inputs[0], known->second->factor}, {}), norm.name);
  return e.replace(n, make_node(norm.name, "", "Add", {scaled, known->second->shift}, {norm.outputs[0]}));
}

} // namespace

bool scale_channels(graph_editor& e) {
  std::map<norm_parameters, std::optional<norm_constants>> made;
  return each_present_node(
      e, [&](node_id n) { return is_op(e.at(n), "BatchNormalization") && scale_by_constants(e, n, made); });
}

} // namespace troupe
