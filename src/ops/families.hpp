// What family files are made of: rows, and one function a file that returns its table of them, for registry.cpp.
#pragma once

#include "ops/op.hpp"

namespace troupe {

inline constexpr std::string_view machine_learning = "ai.onnx.ml";

/// Returns a row: what every operator states, then what it states by the names of its fields.
constexpr op_def op_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                        void (*reference)(kernel_context&), op_def rest = {}) {
  rest.name = name;
  rest.since = since;
  rest.infer = infer;
  rest.reference = reference;
  return rest;
}

// scripts/check: sorted
std::span<const op_def> arg_reduce_ops();
std::span<const op_def> attention_ops();
std::span<const op_def> attn_lstm_ops();
std::span<const op_def> binary_ops();
std::span<const op_def> cast_ops();
std::span<const op_def> cdist_ops();
std::span<const op_def> col2im_ops();
std::span<const op_def> composed_ops();
std::span<const op_def> concat_ops();
std::span<const op_def> contrib_attention_ops();
std::span<const op_def> contrib_elementwise_ops();
std::span<const op_def> contrib_gate_ops();
std::span<const op_def> contrib_norm_ops();
std::span<const op_def> contrib_plain_ops();
std::span<const op_def> contrib_product_ops();
std::span<const op_def> contrib_quantized_ops();
std::span<const op_def> control_ops();
std::span<const op_def> conv_ops();
std::span<const op_def> conv_transpose_ops();
std::span<const op_def> crop_and_resize_ops();
std::span<const op_def> cumulative_ops();
std::span<const op_def> decoder_attention_ops();
std::span<const op_def> deform_conv_ops();
std::span<const op_def> det_ops();
std::span<const op_def> dropout_ops();
std::span<const op_def> dynamic_time_warping_ops();
std::span<const op_def> einsum_ops();
std::span<const op_def> experimental_ops();
std::span<const op_def> flex_attention_ops();
std::span<const op_def> fourier_ops();
std::span<const op_def> fused_attention_ops();
std::span<const op_def> fused_conv_ops();
std::span<const op_def> fused_elementwise_ops();
std::span<const op_def> fused_matmul_ops();
std::span<const op_def> fused_quantized_elementwise_ops();
std::span<const op_def> fused_quantized_ops();
std::span<const op_def> fused_rotary_ops();
std::span<const op_def> gather_block_quantized_ops();
std::span<const op_def> gather_ops();
std::span<const op_def> grid_sample_ops();
std::span<const op_def> group_query_attention_ops();
std::span<const op_def> image_decoder_ops();
std::span<const op_def> inverse_ops();
std::span<const op_def> layer_norm_ops();
std::span<const op_def> linear_attention_ops();
std::span<const op_def> local_norm_ops();
std::span<const op_def> logic_ops();
std::span<const op_def> loss_ops();
std::span<const op_def> matmul_bnb4_ops();
std::span<const op_def> matmul_fpq4_ops();
std::span<const op_def> matmul_nbits_ops();
std::span<const op_def> matmul_ops();
std::span<const op_def> max_unpool_ops();
std::span<const op_def> mixture_ops();
std::span<const op_def> ml_feature_ops();
std::span<const op_def> ml_label_ops();
std::span<const op_def> ml_linear_ops();
std::span<const op_def> ml_map_ops();
std::span<const op_def> ml_svm_ops();
std::span<const op_def> ml_tree_ops();
std::span<const op_def> mrotary_ops();
std::span<const op_def> murmur_hash_ops();
std::span<const op_def> ngram_hash_ops();
std::span<const op_def> ngram_ops();
std::span<const op_def> non_max_suppression_ops();
std::span<const op_def> normalization_ops();
std::span<const op_def> optional_ops();
std::span<const op_def> pad_ops();
std::span<const op_def> pool_ops();
std::span<const op_def> pow_ops();
std::span<const op_def> projection_ops();
std::span<const op_def> quantize_ops();
std::span<const op_def> quantized_conv_ops();
std::span<const op_def> quantized_matmul_ops();
std::span<const op_def> random_ops();
std::span<const op_def> recurrent_ops();
std::span<const op_def> reduce_ops();
std::span<const op_def> regex_ops();
std::span<const op_def> reorder_ops();
std::span<const op_def> reshape_ops();
std::span<const op_def> resize_ops();
std::span<const op_def> roi_align_ops();
std::span<const op_def> rotary_ops();
std::span<const op_def> scatter_ops();
std::span<const op_def> select_ops();
std::span<const op_def> sequence_ops();
std::span<const op_def> shape_ops();
std::span<const op_def> slice_ops();
std::span<const op_def> softmax_ops();
std::span<const op_def> space_depth_ops();
std::span<const op_def> sparse_attention_ops();
std::span<const op_def> spectral_ops();
std::span<const op_def> task_ops();
std::span<const op_def> text_ops();
std::span<const op_def> tf_idf_ops();
std::span<const op_def> tile_ops();
std::span<const op_def> to_float16_ops();
std::span<const op_def> tokenizer_ops();
std::span<const op_def> top_k_ops();
std::span<const op_def> transpose_ops();
std::span<const op_def> unary_ops();
std::span<const op_def> variadic_ops();
std::span<const op_def> word_conv_embedding_ops();

} // namespace troupe
