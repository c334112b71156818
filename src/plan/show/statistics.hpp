// What a model is made of, in numbers: operators, parameters, work.
#pragma once

#include "cost/cost_model.hpp"
#include "plan/bind/bound_plan.hpp"

namespace troupe {

/// Counts of a graph, bodies of control flow included.
struct model_statistics {
  size_t nodes = 0;
  std::map<std::string, size_t> operators; // by name, with the domain where it is not ai.onnx
  int64_t parameters = 0;                  // elements of all constants, each once
  std::map<dtype, int64_t> bytes;          // of the constants, by element type
};

/// Counts a graph, rewritten or as loaded. Constants that share their content count once.
model_statistics statistics_of(const graph& g);

/// Returns the sums of the work of a bound segment's nodes by operator; outputs whose shape the data decide count as
/// one element.
std::map<std::string, node_work> work_by_operator(const bound_plan& bound);

/// Returns the floating-point operations of a bound segment: of a whole run, unless shapes depend on data.
double flops_of(const bound_plan& bound);

} // namespace troupe
