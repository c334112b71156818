#include "launch/launch_table.hpp"

#include "launch/elementwise.hpp"
#include "launch/launches.hpp"
#include "ops/onnx/reduce.hpp"
#include "ops/onnx/softmax.hpp"

#include <algorithm>

namespace troupe {
namespace {

template <reduce_kind Kind, bool AxesInput>
launch_lists reduce(const gpu_call& call) {
  return reduce_launches(call, Kind, AxesInput);
}

template <softmax_kind Kind, bool Flatten>
launch_lists softmax(const gpu_call& call) {
  return softmax_launches(call, Kind, Flatten);
}

/// Besides these, every scalar function (ops/scalar_function.hpp) has a rule.
// clang-format off
constexpr auto rules = std::to_array<implementation<launch_rule>>({
    {"", "And", and_launches, 7},
    {"", "ArgMax", arg_max_launches},
    {"", "ArgMin", arg_min_launches},
    {"", "Attention", attention_launches},
    {"", "AveragePool", average_pool_launches},
    {"", "BatchNormalization", batch_norm_launches},
    {"", "BitCast", bit_cast_launches},
    {"", "BitShift", bit_shift_launches},
    {"", "Cast", cast_launches},
    {"", "CastLike", cast_launches},
    {"", "Clip", clip_launches, 11},
    {"", "Col2Im", col2im_launches},
    {"", "Concat", concat_launches},
    {"", "ConstantOfShape", constant_of_shape_launches},
    {"", "Conv", conv_launches},
    {"", "ConvInteger", conv_integer_launches},
    {"", "ConvTranspose", conv_transpose_launches},
    {"", "CumProd", cum_prod_launches},
    {"", "CumSum", cum_sum_launches},
    {"", "DFT", dft_17_launches},
    {"", "DFT", dft_launches, 20},
    {"", "DeformConv", deform_conv_launches},
    {"", "DepthToSpace", depth_to_space_launches},
    {"", "DequantizeLinear", dequantize_launches},
    {"", "Det", det_launches},
    {"", "Dropout", dropout_launches},
    {"", "DynamicQuantizeLinear", dynamic_quantize_launches},
    {"", "Einsum", einsum_launches},
    {"", "Equal", equal_launches, 7},
    {"", "Expand", expand_launches},
    {"", "EyeLike", eye_like_launches},
    {"", "GRU", gru_launches},
    {"", "Gather", gather_launches},
    {"", "GatherElements", gather_elements_launches},
    {"", "GatherND", gather_nd_launches},
    {"", "Gemm", gemm_launches},
    {"", "GlobalAveragePool", global_average_pool_launches},
    {"", "GlobalLpPool", global_lp_pool_launches},
    {"", "GlobalMaxPool", global_max_pool_launches},
    {"", "Greater", greater_launches, 7},
    {"", "GreaterOrEqual", greater_or_equal_launches},
    {"", "GridSample", grid_sample_launches},
    {"", "GroupNormalization", group_norm_launches},
    {"", "Hardmax", softmax<softmax_kind::hardmax, true>},
    {"", "Hardmax", softmax<softmax_kind::hardmax, false>, 13},
    {"", "InstanceNormalization", instance_norm_launches},
    {"", "IsInf", is_inf_launches},
    {"", "IsNaN", is_nan_launches},
    {"", "LRN", lrn_launches},
    {"", "LSTM", lstm_launches},
    {"", "LayerNormalization", layer_norm_launches},
    {"", "Less", less_launches, 7},
    {"", "LessOrEqual", less_or_equal_launches},
    {"", "LinearAttention", linear_attention_launches},
    {"", "LogSoftmax", softmax<softmax_kind::log_softmax, true>},
    {"", "LogSoftmax", softmax<softmax_kind::log_softmax, false>, 13},
    {"", "LpNormalization", lp_norm_launches},
    {"", "LpPool", lp_pool_launches},
    {"", "MatMul", matmul_launches},
    {"", "MatMulInteger", matmul_integer_launches},
    {"", "MaxPool", max_pool_launches},
    {"", "MaxUnpool", max_unpool_launches},
    {"", "Mean", mean_launches},
    {"", "MeanVarianceNormalization", mvn_launches},
    {"", "NegativeLogLikelihoodLoss", nll_loss_launches},
    {"", "Not", not_launches},
    {"", "OneHot", one_hot_launches},
    {"", "Or", or_launches, 7},
    {"", "PRelu", old_prelu_launches},
    {"", "Pad", pad_launches},
    {"", "Pow", power_launches, 7},
    {"", "QLinearConv", qlinear_conv_launches},
    {"", "QLinearMatMul", qlinear_matmul_launches},
    {"", "QuantizeLinear", quantize_launches},
    {"", "RMSNormalization", rms_norm_launches},
    {"", "RNN", rnn_launches},
    {"", "Range", range_launches},
    {"", "ReduceL1", reduce<reduce_kind::l1, false>},
    {"", "ReduceL1", reduce<reduce_kind::l1, true>, 18},
    {"", "ReduceL2", reduce<reduce_kind::l2, false>},
    {"", "ReduceL2", reduce<reduce_kind::l2, true>, 18},
    {"", "ReduceLogSum", reduce<reduce_kind::log_sum, false>},
    {"", "ReduceLogSum", reduce<reduce_kind::log_sum, true>, 18},
    {"", "ReduceLogSumExp", reduce<reduce_kind::log_sum_exp, false>},
    {"", "ReduceLogSumExp", reduce<reduce_kind::log_sum_exp, true>, 18},
    {"", "ReduceMax", reduce<reduce_kind::maximum, false>},
    {"", "ReduceMax", reduce<reduce_kind::maximum, true>, 18},
    {"", "ReduceMean", reduce<reduce_kind::mean, false>},
    {"", "ReduceMean", reduce<reduce_kind::mean, true>, 18},
    {"", "ReduceMin", reduce<reduce_kind::minimum, false>},
    {"", "ReduceMin", reduce<reduce_kind::minimum, true>, 18},
    {"", "ReduceProd", reduce<reduce_kind::product, false>},
    {"", "ReduceProd", reduce<reduce_kind::product, true>, 18},
    {"", "ReduceSum", reduce<reduce_kind::sum, false>},
    {"", "ReduceSum", reduce<reduce_kind::sum, true>, 13},
    {"", "ReduceSumSquare", reduce<reduce_kind::sum_square, false>},
    {"", "ReduceSumSquare", reduce<reduce_kind::sum_square, true>, 18},
    {"", "Resize", upsample_launches},
    {"", "Resize", resize_launches, 11},
    {"", "ReverseSequence", reverse_sequence_launches},
    {"", "RoiAlign", roi_align_10_launches},
    {"", "RoiAlign", roi_align_launches, 16},
    {"", "RotaryEmbedding", rotary_embedding_launches},
    {"", "STFT", stft_launches},
    {"", "Scatter", scatter_elements_launches},
    {"", "ScatterElements", scatter_elements_launches},
    {"", "ScatterND", scatter_nd_launches},
    {"", "Slice", slice_launches},
    {"", "Softmax", softmax<softmax_kind::softmax, true>},
    {"", "Softmax", softmax<softmax_kind::softmax, false>, 13},
    {"", "SpaceToDepth", space_to_depth_launches},
    {"", "Split", split_launches},
    {"", "TensorScatter", tensor_scatter_launches},
    {"", "Tile", tile_launches},
    {"", "TopK", top_k_launches},
    {"", "Transpose", transpose_launches},
    {"", "Trilu", trilu_launches},
    {"", "Upsample", upsample_launches},
    {"", "Where", where_launches},
    {"", "Xor", xor_launches, 7},
    {"com.microsoft", "MatMulNBits", matmul_nbits_launches},
    {"troupe", "Append", append_launches},
    {"troupe", "Attention", fused_attention_launches},
    {"troupe", "AttentionProjection", attention_projection_launches},
    {"troupe", "Conv", conv_launches},
    {"troupe", "ConvTranspose", conv_transpose_launches},
    {"troupe", "Elementwise", fused_elementwise_launches},
    {"troupe", "GroupNormalization", group_norm_launches},
    {"troupe", "InstanceNormalization", instance_norm_launches},
    {"troupe", "MatMul", fused_matmul_launches},
    {"troupe", "Projections", projection_launches},
    {"troupe", "QuantizedConv", quantized_conv_launches},
    {"troupe", "QuantizedElementwise", quantized_elementwise_launches},
    {"troupe", "QuantizedMatMul", quantized_matmul_launches},
    {"troupe", "Reorder", reorder_launches},
    {"troupe", "Rotary", fused_rotary_launches},
    {"troupe", "Task", task_launches},
    {"troupe", "ToFloat16", to_float16_launches},
});
// clang-format on

/// Rules that know outputs which are parts of larger tensors.
constexpr auto part_writers =
    std::to_array<launch_rule>({conv_launches, fused_matmul_launches, gemm_launches, matmul_launches});

bool writes_parts(launch_rule rule) {
  return std::find(part_writers.begin(), part_writers.end(), rule) != part_writers.end();
}

} // namespace

implementation_table<launch_rule>& launch_table() {
  static auto& table =
      *new implementation_table<launch_rule>([] { // never destroyed: engines may live in static objects
        std::vector<implementation<launch_rule>> all = scalar_rules();
        all.insert(all.end(), rules.begin(), rules.end());
        return all;
      }());
  return table;
}

bool has_launch_rules(const op_def& def) {
  return !launch_table().of(def).empty();
}

launch_lists launches_of(const op_def& def, const gpu_call& call) {
  launch_lists all;
  const bool parts = std::any_of(call.outputs.begin(), call.outputs.end(), [](auto& o) { return o.is_part(); });
  for (const launch_rule rule : launch_table().of(def))
    if (!parts || writes_parts(rule))
      add_lists(all, rule(call));
  return all;
}

} // namespace troupe
