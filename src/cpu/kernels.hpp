// The factories of all fast kernels, for kernel_list.cpp. Each returns null if it does not take the call.
#pragma once

#include "cpu/kernel.hpp"

namespace troupe {

/// Conv and ConvTranspose of float operands, plain or channels-last, with their epilogue. dnnl_conv.cpp
kernel_ptr make_dnnl_conv(const kernel_request& request);
kernel_ptr make_dnnl_conv_transpose(const kernel_request& request);
/// 3 × 3 convolutions of channels-last values and constant weights, with fewer products. winograd_conv.cpp
kernel_ptr make_winograd_conv(const kernel_request& request);
/// Convolutions by constant weights in one group with channels-last outputs. panel_conv.cpp
kernel_ptr make_panel_conv(const kernel_request& request);
/// Convolutions of channels-last values channel by channel, by constant weights. depthwise_conv.cpp
kernel_ptr make_depthwise_conv(const kernel_request& request);
/// ConvTranspose whose windows tile the output of channels-last values. tiling_deconv.cpp
kernel_ptr make_tiling_deconv(const kernel_request& request);
/// MatMul, Gemm and troupe.MatMul of float operands. dnnl_matmul.cpp
kernel_ptr make_dnnl_matmul(const kernel_request& request);
/// The same by one constant matrix, and 1 × 1 convolutions of channels-last values by constant weights.
/// panel_matmul.cpp
kernel_ptr make_panel_matmul(const kernel_request& request);
kernel_ptr make_pointwise_conv(const kernel_request& request);
/// MatMul, Gemm and troupe.MatMul with few rows: bound by reading the right operand, which is used as it is. gemv.cpp
kernel_ptr make_gemv(const kernel_request& request);
/// MaxPool of bytes, AveragePool of small windows. dnnl_pool.cpp
kernel_ptr make_dnnl_pool(const kernel_request& request);
/// MaxPool and GlobalMaxPool of floats; AveragePool of small windows of channels-last floats. pool.cpp
kernel_ptr make_max_pool(const kernel_request& request);
kernel_ptr make_pixel_mean(const kernel_request& request);
/// GlobalAveragePool of floats. pool.cpp
kernel_ptr make_plane_mean(const kernel_request& request);
/// Elementwise operators and chains of them. elementwise.cpp
kernel_ptr make_elementwise(const kernel_request& request);
/// troupe.Reorder. dnnl_reorder.cpp
kernel_ptr make_channel_interleave(const kernel_request& request);
kernel_ptr make_dnnl_reorder(const kernel_request& request);
/// troupe.Attention. attention.cpp
kernel_ptr make_attention(const kernel_request& request);
kernel_ptr make_onnx_attention(const kernel_request& request);
/// Softmax over the last axes; LayerNormalization and RMSNormalization. rows.cpp
kernel_ptr make_softmax(const kernel_request& request);
kernel_ptr make_row_norm(const kernel_request& request);
/// InstanceNormalization and GroupNormalization of channels-last values, with their activation. group_norm.cpp
kernel_ptr make_group_norm(const kernel_request& request);
/// Concat along the channels of channels-last values. concat.cpp
kernel_ptr make_channels_last_concat(const kernel_request& request);
/// Convolutions of channels-last bytes with constant weights: depthwise ones, and all. int8_depthwise.cpp,
/// int8_conv.cpp
kernel_ptr make_int8_depthwise(const kernel_request& request);
kernel_ptr make_int8_conv(const kernel_request& request);
/// Matrix products of bytes. int8_matmul.cpp
kernel_ptr make_int8_matmul(const kernel_request& request);
/// Both kinds where a sum with a residual follows. int8_sum.cpp
kernel_ptr make_int8_sum(const kernel_request& request);
/// troupe.QuantizedElementwise; QuantizeLinear; DynamicQuantizeLinear. int8_elementwise.cpp, dynamic_quantize.cpp
kernel_ptr make_int8_elementwise(const kernel_request& request);
kernel_ptr make_quantize(const kernel_request& request);
kernel_ptr make_dynamic_quantize(const kernel_request& request);
/// MatMulNBits of float operands. matmul_nbits.cpp
kernel_ptr make_matmul_nbits(const kernel_request& request);
/// troupe.Projections: the kernels of its parts. projections.cpp
kernel_ptr make_projections(const kernel_request& request);
/// troupe.AttentionProjection, the same way.
kernel_ptr make_attention_projection(const kernel_request& request);
/// LSTM, GRU and RNN with their default activations (RNN: also Relu) over whole sequences. recurrent.cpp
kernel_ptr make_lstm(const kernel_request& request);
kernel_ptr make_gru(const kernel_request& request);
kernel_ptr make_rnn(const kernel_request& request);

} // namespace troupe
