// Calls of single operators with the results of ONNX Runtime, as tests/contrib/peer.mjs writes them down.
#pragma once

#include "ops/op.hpp"
#include "troupe/engine.hpp"
#include "troupe/model_builder.hpp"

#include <nlohmann/json.hpp>

namespace troupe::test {

struct peer_case {
  std::string name, op, domain;
  int64_t version = 1; // of the domain
  double loose = 0;    // how much more results may differ than those of any two engines
  std::map<std::string, attribute> attrs;
  std::vector<tensor> inputs;  // undefined where one is left out
  std::vector<bool> constant;  // which of them are initializers
  std::vector<tensor> outputs; // undefined where one is not asked for
};

/// Reads the cases of a file below tests, "contrib/cases.jsonl".
std::vector<peer_case> read_peer_cases(const std::string& file);

/// Runs a case on an engine as a model, with the operator's newest version. Results are as many as the outputs.
std::vector<tensor> run_peer_case(engine& e, const peer_case& c);

/// Returns how results differ from a case's outputs by more than two engines may: by a last step where results are
/// quantised, by the rounding of float arithmetic in another order; empty if they do not.
std::string peer_difference(const peer_case& c, const std::vector<tensor>& got);

} // namespace troupe::test
