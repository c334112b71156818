#include "launch/contraction.hpp"

#include "launch/launch_rules.hpp"
#include "launch/parameters.hpp"
#include "ops/onnx/einsum.hpp"

namespace troupe {
namespace {

constexpr size_t most_axes = 8;

/// Writes axes [first, last) innermost first.
void set_axes(std::span<shader::uvec4, most_axes> block, const einsum_nest& nest, size_t first, size_t last) {
  const auto step = [&](size_t operand, size_t axis) {
    return operand < nest.strides.size() ? nest.strides[operand][axis] : 0;
  };
  for (size_t i = 0; i < last - first; ++i) {
    const size_t axis = last - 1 - i;
    block[i] = {nest.extents[axis], step(0, axis), step(1, axis)};
  }
}

} // namespace

launch_lists contraction_launches(const gpu_call& call, const std::string& equation) {
  std::vector<symbolic_shape> shapes;
  std::vector<size_t> ranks;
  for (const operand& o : call.inputs) {
    if (o.type != call.outputs[0].type)
      return {};
    shapes.push_back(to_symbolic(o.dims));
    ranks.push_back(o.dims.size());
  }
  const auto variant = arithmetic_variant(call.outputs[0].type, call.gpu);
  if (!variant || shapes.size() > 2)
    return {};
  const einsum_nest nest = nest_of(parse_einsum(equation, ranks), shapes);
  const size_t kept = nest.output_axes, all = nest.extents.size();
  const int64_t count = call.outputs[0].size(), summed = volume(std::span(nest.extents).subspan(kept));
  if (kept > most_axes || all - kept > most_axes || summed >= index_limit)
    return {};
  shader::contraction block{.count = count, .kept_rank = kept, .summed = summed, .summed_rank = all - kept};
  set_axes(block.kept, nest, 0, kept);
  set_axes(block.reduced, nest, kept, all);
  launch_builder b(call, "contraction");
  launch& l =
      b.add("contraction." + *variant, flat_groups(count, 128, call.gpu), {b.in(0), b.in(shapes.size() - 1), b.out(0)});
  l.constants = {shapes.size() == 2 ? 1u : 0u};
  l.params = words_of(block);
  return single_list(b);
}

extern constinit const launch_rows contraction_rules = {
    {"", "Einsum", [](const gpu_call& c) { return contraction_launches(c, c.attrs.text("equation", "")); }},
};

} // namespace troupe
