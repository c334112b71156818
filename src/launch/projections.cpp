// GPU launches of troupe.Projections: one kernel where rows are few (few_rows.hpp); else the launches of its parts,
// step by step (part_launches.hpp). A norm after a product that is split is part of the launch that adds the parts.
#include "ops/composed/projections.hpp"
#include "launch/few_rows.hpp"
#include "launch/launch_rules.hpp"
#include "launch/part_launches.hpp"
#include "ops/op.hpp"

#include <algorithm>

namespace troupe {
namespace {

using projection::slot;

/// Product `p` for the kernel of few rows.
few_rows_part part_of_call(const gpu_call& call, size_t p, const attributes& own, bool gated) {
  const auto input = [&](slot s) { return present(call, projection::input(p, s)); };
  const operand& weights = call.inputs[projection::input(p, slot::weights)];
  few_rows_part part{.weights = input(slot::weights),
                     .scales = input(slot::scales),
                     .zeros = input(slot::zeros),
                     .bias = input(slot::bias),
                     .out = gated ? 0 : p,
                     .n = call.outputs[gated ? 0 : p].dims.back(),
                     .transposed = own.integer("transB", 0) != 0,
                     .rotated = projection_attributes(call.attrs).is_rotated(p),
                     .act = parse_activation(own)};
  if (part.scales == no_input && weights.dims.size() != 2)
    part.n = 0; // refused
  return part;
}

/// Whether the operands of a product are what the kernel reads: types, sizes, how codes are packed.
bool fits(const few_rows_call& c, const few_rows_part& p, const attributes& own) {
  const dtype type = c.call.inputs[0].type;
  if (!has_type(c.call, p.bias, type, p.n))
    return false;
  if (!c.packed)
    return p.scales == no_input && own.real("alpha", 1) == 1 && has_type(c.call, p.weights, type, c.depth * p.n);
  if (p.scales == no_input)
    return false;
  const nbits_shape s = parse_nbits(own);
  const bool packed_zeros = p.zeros != no_input && c.call.inputs[p.zeros].type == dtype::uint8;
  return (s.bits == 4 || s.bits == 8) && s.bits == c.packed->bits && s.block_size == c.packed->block_size &&
         s.k == c.depth && s.n == p.n && has_type(c.call, p.weights, dtype::uint8, s.n * s.blocks * s.block_bytes()) &&
         has_type(c.call, p.scales, type, s.n * s.blocks) &&
         (packed_zeros ? has_type(c.call, p.zeros, dtype::uint8, s.n * s.zero_bytes())
                       : has_type(c.call, p.zeros, type, s.n * s.blocks));
}

/// What rotates the results of a call that has a rotary embedding; nullopt if the kernel does not suit.
std::optional<few_rows_rotary> rotary_of(const gpu_call& call, const projection_attributes& how) {
  std::optional<few_rows_rotary> all;
  const auto angle = [&](projection::angle a) { return present(call, projection::input(how.products, a)); };
  for (size_t p = 0; p < how.products; ++p) {
    if (!how.is_rotated(p))
      continue;
    few_rows_rotary found{.cosines = angle(projection::cosines),
                          .sines = angle(projection::sines),
                          .positions = angle(projection::positions)};
    attributes own = attributes_of_part(call.attrs, "rotary");
    own.set("num_heads", how.rotary_heads[p]);
    gpu_call rotary{own, {call.outputs[p], call.inputs[found.cosines], call.inputs[found.sines]}, {}, call.gpu};
    if (found.positions != no_input)
      rotary.inputs.push_back(call.inputs[found.positions]);
    found.how = how.rotary == "Rotary" ? fused_rotary_call(rotary) : rotary_embedding_call(rotary);
    const operand* positions = found.positions == no_input ? nullptr : &call.inputs[found.positions];
    const shader::rotary& r = found.how.params;
    if (r.width % 2 != 0 || !takes_rotary_operands(rotary.inputs[0], rotary.inputs[1], rotary.inputs[2], positions) ||
        (all && (all->how.params.width != r.width || all->how.params.pairs != r.pairs)))
      return std::nullopt;
    all = found;
  }
  return all;
}

/// The call for the kernel of few rows; nullopt if it does not suit.
std::optional<few_rows_call> few_rows_call_of(const gpu_call& call) {
  const projection_attributes how(call.attrs);
  const operand& x = call.inputs[projection::operand];
  const int64_t depth = x.dims.back();
  if (depth == 0 || !how.last_norm.empty())
    return std::nullopt;
  const attributes norm = attributes_of_part(call.attrs, "norm");
  few_rows_call c{.call = call,
                  .name = "projections",
                  .rows = x.size() / depth,
                  .depth = depth,
                  .norm = how.norm.empty()                   ? shader::rows_as_they_are
                          : how.norm == "LayerNormalization" ? shader::rows_layer_norm
                                                             : shader::rows_rms_norm,
                  .epsilon = norm.real("epsilon", 1e-5f),
                  .norm_scale = present(call, projection::norm_scale),
                  .norm_shift = present(call, projection::norm_shift),
                  .residual = present(call, projection::input(0, slot::residual)),
                  .gated = how.gated,
                  .wide = how.wide,
                  .rotary = rotary_of(call, how)};
  if (!has_type(call, c.norm_scale, x.type, depth) || !has_type(call, c.norm_shift, x.type, depth) ||
      !has_type(call, c.residual, x.type, call.outputs[0].size()) || norm.integer("axis", -1) != -1 ||
      (c.residual != no_input && how.products > 1) || (!how.rotary.empty() && !c.rotary))
    return std::nullopt;
  for (size_t p = 0; p < how.products; ++p) {
    const attributes own = attributes_of_part(call.attrs, std::to_string(p));
    c.parts.push_back(part_of_call(call, p, own, how.gated));
    if (p == 0 && c.parts[0].scales != no_input)
      c.packed = parse_nbits(own);
    if ((p > 0 && call.has_input(projection::input(p, slot::residual))) || !fits(c, c.parts[p], own))
      return std::nullopt;
  }
  return c;
}

/// The ways to run a product with a norm after it that split the product; none if the call is not such a product or
/// does not suit.
launch_lists split_and_normed(const gpu_call& call) {
  const projection_attributes how(call.attrs);
  const auto input = [&](slot s) { return present(call, projection::input(0, s)); };
  const size_t weights = projection::input(0, slot::weights), scales = input(slot::scales);
  if (how.last_norm.empty() || !how.norm.empty() || scales != no_input)
    return {};
  const attributes own = attributes_of_part(call.attrs, "0"), norm = attributes_of_part(call.attrs, "last_norm");
  const operand& x = call.inputs[projection::operand];
  float_product p = stacked_product(x.dims, call.inputs[weights].dims, false, own.integer("transB", 0) != 0);
  p.b = weights;
  p.epilogue.bias = input(slot::bias);
  p.epilogue.residual = input(slot::residual);
  p.epilogue.alpha = own.real("alpha", 1);
  p.epilogue.act = parse_activation(own);
  const size_t scale = projection::last_scale, shift = present(call, projection::last_shift);
  if (!has_type(call, weights, x.type, p.k * p.n) || !has_type(call, p.epilogue.bias, x.type, p.n) ||
      !has_type(call, p.epilogue.residual, x.type, call.outputs[0].size()) || !has_type(call, scale, x.type, p.n) ||
      !has_type(call, shift, x.type, p.n) || norm.integer("axis", -1) != -1)
    return {};
  return normed_product_launches(call, std::move(p),
                                 {.scale = scale,
                                  .shift = shift,
                                  .epsilon = norm.real("epsilon", 1e-5f),
                                  .centred = how.last_norm == "LayerNormalization"});
}

/// Adds those ways: before the others if the best is done before the best of these, which may leave the product whole,
/// the norm after it. The norm's own launch takes a few µs by the model of tiles: 197 × 768 × 768 with its norm takes
/// 14.8 split and 16.7 whole on an H100 (float16), but 128 × 768 × 768, whose tiles it holds all at once, 13.4 either
/// way.
void add_split_and_normed(launch_lists& lists, const gpu_call& call) {
  constexpr double norm = 2.5;
  launch_lists normed = split_and_normed(call);
  if (!lists.empty() && !normed.empty() && normed[0].time <= lists[0].time + norm)
    std::swap(lists, normed);
  add_lists(lists, std::move(normed));
}

launch_lists projection_launches(const gpu_call& call) {
  launch_lists lists;
  if (const auto few = few_rows_call_of(call))
    lists = few_rows_launches(*few);
  add_lists(lists, launches_of_parts(call, parts_of_projections(call.attrs, call.inputs, call.outputs)));
  add_split_and_normed(lists, call);
  return lists;
}

} // namespace

extern constinit const launch_rows projections_rules = {
    {"troupe", "Projections", projection_launches},
};

} // namespace troupe
