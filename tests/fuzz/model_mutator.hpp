// Changes a model where it hurts: nodes, attributes, dims, initializers, recipes of constants, external data, bodies,
// functions. The result is mostly well-formed protobuf and often nearly a model, so that faults after the loader's
// first checks are found too.
#pragma once

#include <onnx/onnx_pb.h>

#include <random>

namespace troupe::test {

using mutation_random = std::minstd_rand;

/// Changes `m` in one to four ways.
void mutate_model(onnx::ModelProto& m, mutation_random& random);

/// Adds nodes and initializers of `other` to `m`, joined to its values.
void cross_models(onnx::ModelProto& m, const onnx::ModelProto& other, mutation_random& random);

} // namespace troupe::test
