// ONNX conformance cases (a folder with model.onnx and test_data_set_*) whose model is one node, run through
// `evaluate`.
#pragma once

#include "ops/op.hpp"

#include <filesystem>

namespace troupe::testing {

/// Operands of one run of a case, in the order of the node's inputs and outputs; undefined if absent.
struct case_data {
  std::vector<tensor> inputs;
  std::vector<tensor> expected;
};

/// A conformance case whose model is a single node.
struct conformance_case {
  std::string name; // the folder's
  std::string domain;
  std::string op_type;
  int64_t opset = 0;
  attributes attrs;
  std::vector<case_data> data_sets;
};

/// Loads a case folder. nullopt if the model is not a single node, or holds sequences, optionals, subgraphs or element
/// types that troupe does not have. Throws `errc::io`, `errc::invalid_model` on files that cannot be read.
std::optional<conformance_case> load_single_node_case(const std::filesystem::path& folder);

/// Says in words where `actual` differs from `expected` beyond ONNX's tolerance; empty if it does not.
std::string difference(const tensor& actual, const tensor& expected, double rtol = 1e-3, double atol = 1e-7);

/// Runs a case through its operator's row; returns an empty text if all outputs agree, else the error. `def` must not
/// be null.
std::string run_case(const conformance_case& c, const op_def* def);

} // namespace troupe::testing
