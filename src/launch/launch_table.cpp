#include "launch/launch_table.hpp"

#include "launch/integer.hpp"
#include "launch/launches.hpp"
#include "ops/reduce.hpp"
#include "ops/softmax.hpp"

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

// clang-format off
constexpr auto rules = std::to_array<implementation<launch_rule>>({
    {"", "Abs", launch_numeric<elementwise_code::absolute, integer_code::absolute>},
    {"", "Acos", launch_step<gpu_step::acos>},
    {"", "Acosh", launch_step<gpu_step::acosh>},
    {"", "Add", launch_numeric<elementwise_code::add, integer_code::add>, 7},
    {"", "And", and_launches, 7},
    {"", "ArgMax", arg_max_launches},
    {"", "ArgMin", arg_min_launches},
    {"", "Asin", launch_step<gpu_step::asin>},
    {"", "Asinh", launch_step<gpu_step::asinh>},
    {"", "Atan", launch_step<gpu_step::atan>},
    {"", "Atanh", launch_step<gpu_step::atanh>},
    {"", "Attention", attention_launches},
    {"", "AveragePool", average_pool_launches},
    {"", "BatchNormalization", batch_norm_launches},
    {"", "BitShift", bit_shift_launches},
    {"", "BitwiseAnd", launch_integer<integer_code::bits_and>},
    {"", "BitwiseNot", launch_integer<integer_code::complement>},
    {"", "BitwiseOr", launch_integer<integer_code::bits_or>},
    {"", "BitwiseXor", launch_integer<integer_code::bits_xor>},
    {"", "Cast", cast_launches},
    {"", "CastLike", cast_launches},
    {"", "Ceil", launch_step<elementwise_code::ceiling>},
    {"", "Celu", celu_launches},
    {"", "Clip", clip_1_launches},
    {"", "Clip", clip_launches, 11},
    {"", "Concat", concat_launches},
    {"", "ConstantOfShape", constant_of_shape_launches},
    {"", "Conv", conv_launches},
    {"", "ConvInteger", conv_integer_launches},
    {"", "ConvTranspose", conv_transpose_launches},
    {"", "Cos", launch_step<elementwise_code::cosine>},
    {"", "Cosh", launch_step<gpu_step::cosh>},
    {"", "CumSum", cum_sum_launches},
    {"", "DepthToSpace", depth_to_space_launches},
    {"", "DequantizeLinear", dequantize_launches},
    {"", "Div", launch_numeric<elementwise_code::divide, integer_code::divide>, 7},
    {"", "DynamicQuantizeLinear", dynamic_quantize_launches},
    {"", "Elu", elu_launches},
    {"", "Equal", equal_launches, 7},
    {"", "Erf", launch_step<elementwise_code::error_function>},
    {"", "Exp", launch_step<elementwise_code::exponential>},
    {"", "Expand", expand_launches},
    {"", "EyeLike", eye_like_launches},
    {"", "Floor", launch_step<elementwise_code::floor>},
    {"", "GRU", gru_launches},
    {"", "Gather", gather_launches},
    {"", "GatherElements", gather_elements_launches},
    {"", "GatherND", gather_nd_launches},
    {"", "Gelu", gelu_launches},
    {"", "Gemm", gemm_launches},
    {"", "GlobalAveragePool", global_average_pool_launches},
    {"", "GlobalLpPool", global_lp_pool_launches},
    {"", "GlobalMaxPool", global_max_pool_launches},
    {"", "Greater", greater_launches, 7},
    {"", "GreaterOrEqual", greater_or_equal_launches},
    {"", "GroupNormalization", group_norm_launches},
    {"", "HardSigmoid", hard_sigmoid_launches},
    {"", "HardSwish", launch_step<elementwise_code::hard_swish>},
    {"", "Hardmax", softmax<softmax_kind::hardmax, true>},
    {"", "Hardmax", softmax<softmax_kind::hardmax, false>, 13},
    {"", "InstanceNormalization", instance_norm_launches},
    {"", "IsInf", is_inf_launches},
    {"", "IsNaN", is_nan_launches},
    {"", "LRN", lrn_launches},
    {"", "LSTM", lstm_launches},
    {"", "LayerNormalization", layer_norm_launches},
    {"", "LeakyRelu", leaky_relu_launches},
    {"", "Less", less_launches, 7},
    {"", "LessOrEqual", less_or_equal_launches},
    {"", "Log", launch_step<elementwise_code::logarithm>},
    {"", "LogSoftmax", softmax<softmax_kind::log_softmax, true>},
    {"", "LogSoftmax", softmax<softmax_kind::log_softmax, false>, 13},
    {"", "LpNormalization", lp_norm_launches},
    {"", "LpPool", lp_pool_launches},
    {"", "MatMul", matmul_launches},
    {"", "MatMulInteger", matmul_integer_launches},
    {"", "Max", max_launches},
    {"", "MaxPool", max_pool_launches},
    {"", "Mean", mean_launches},
    {"", "MeanVarianceNormalization", mvn_launches},
    {"", "Min", min_launches},
    {"", "Mish", launch_step<gpu_step::mish>},
    {"", "Mod", modulo_launches},
    {"", "Mul", launch_numeric<elementwise_code::multiply, integer_code::multiply>, 7},
    {"", "Neg", launch_numeric<elementwise_code::negate, integer_code::negate>},
    {"", "Not", not_launches},
    {"", "OneHot", one_hot_launches},
    {"", "Or", or_launches, 7},
    {"", "PRelu", launch_numeric<elementwise_code::leaky_relu, integer_code::scaled_relu>, 7},
    {"", "Pad", pad_launches},
    {"", "Pow", power_launches, 7},
    {"", "QLinearConv", qlinear_conv_launches},
    {"", "QLinearMatMul", qlinear_matmul_launches},
    {"", "QuantizeLinear", quantize_launches},
    {"", "RMSNormalization", rms_norm_launches},
    {"", "RNN", rnn_launches},
    {"", "Range", range_launches},
    {"", "Reciprocal", launch_step<elementwise_code::reciprocal>},
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
    {"", "Relu", launch_numeric<elementwise_code::relu, integer_code::relu>},
    {"", "Resize", upsample_launches},
    {"", "Resize", resize_launches, 11},
    {"", "ReverseSequence", reverse_sequence_launches},
    {"", "RotaryEmbedding", rotary_embedding_launches},
    {"", "Round", launch_step<gpu_step::round>},
    {"", "Scatter", scatter_elements_launches},
    {"", "ScatterElements", scatter_elements_launches},
    {"", "ScatterND", scatter_nd_launches},
    {"", "Selu", selu_1_launches},
    {"", "Selu", selu_launches, 6},
    {"", "Shrink", shrink_launches},
    {"", "Sigmoid", launch_step<elementwise_code::sigmoid>},
    {"", "Sign", launch_numeric<gpu_step::sign, integer_code::sign>},
    {"", "Sin", launch_step<elementwise_code::sine>},
    {"", "Sinh", launch_step<gpu_step::sinh>},
    {"", "Slice", slice_launches},
    {"", "Softmax", softmax<softmax_kind::softmax, true>},
    {"", "Softmax", softmax<softmax_kind::softmax, false>, 13},
    {"", "Softplus", launch_step<elementwise_code::softplus>},
    {"", "Softsign", launch_step<gpu_step::softsign>},
    {"", "SpaceToDepth", space_to_depth_launches},
    {"", "Split", split_launches},
    {"", "Sqrt", launch_step<elementwise_code::square_root>},
    {"", "Sub", launch_numeric<elementwise_code::subtract, integer_code::subtract>, 7},
    {"", "Sum", sum_launches},
    {"", "Swish", swish_launches},
    {"", "Tan", launch_step<gpu_step::tan>},
    {"", "Tanh", launch_step<elementwise_code::tangent_h>},
    {"", "TensorScatter", tensor_scatter_launches},
    {"", "ThresholdedRelu", thresholded_relu_launches},
    {"", "Tile", tile_launches},
    {"", "TopK", top_k_launches},
    {"", "Transpose", transpose_launches},
    {"", "Trilu", trilu_launches},
    {"", "Upsample", upsample_launches},
    {"", "Where", where_launches},
    {"", "Xor", xor_launches, 7},
    {"com.microsoft", "MatMulNBits", matmul_nbits_launches},
    {"troupe", "Attention", fused_attention_launches},
    {"troupe", "Conv", conv_launches},
    {"troupe", "ConvTranspose", conv_transpose_launches},
    {"troupe", "Elementwise", fused_elementwise_launches},
    {"troupe", "MatMul", fused_matmul_launches},
    {"troupe", "Reorder", reorder_launches},
    {"troupe", "Rotary", fused_rotary_launches},
    {"troupe", "ToFloat16", to_float16_launches},
});
// clang-format on

} // namespace

implementation_table<launch_rule>& launch_table() {
  static auto& table =
      *new implementation_table<launch_rule>(rules); // never destroyed: engines may live in static objects
  return table;
}

bool has_launch_rules(const op_def& def) {
  return !launch_table().of(def).empty();
}

launch_lists launches_of(const op_def& def, const gpu_call& call) {
  launch_lists all;
  for (const launch_rule rule : launch_table().of(def))
    for (launch_list& list : rule(call))
      all.push_back(std::move(list));
  return all;
}

} // namespace troupe
