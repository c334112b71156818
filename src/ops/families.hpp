// What family files are made of: rows, and one table of them a file, for registry.cpp.
#pragma once

#include "ops/op.hpp"

namespace troupe {

inline constexpr std::string_view machine_learning = "ai.onnx.ml";
inline constexpr std::string_view microsoft = "com.microsoft";
inline constexpr std::string_view preview = "ai.onnx.preview";

/// Returns a row: what every operator states, then what it states by the names of its fields.
constexpr op_def op_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                        void (*reference)(kernel_context&), op_def rest = {}) {
  rest.name = name;
  rest.since = since;
  rest.infer = infer;
  rest.reference = reference;
  return rest;
}

/// A family's rows. Constants, since a function for each would bring pages of every family's code into memory when a
/// process starts.
using op_table = std::span<const op_def>;

// scripts/check: sorted
extern const op_table arg_reduce_ops;
extern const op_table attention_ops;
extern const op_table attn_lstm_ops;
extern const op_table binary_ops;
extern const op_table cast_ops;
extern const op_table cdist_ops;
extern const op_table col2im_ops;
extern const op_table composed_ops;
extern const op_table concat_ops;
extern const op_table contrib_attention_ops;
extern const op_table contrib_elementwise_ops;
extern const op_table contrib_gate_ops;
extern const op_table contrib_norm_ops;
extern const op_table contrib_plain_ops;
extern const op_table contrib_product_ops;
extern const op_table contrib_quantized_ops;
extern const op_table control_ops;
extern const op_table conv_ops;
extern const op_table conv_transpose_ops;
extern const op_table crop_and_resize_ops;
extern const op_table cumulative_ops;
extern const op_table decoder_attention_ops;
extern const op_table deferred_ops;
extern const op_table deform_conv_ops;
extern const op_table det_ops;
extern const op_table dropout_ops;
extern const op_table dynamic_time_warping_ops;
extern const op_table einsum_ops;
extern const op_table experimental_ops;
extern const op_table flex_attention_ops;
extern const op_table fourier_ops;
extern const op_table fused_attention_ops;
extern const op_table fused_conv_ops;
extern const op_table fused_elementwise_ops;
extern const op_table fused_matmul_ops;
extern const op_table fused_quantized_elementwise_ops;
extern const op_table fused_quantized_ops;
extern const op_table fused_rotary_ops;
extern const op_table gather_block_quantized_ops;
extern const op_table gather_ops;
extern const op_table grid_sample_ops;
extern const op_table group_query_attention_ops;
extern const op_table image_decoder_ops;
extern const op_table inverse_ops;
extern const op_table layer_norm_ops;
extern const op_table linear_attention_ops;
extern const op_table local_norm_ops;
extern const op_table logic_ops;
extern const op_table loss_ops;
extern const op_table matmul_bnb4_ops;
extern const op_table matmul_fpq4_ops;
extern const op_table matmul_nbits_ops;
extern const op_table matmul_ops;
extern const op_table max_unpool_ops;
extern const op_table mixture_ops;
extern const op_table ml_feature_ops;
extern const op_table ml_label_ops;
extern const op_table ml_linear_ops;
extern const op_table ml_map_ops;
extern const op_table ml_svm_ops;
extern const op_table ml_tree_ops;
extern const op_table mrotary_ops;
extern const op_table murmur_hash_ops;
extern const op_table ngram_hash_ops;
extern const op_table ngram_ops;
extern const op_table non_max_suppression_ops;
extern const op_table normalization_ops;
extern const op_table optional_ops;
extern const op_table pad_ops;
extern const op_table pool_ops;
extern const op_table pow_ops;
extern const op_table projection_ops;
extern const op_table quantize_ops;
extern const op_table quantized_conv_ops;
extern const op_table quantized_matmul_ops;
extern const op_table random_ops;
extern const op_table recurrent_ops;
extern const op_table reduce_ops;
extern const op_table regex_ops;
extern const op_table reorder_ops;
extern const op_table reshape_ops;
extern const op_table resize_ops;
extern const op_table roi_align_ops;
extern const op_table rotary_ops;
extern const op_table scatter_ops;
extern const op_table select_ops;
extern const op_table sequence_ops;
extern const op_table shape_ops;
extern const op_table slice_ops;
extern const op_table softmax_ops;
extern const op_table space_depth_ops;
extern const op_table sparse_attention_ops;
extern const op_table spectral_ops;
extern const op_table task_ops;
extern const op_table text_ops;
extern const op_table tf_idf_ops;
extern const op_table tile_ops;
extern const op_table to_float16_ops;
extern const op_table tokenizer_ops;
extern const op_table top_k_ops;
extern const op_table transpose_ops;
extern const op_table unary_ops;
extern const op_table variadic_ops;
extern const op_table word_conv_embedding_ops;

} // namespace troupe
