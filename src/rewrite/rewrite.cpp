#include "rewrite/rewrite.hpp"

#include "base/checked.hpp"
#include "base/guard.hpp"
#include "graph/bodies.hpp"
#include "graph/dim_budget.hpp"
#include "ops/registry.hpp"
#include "rewrite/model_size.hpp"
#include "rewrite/passes.hpp"
#include "rewrite/precision.hpp"

namespace troupe {
namespace {

struct pass {
  std::string_view name;
  bool (*run)(graph_editor&);
};

/// Always done, in this order, until nothing changes.
constexpr auto clean_up = std::to_array<pass>({
    {"modernise_broadcasts", modernise_broadcasts},
    {"remove_noops", remove_noops},
    {"merge_common", merge_common},
    {"merge_reshapes", merge_reshapes},
    {"merge_transposes", merge_transposes},
    {"push_transposes", push_transposes},
    {"multiply_outer", multiply_outer},
    {"hoist_moves", hoist_moves},
    {"shift_ranges", shift_ranges},
});

/// These and the clean-up, in this order, until nothing changes: a fusion may make room for another.
constexpr auto fusion = std::to_array<pass>({
    {"fuse_activations", fuse_activations},
    {"fuse_norms", fuse_norms},
    {"fuse_rotary", fuse_rotary},
    {"fuse_attention", fuse_attention},
    {"fuse_conv", fuse_conv},
    {"fuse_matmul", fuse_matmul},
    {"split_products", split_products},
});

/// Before those fusions, if a GPU runs the graph.
constexpr auto patches = std::to_array<pass>({
    {"multiply_patches", multiply_patches},
    {"spread_sums", spread_sums},
});

/// After the fusions, which look for whole norms.
constexpr auto parts = std::to_array<pass>({
    {"hoist_slices", hoist_slices},
});

/// After the fusions, if a GPU runs the graph.
constexpr auto joined = std::to_array<pass>({
    {"fuse_projections", fuse_projections},
    {"fuse_rotations", fuse_rotations},
});

/// After all that changes attention or products, if a GPU runs the graph.
constexpr auto projected = std::to_array<pass>({
    {"project_attention", project_attention},
});

/// These before the fusions of floats: products of dequantised operands become products of bytes.
constexpr auto bytes = std::to_array<pass>({
    {"push_dequantize", push_dequantize},
    {"fuse_quantized", fuse_quantized},
});

/// Once, last: what is left over. A chain (fuse_elementwise) would hide its nodes from the passes above.
constexpr auto last = std::to_array<pass>({
    {"read_packed_heads", read_packed_heads},
    {"scale_channels", scale_channels},
    {"fuse_elementwise", fuse_elementwise},
});
constexpr auto last_bytes = std::to_array<pass>({
    {"fuse_quantized_elementwise", fuse_quantized_elementwise},
    {"fuse_quantized_sum", fuse_quantized_sum},
});

/// More rounds than any sensible model needs; every pass leaves a right graph, so that stopping early is right, too.
constexpr int max_rounds = 16;

void run_to_fixpoint(graph_editor& e, const step_observer& observe,
                     std::initializer_list<std::span<const pass>> lists) {
  bool changed = true;
  for (int round = 0; changed && round < max_rounds; ++round) {
    changed = false;
    for (std::span<const pass> passes : lists)
      for (const pass& p : passes) {
        const bool did = p.run(e);
        e.tidy();
        if (did && observe)
          observe(p.name, e.model());
        changed |= did;
      }
  }
}

} // namespace

void simplify(graph& g, const rewrite_options& options, const step_observer& observe) {
  {
    graph_editor e(g);
    run_to_fixpoint(e, observe, {clean_up});
    if (options.fuse) {
      run_to_fixpoint(e, observe, {bytes, clean_up});
      if (options.for_gpus)
        run_to_fixpoint(e, observe, {patches, clean_up});
      run_to_fixpoint(e, observe, {fusion, clean_up});
      run_to_fixpoint(e, observe, {parts, clean_up});
      if (options.for_gpus)
        run_to_fixpoint(e, observe, {joined});
      run_to_fixpoint(e, observe, {last});
      if (options.for_gpus)
        run_to_fixpoint(e, observe, {projected});
      run_to_fixpoint(e, observe, {last_bytes});
    }
  }
  if (options.precision == precision::fp16) {
    convert_to_float16(g);
    if (observe)
      observe("convert_to_float16", g);
  }
}

namespace {

/// Returns a limit that grows with the model.
int64_t limit(int64_t base, int64_t each, int64_t count) {
  return checked_add(base, checked_mul(each, count));
}

std::vector<dtype> output_types(const graph& g) {
  std::vector<dtype> types;
  for (value_id v : g.outputs)
    types.push_back(g.values[v].type);
  return types;
}

/// Throws if an output has another type than the model declares: a reader would take its bytes for something else.
void check_output_types(const graph& g, const std::vector<dtype>& declared) {
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    const value& made = g.values[g.outputs[i]];
    if (declared[i] != dtype::undefined && made.type != dtype::undefined && made.type != declared[i])
      fail(errc::invalid_model, "output '{}' is declared as {}, but the model computes {}", made.name,
           to_string(declared[i]), to_string(made.type));
  }
}

graph rewrite_within_limits(graph g, const rewrite_options& options, const step_observer& observe) {
  const auto show = [&](std::string_view step) {
    if (observe)
      observe(step, g);
  };
  const dim_budget dims(limit(limits::dim_characters, limits::dim_characters_a_byte, size_of(g).bytes));
  specialise(g, options);
  resolve(g);
  sort_topologically(g);
  remove_dead(g);
  show("resolve");
  rewrite_context context(g, options);
  if (std::any_of(g.nodes.begin(), g.nodes.end(), has_body))
    for (const value& v : g.values)
      context.names.try_emplace(v.name, 0);
  const std::vector<dtype> declared = output_types(g);
  infer_and_fold(g, context);
  check_output_types(g, declared);
  show("infer_and_fold");
  simplify(g, options, observe);
  finish_outputs(g);
  show("finish_outputs");
  validate(g);
  return g;
}

} // namespace

rewrite_context::rewrite_context(const graph& model, const rewrite_options& how) : options(how) {
  const model_size size = size_of(model);
  body_nodes_left = limit(limits::body_nodes, limits::body_nodes_a_node, size.nodes);
  folding_work_left = limits::folding_work + limits::folding_work_a_byte * static_cast<double>(size.bytes);
  folded_bytes_left = limit(limits::folded_bytes, limits::folded_bytes_a_byte, size.bytes);
  largest_folded = limit(limits::largest_folded_bytes, limits::largest_folded_bytes_a_byte, size.bytes);
}

graph rewrite_observed(graph g, const rewrite_options& options, const step_observer& observe) {
  return guarded("", [&] { return rewrite_within_limits(std::move(g), options, observe); });
}

graph rewrite(graph g, const rewrite_options& options) {
  return rewrite_observed(std::move(g), options, {});
}

} // namespace troupe
