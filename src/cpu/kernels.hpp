// The factories of all fast kernels, for kernel_list.cpp. Each returns null where it does not take the call.
#pragma once

#include "cpu/kernel.hpp"

namespace troupe {

/// Conv and ConvTranspose of float operands, plain or channels-last, with their epilogue. dnnl_conv.cpp
kernel_ptr make_dnnl_conv(const kernel_request& request);
kernel_ptr make_dnnl_conv_transpose(const kernel_request& request);
/// MatMul, Gemm and troupe.MatMul of float operands. dnnl_matmul.cpp
kernel_ptr make_dnnl_matmul(const kernel_request& request);
/// The same with few rows: bound by reading the right operand, which is used as it lies. gemv.cpp
kernel_ptr make_gemv(const kernel_request& request);
/// MaxPool, AveragePool and their global forms. dnnl_pool.cpp
kernel_ptr make_dnnl_pool(const kernel_request& request);

} // namespace troupe
