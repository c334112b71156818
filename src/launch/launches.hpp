// Launch rules, one function an operator, or several that share one: see launch_table.cpp. Defined in the file of the
// family.
#pragma once

#include "launch/launch.hpp"
#include "ops/onnx/reduce.hpp"
#include "ops/onnx/softmax.hpp"

namespace troupe {

// scripts/check: sorted
launch_lists and_launches(const gpu_call& call);
launch_lists append_launches(const gpu_call& call);
launch_lists arg_max_launches(const gpu_call& call);
launch_lists arg_min_launches(const gpu_call& call);
launch_lists attention_launches(const gpu_call& call);
launch_lists attention_projection_launches(const gpu_call& call);
launch_lists average_pool_launches(const gpu_call& call);
launch_lists batch_norm_launches(const gpu_call& call);
launch_lists bit_cast_launches(const gpu_call& call);
launch_lists bit_shift_launches(const gpu_call& call);
launch_lists cast_launches(const gpu_call& call);
launch_lists clip_launches(const gpu_call& call);
launch_lists col2im_launches(const gpu_call& call);
launch_lists concat_launches(const gpu_call& call);
launch_lists constant_of_shape_launches(const gpu_call& call);
launch_lists conv_integer_launches(const gpu_call& call);
launch_lists conv_launches(const gpu_call& call);
launch_lists conv_transpose_launches(const gpu_call& call);
launch_lists cum_prod_launches(const gpu_call& call);
launch_lists cum_sum_launches(const gpu_call& call);
launch_lists deform_conv_launches(const gpu_call& call);
launch_lists depth_to_space_launches(const gpu_call& call);
launch_lists dequantize_launches(const gpu_call& call);
launch_lists det_launches(const gpu_call& call);
launch_lists dft_17_launches(const gpu_call& call);
launch_lists dft_launches(const gpu_call& call);
launch_lists dropout_launches(const gpu_call& call);
launch_lists dynamic_quantize_launches(const gpu_call& call);
launch_lists einsum_launches(const gpu_call& call);
launch_lists equal_launches(const gpu_call& call);
launch_lists expand_launches(const gpu_call& call);
launch_lists eye_like_launches(const gpu_call& call);
launch_lists fused_attention_launches(const gpu_call& call);
launch_lists fused_elementwise_launches(const gpu_call& call);
launch_lists fused_matmul_launches(const gpu_call& call);
launch_lists fused_rotary_launches(const gpu_call& call);
launch_lists gather_elements_launches(const gpu_call& call);
launch_lists gather_launches(const gpu_call& call);
launch_lists gather_nd_launches(const gpu_call& call);
launch_lists gemm_launches(const gpu_call& call);
launch_lists global_average_pool_launches(const gpu_call& call);
launch_lists global_lp_pool_launches(const gpu_call& call);
launch_lists global_max_pool_launches(const gpu_call& call);
launch_lists greater_launches(const gpu_call& call);
launch_lists greater_or_equal_launches(const gpu_call& call);
launch_lists grid_sample_launches(const gpu_call& call);
launch_lists group_norm_launches(const gpu_call& call);
launch_lists gru_launches(const gpu_call& call);
launch_lists instance_norm_launches(const gpu_call& call);
launch_lists is_inf_launches(const gpu_call& call);
launch_lists is_nan_launches(const gpu_call& call);
launch_lists layer_norm_launches(const gpu_call& call);
launch_lists less_launches(const gpu_call& call);
launch_lists less_or_equal_launches(const gpu_call& call);
launch_lists linear_attention_launches(const gpu_call& call);
launch_lists lp_norm_launches(const gpu_call& call);
launch_lists lp_pool_launches(const gpu_call& call);
launch_lists lrn_launches(const gpu_call& call);
launch_lists lstm_launches(const gpu_call& call);
launch_lists matmul_integer_launches(const gpu_call& call);
launch_lists matmul_launches(const gpu_call& call);
launch_lists matmul_nbits_launches(const gpu_call& call);
launch_lists max_pool_launches(const gpu_call& call);
launch_lists max_unpool_launches(const gpu_call& call);
launch_lists mean_launches(const gpu_call& call);
launch_lists mvn_launches(const gpu_call& call);
launch_lists nll_loss_launches(const gpu_call& call);
launch_lists not_launches(const gpu_call& call);
launch_lists old_prelu_launches(const gpu_call& call);
launch_lists one_hot_launches(const gpu_call& call);
launch_lists or_launches(const gpu_call& call);
launch_lists pad_launches(const gpu_call& call);
launch_lists power_launches(const gpu_call& call);
launch_lists projection_launches(const gpu_call& call);
launch_lists qlinear_conv_launches(const gpu_call& call);
launch_lists qlinear_matmul_launches(const gpu_call& call);
launch_lists quantize_launches(const gpu_call& call);
launch_lists quantized_conv_launches(const gpu_call& call);
launch_lists quantized_elementwise_launches(const gpu_call& call);
launch_lists quantized_matmul_launches(const gpu_call& call);
launch_lists range_launches(const gpu_call& call);
launch_lists reorder_launches(const gpu_call& call);
launch_lists resize_launches(const gpu_call& call);
launch_lists reverse_sequence_launches(const gpu_call& call);
launch_lists rms_norm_launches(const gpu_call& call);
launch_lists rnn_launches(const gpu_call& call);
launch_lists roi_align_10_launches(const gpu_call& call);
launch_lists roi_align_launches(const gpu_call& call);
launch_lists rotary_embedding_launches(const gpu_call& call);
launch_lists scatter_elements_launches(const gpu_call& call);
launch_lists scatter_nd_launches(const gpu_call& call);
launch_lists slice_launches(const gpu_call& call);
launch_lists space_to_depth_launches(const gpu_call& call);
launch_lists split_launches(const gpu_call& call);
launch_lists stft_launches(const gpu_call& call);
launch_lists task_launches(const gpu_call& call);
launch_lists tensor_scatter_launches(const gpu_call& call);
launch_lists tile_launches(const gpu_call& call);
launch_lists to_float16_launches(const gpu_call& call);
launch_lists top_k_launches(const gpu_call& call);
launch_lists transpose_launches(const gpu_call& call);
launch_lists trilu_launches(const gpu_call& call);
launch_lists upsample_launches(const gpu_call& call);
launch_lists where_launches(const gpu_call& call);
launch_lists xor_launches(const gpu_call& call);

/// `axes_input`: axes are input 1, not an attribute.
launch_lists reduce_launches(const gpu_call& call, reduce_kind kind, bool axes_input);
/// `flatten`: the matrix form of opsets before 13.
launch_lists softmax_launches(const gpu_call& call, softmax_kind kind, bool flatten);

} // namespace troupe
