// The passes of the rewrite, one a file. Each returns whether it changed the graph; rewrite.cpp orders them.
#pragma once

#include "base/limits.hpp"
#include "rewrite/editor.hpp"
#include "rewrite/rewrite.hpp"

#include <functional>
#include <unordered_map>

namespace troupe {

/// Applies what the caller states about the graph's ends: inputs that are constants, input shapes, outputs wanted.
void specialise(graph& g, const rewrite_options& options);

/// What the graphs of one rewrite, the model's and its bodies', share. Limits (base/limits.hpp) keep a hostile file
/// from growing without end.
struct rewrite_context {
  /// For a rewrite of `model`.
  rewrite_context(const graph& model, const rewrite_options& options);

  const rewrite_options& options;
  /// How deep the graph being rewritten is: 0 is the model.
  size_t depth = 0;
  /// Nodes of bodies that may still be inferred, and nodes that may still be copied out of bodies.
  int64_t body_nodes_left, copies_left = limits::all_copied_nodes;
  /// Nodes that may still move into branches, and be looked at for that (branches.cpp).
  int64_t moves_left = limits::moved_nodes, visits_left = limits::move_visits;
  /// How many Ifs around the graph being rewritten have such nodes: a branch with an error is refused then, not the
  /// model.
  size_t guesses = 0;
  /// Work that folding may still cost, and bytes that it may still write while rewriting.
  double folding_work_left;
  int64_t folded_bytes_left;
  /// Bytes that one folded result may have.
  int64_t largest_folded;
  /// Names of the values of the graph being rewritten and of those around it, since symbols are named after values,
  /// each with the last number that `take_name` gave. Kept if there is control flow.
  std::unordered_map<std::string, size_t> names;
  /// Constants made of attributes, by their bytes: a body's are met whenever it is inferred or copied, and hashed once.
  std::unordered_map<const void*, weight_ptr> literals;
};

/// Infers types and shapes in node order. What turns out to be known on the way loses its producer: nodes over
/// constants become constants or weight recipes, nodes whose outputs are all host-known go. Bodies of control flow are
/// rewritten whole on the way, or take the place of their node (control_flow.hpp).
void infer_and_fold(graph& g, rewrite_context& context);

/// Sees a graph after a step that changed it, with the step's name.
using step_observer = std::function<void(std::string_view step, const graph& g)>;

/// The rest of the rewrite, after `infer_and_fold`: clean-up, fusion, precision.
void simplify(graph& g, const rewrite_options& options, const step_observer& observe = {});

/// Rewrites as `rewrite` does and shows the graph, but not the bodies of control flow, after each step: so tests can
/// check what each did.
graph rewrite_observed(graph g, const rewrite_options& options, const step_observer& observe);

/// Makes every graph output the output of a node, each of its own (Identity if needed), and removes what no output
/// needs.
void finish_outputs(graph& g);

bool modernise_broadcasts(graph_editor& e);
bool remove_noops(graph_editor& e);
bool merge_common(graph_editor& e);
bool merge_reshapes(graph_editor& e);
bool merge_transposes(graph_editor& e);
bool push_transposes(graph_editor& e);
bool multiply_outer(graph_editor& e);
bool hoist_moves(graph_editor& e);
bool hoist_slices(graph_editor& e);
bool shift_ranges(graph_editor& e);

bool push_dequantize(graph_editor& e);
bool fuse_quantized(graph_editor& e);
bool fuse_activations(graph_editor& e);
bool fuse_norms(graph_editor& e);
bool fuse_rotary(graph_editor& e);
bool fuse_attention(graph_editor& e);
bool fuse_conv(graph_editor& e);
bool fuse_matmul(graph_editor& e);
bool split_products(graph_editor& e);
bool read_packed_heads(graph_editor& e);
bool multiply_patches(graph_editor& e);
bool spread_sums(graph_editor& e);
bool fuse_projections(graph_editor& e);
bool fuse_rotations(graph_editor& e);
bool project_attention(graph_editor& e);
bool scale_channels(graph_editor& e);
bool fuse_elementwise(graph_editor& e);
bool fuse_quantized_elementwise(graph_editor& e);
bool fuse_quantized_sum(graph_editor& e);

} // namespace troupe
