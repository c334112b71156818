// Valid calls of operators, to make invalid ones of.
#pragma once

#include "ops/op.hpp"

namespace troupe::test {

struct sample_call {
  std::string name;
  const op_def* def = nullptr;
  attributes attrs;
  std::vector<tensor> inputs; // undefined where one is left out
  size_t outputs = 1;
};

/// Reads tests/data/calls.txt and, if `peers`, the calls of com.microsoft and ai.onnx.ml that other tests compare with
/// ONNX Runtime.
std::vector<sample_call> read_sample_calls(bool peers);

/// Returns the dims of its operands, none for one that is left out.
std::vector<symbolic_shape> dims_of(const sample_call& c);

/// Returns a call as a graph of one node, "call", with its operands "x0", "x1" … as inputs of these dims. Operands
/// whose elements must be known are constants if their dims are.
graph graph_of(const sample_call& c, const std::vector<symbolic_shape>& dims);

/// Returns an operand with other dims and elements like those of `like`, or with another type.
tensor resized(const tensor& like, shape dims);
tensor retyped(const tensor& like, dtype type);

} // namespace troupe::test
