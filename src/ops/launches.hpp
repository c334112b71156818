// GPU launch rules, one function an operator row: `op_def::launches`. Defined in <family>_launch.cpp.
#pragma once

#include "ops/launch.hpp"

namespace troupe {

launch_lists average_pool_launches(const gpu_call& call);
launch_lists conv_launches(const gpu_call& call);
launch_lists conv_transpose_launches(const gpu_call& call);
launch_lists fused_elementwise_launches(const gpu_call& call);
launch_lists fused_matmul_launches(const gpu_call& call);
launch_lists gemm_launches(const gpu_call& call);
launch_lists global_average_pool_launches(const gpu_call& call);
launch_lists global_lp_pool_launches(const gpu_call& call);
launch_lists global_max_pool_launches(const gpu_call& call);
launch_lists lp_pool_launches(const gpu_call& call);
launch_lists matmul_launches(const gpu_call& call);
launch_lists max_pool_launches(const gpu_call& call);

} // namespace troupe
