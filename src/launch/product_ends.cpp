// What follows the sums of a product: the epilogue's operands, and the launch that adds the parts of a split product
// and ends it, with a norm of its rows or without (shaders/split_sum.comp, split_norm.comp).
#include "launch/product.hpp"

namespace troupe {

uint32_t product_epilogue::flags() const {
  return (bias != no_input || made_bias ? shader::product_bias : 0) |
         (residual != no_input ? shader::product_residual : 0);
}

epilogue_bindings bind_epilogue(launch_builder& builder, const float_product& p) {
  const product_epilogue& e = p.epilogue;
  return {e.made_bias ? builder.made(e.made_bias) : builder.in(e.bias == no_input ? p.a : e.bias),
          builder.in(e.residual == no_input ? p.a : e.residual)};
}

namespace {

shader::split_sum parameters_of(const gpu_call& call, const float_product& p, const tiling& t) {
  const product_epilogue& e = p.epilogue;
  const product_output rows = output_rows(call.outputs[0], p);
  return {.count = p.m * p.n * p.batches(),
          .N = p.n,
          .splits = t.splits,
          .out_row = rows.row,
          .bias_row = e.bias_row,
          .bias_column = e.bias_column,
          .out_first = rows.first,
          .epsilon = p.norm ? p.norm->epsilon : 0,
          .alpha = e.alpha,
          .beta = e.beta,
          .act_alpha = e.act.alpha,
          .act_beta = e.act.beta};
}

} // namespace

void add_split_sum(launch_builder& builder, const gpu_call& call, const float_product& p, const tiling& t,
                   launch_binding scratch) {
  const product_epilogue& e = p.epilogue;
  const epilogue_bindings ends = bind_epilogue(builder, p);
  const std::string variant = *product_variant(call.outputs[0].type, call.gpu);
  std::vector<launch_binding> bindings{scratch, ends.bias, ends.residual, builder.out(0)};
  builder.next_step();
  if (!p.norm) {
    launch& l = builder.add("split_sum." + variant, flat_groups(p.m * p.n * p.batches(), 256, call.gpu), bindings);
    l.constants = {e.flags(), static_cast<uint32_t>(e.act.code)};
    l.params = words_of(parameters_of(call, p, t));
    return;
  }
  const norm_of_rows& norm = *p.norm;
  const bool shifted = norm.shift != no_input, sums = call.has_output(1);
  bindings[3] = builder.out(sums ? 1 : 0);
  bindings.insert(bindings.end(),
                  {builder.in(norm.scale), builder.in(shifted ? norm.shift : norm.scale), builder.out(0)});
  launch& l = builder.add("split_norm." + variant + (norm.team.plain ? "_plain" : ""),
                          norm.team.groups(p.m * p.batches(), call.gpu), bindings);
  l.constants = norm.team.constants();
  l.constants.insert(l.constants.end(),
                     {e.flags(), static_cast<uint32_t>(e.act.code),
                      (norm.centred ? shader::split_norm_centred : 0) | (shifted ? shader::split_norm_shift : 0) |
                          (sums ? shader::split_norm_sums : 0)});
  l.params = words_of(parameters_of(call, p, t));
}

} // namespace troupe
