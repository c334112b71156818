// Small models of each kind, as files: the first inputs of the fuzzer, and the models for which saved plans are made
// again.
#pragma once

#include "loader/models.hpp"
#include "plan/device_info.hpp"

#include <map>

namespace troupe::test {

/// Returns the models by name.
std::map<std::string, onnx::ModelProto> small_protos();

/// Returns the content of "w.bin", the external data that some of them name.
std::string external_bytes();

/// Returns some of them, rewritten; and the devices that plans of them are for.
const std::vector<std::shared_ptr<const graph>>& plan_models();
std::vector<device_info> plan_devices();

} // namespace troupe::test
