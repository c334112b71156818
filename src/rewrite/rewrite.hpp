// Graph → simpler graph with the same outputs: folding, clean-up, fusion. An ordered list of passes, run to a fixpoint.
#pragma once

#include "graph/graph.hpp"
#include "troupe/options.hpp"

#include <span>

namespace troupe {

/// What the rewrite may do.
struct rewrite_options {
  /// Whether to fuse (fused operators have domain `troupe`); folding and clean-up always happen.
  bool fuse = true;
  troupe::precision precision = troupe::precision::fp32;
  /// Model inputs whose elements shapes depend on (see `host_inputs_of`): they become constants. What is given for an
  /// initializer that is also an input is the constant instead.
  std::map<std::string, tensor> constant_inputs;
  /// Shapes of inputs, instead of what the file states; dims may be symbolic.
  std::map<std::string, symbolic_shape> input_dims;
  /// Shapes of the tensors in inputs that are sequences or optionals, where the file does not state their rank.
  std::map<std::string, element_shapes> input_elements;
  /// Outputs wanted, in this order; empty means all.
  std::vector<std::string> outputs;
  /// Whether a GPU runs the graph. Then, as part of fusion, products of the same rows become one node, with the norm in
  /// front of them, for fewer dispatches of a decoder's step, and convolutions that cut images into patches become
  /// products.
  bool for_gpus = false;
};

/// Returns the rewritten graph: inferred, compact, topologically sorted. Throws `errc::invalid_model`,
/// `errc::unsupported` with the node's name.
graph rewrite(graph g, const rewrite_options& options);

/// Makes parts of a resolved graph's outputs the outputs, under their names; several parts of one output in turn.
/// Throws `errc::invalid_argument` where there is no such output or dim.
void slice_outputs(graph& g, std::span<const output_slice> parts);

/// Takes initializers that are also inputs out of the graph's inputs: they are constants from then on, whatever the
/// caller could have given.
void keep_defaults(graph& g);

/// Returns the names of model inputs whose elements decide shapes (Reshape's shape given as an input, say): a session
/// is specialised to their values. Found by walking back from every `op_def::host_inputs` operand through shape
/// arithmetic.
std::vector<std::string> host_inputs_of(const graph& g);

/// Returns the values from which that walk starts or through which it goes: their elements decide shapes.
std::vector<value_id> shape_deciding_values(const graph& g);

} // namespace troupe
