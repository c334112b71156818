// The ways to run a call of an operator's newest row on a GPU.
#pragma once

#include "launch/launch_table.hpp"

namespace troupe::testing {

inline launch_lists onnx_launches(std::string_view op, const gpu_call& call) {
  return launches_of(*find_op("", op, newest_opset("")), call);
}

inline launch_lists troupe_launches(std::string_view op, const gpu_call& call) {
  return launches_of(*find_op("troupe", op, 1), call);
}

} // namespace troupe::testing
