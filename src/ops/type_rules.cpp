#include "ops/type_rules.hpp"

#include "ops/expansion.hpp"
#include "ops/families.hpp"
#include "ops/implementation_table.hpp"
#include "ops/node_origin.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// One letter, and what it means in words.
struct type_class {
  char letter;
  dtype_set types;
  std::string_view words;
  bool shared = false; // by all inputs of the letter
};

constexpr dtype_set everything = ~dtype_set{0};

constexpr auto classes = std::to_array<type_class>({
    {'T', everything, "", true},
    {'U', everything, "", true},
    {'V', everything, "", true},
    {'W', everything, "", true},
    {'P', types::floats, "a float type", true},
    {'Q', types::floats, "a float type", true},
    {'b', types::boolean, "bool"},
    {'i', set_of(dtype::int32), "int32"},
    {'l', set_of(dtype::int64), "int64"},
    {'f', set_of(dtype::float32), "float32"},
    {'n', set_of(dtype::int32, dtype::int64), "int32 or int64"},
    {'F', types::floats, "a float type"},
    {'S', types::floats | set_of(dtype::float8e8m0), "a float type"},
    {'N', types::fixed_size, "a number or bool"},
    {'*', everything, ""},
});

/// What the operands of operators are whose operands are not all of one type.
// clang-format off
constexpr auto letters_of = std::to_array<implementation<std::string_view>>({
    {"", "AffineGrid", "Tl"},
    {"", "Attention", "TTUN**l"},
    {"", "BatchNormalization", "T"},
    {"", "BatchNormalization", "TPPQ", 14},
    {"", "CastLike", "T*"},
    {"", "CenterCropPad", "Tn"},
    {"", "Col2Im", "Tl"},
    {"", "Compress", "Tb"},
    {"", "ConvInteger", "TUTU"},
    {"", "CumProd", "Tn"},
    {"", "CumSum", "Tn"},
    {"", "DFT", "Tn"},
    {"", "DFT", "Tnl", 20},
    {"", "DequantizeLinear", "TST"},
    {"", "Dropout", "TFb"},
    {"", "DynamicSlice", "Tn"},
    {"", "Expand", "Tl"},
    {"", "GRU", "TTTTiT"},
    {"", "Gather", "Tn"},
    {"", "GatherElements", "Tn"},
    {"", "GatherND", "Tn"},
    {"", "GridSample", "TF"},
    {"", "LSTM", "TTTTiT"},
    {"", "LinearAttention", "TTTF"},
    {"", "MatMulInteger", "TUTU"},
    {"", "MaxUnpool", "Tl"},
    {"", "MelWeightMatrix", "TTTP"},
    {"", "NegativeLogLikelihoodLoss", "TnT"},
    {"", "NonMaxSuppression", "TTlT"},
    {"", "OneHot", "T*"},
    {"", "Pad", "TlTn"},
    {"", "Pow", "T"},
    {"", "Pow", "TN", 7},
    {"", "QLinearConv", "TfTUfUfVi"},
    {"", "QLinearMatMul", "TPTUPUPV"},
    {"", "QuantizeLinear", "TS*"},
    {"", "RMSNormalization", "TF"},
    {"", "RNN", "TTTTiT"},
    {"", "ReduceL1", "Tl"},
    {"", "ReduceL2", "Tl"},
    {"", "ReduceLogSum", "Tl"},
    {"", "ReduceLogSumExp", "Tl"},
    {"", "ReduceMax", "Tl"},
    {"", "ReduceMean", "Tl"},
    {"", "ReduceMin", "Tl"},
    {"", "ReduceProd", "Tl"},
    {"", "ReduceSum", "Tl"},
    {"", "ReduceSumSquare", "Tl"},
    {"", "Reshape", "Tl"},
    {"", "Resize", "Tf"},
    {"", "Resize", "TFfl", 11},
    {"", "ReverseSequence", "Tl"},
    {"", "RoiAlign", "TTl"},
    {"", "RotaryEmbedding", "TTTl"},
    {"", "STFT", "TnTn"},
    {"", "Scatter", "TnT"},
    {"", "ScatterElements", "TnT"},
    {"", "ScatterND", "TlT"},
    {"", "SequenceAt", "Tn"},
    {"", "SequenceErase", "Tn"},
    {"", "SequenceInsert", "T*n"},
    {"", "SimplifiedLayerNormalization", "TF"},
    {"", "Slice", "Tn"},
    {"", "SoftmaxCrossEntropyLoss", "TnT"},
    {"", "Split", "Tl"},
    {"", "SplitToSequence", "Tn"},
    {"", "Squeeze", "Tl"},
    {"", "TensorScatter", "TTl"},
    {"", "Tile", "T*"},
    {"", "Tile", "Tl", 6},
    {"", "TopK", "Tl"},
    {"", "Trilu", "Tl"},
    {"", "Unsqueeze", "Tl"},
    {"", "Upsample", "Tf"},
    {"", "Where", "bU"},
    {machine_learning, "ArrayFeatureExtractor", "Tl"},
    {machine_learning, "CastMap", "T*"},
    {machine_learning, "DictVectorizer", "T*"},
    {microsoft, "AttnLSTM", "TTTTiTTTTTTTiT"},
    {microsoft, "Attention", "TTTiT"},
    {microsoft, "ConvTransposeWithDynamicPads", "TTlT"},
    {microsoft, "CropAndResize", "TTi"},
    {microsoft, "DecoderMaskedMultiHeadAttention", "TTTiTTTiiiT"},
    {microsoft, "DequantizeLinear", "TST"},
    {microsoft, "DynamicQuantizeLSTM", "TUUTiTTTTUTU"},
    {microsoft, "DynamicQuantizeMatMul", "TUTUT"},
    {microsoft, "EmbedLayerNormalization", "iiUUUUUi"},
    {microsoft, "ExpandDims", "Ti"},
    {microsoft, "GatherBlockQuantized", "TnFT"},
    {microsoft, "GatherND", "Tn"},
    {microsoft, "GroupQueryAttention", "TTT**iiTTlTTffT"},
    {microsoft, "LinearAttention", "TTTF"},
    {microsoft, "LinearAttentionGate", "TFFF"},
    {microsoft, "MRotaryEmbedding", "TlT"},
    {microsoft, "NGramRepeatBlock", "TF"},
    {microsoft, "MatMulBnb4", "TUT"},
    {microsoft, "MatMulFpQ4", "TUl"},
    {microsoft, "MatMulIntegerToFloat", "TUffTUf"},
    {microsoft, "MatMulNBits", "TUT*iT"},
    {microsoft, "MaxpoolWithMask", "Ti"},
    {microsoft, "MultiHeadAttention", "TTTTiTTTi"},
    {microsoft, "Pad", "TlT"},
    {microsoft, "QAttention", "TUfffiTUf"},
    {microsoft, "QEmbedLayerNormalization", "iiUUUUUifffffU"},
    {microsoft, "QGemm", "TfTUfUif*"},
    {microsoft, "QLinearAdd", "TfTTfTfT"},
    {microsoft, "QLinearAveragePool", "TfTfT"},
    {microsoft, "QLinearConcat", "fU(*f*)"},
    {microsoft, "QLinearConv", "TfTUfUfVi"},
    {microsoft, "QLinearGlobalAveragePool", "TfTfT"},
    {microsoft, "QLinearLeakyRelu", "TfTfT"},
    {microsoft, "QLinearMul", "TfTTfTfT"},
    {microsoft, "QLinearSigmoid", "TfTfT"},
    {microsoft, "QLinearSoftmax", "TfTfT"},
    {microsoft, "QLinearWhere", "bUfUUfUfU"},
    {microsoft, "QMoE", "TTUVTUVTUVTUUUT"},
    {microsoft, "QuantizeLinear", "TS*"},
    {microsoft, "RelativePositionBias", "Tl"},
    {microsoft, "RotaryEmbedding", "TlT"},
    {microsoft, "SparseAttention", "TTTTTiiiiT"},
    {microsoft, "Trilu", "Tl"},
    {microsoft, "WordConvEmbedding", "if"},
    {"troupe", "Attention", "TTTTU"},
    {"troupe", "AttentionProjection", "TTTTUUT"},
    {"troupe", "Deferred", "*"},
    {"troupe", "Projections", "*"},
    {"troupe", "QuantizedConv", "*"},
    {"troupe", "QuantizedElementwise", "*"},
    {"troupe", "QuantizedMatMul", "*"},
});
// clang-format on

/// Never destroyed: engines in static objects run to the end of the process.
const implementation_table<std::string_view>& table() {
  static const auto& built = *new implementation_table<std::string_view>(letters_of);
  return built;
}

const type_class& class_of(char letter) {
  const auto found = std::ranges::find(classes, letter, &type_class::letter);
  expects(found != classes.end(), "an unknown letter of operand types");
  return *found;
}

} // namespace

std::string_view operand_letters(const op_def& def) {
  const auto stated = table().of(def);
  return stated.empty() ? "T" : stated.front();
}

char operand_letter(std::string_view letters, size_t i) {
  const size_t open = letters.find('(');
  if (open == letters.npos)
    return letters[std::min(i, letters.size() - 1)];
  const size_t repeated = letters.size() - open - 2;
  return i < open ? letters[i] : letters[open + 1 + (i - open) % repeated];
}

bool are_operand_letters(std::string_view letters) {
  if (const size_t open = letters.find('('); open != letters.npos) {
    if (!letters.ends_with(')') || letters.size() < open + 3)
      return false;
    return are_operand_letters(letters.substr(open + 1, letters.size() - open - 2)) &&
           (open == 0 || are_operand_letters(letters.substr(0, open)));
  }
  return !letters.empty() && std::ranges::all_of(letters, [](char letter) {
    return std::ranges::find(classes, letter, &type_class::letter) != classes.end();
  });
}

void check_operand_types(const graph& g, const node& n) {
  if (!n.def->reference && !n.def->expand)
    return;
  const std::string_view letters = operand_letters(*n.def);
  std::array<size_t, classes.size()> first; // input of each letter
  first.fill(n.inputs.size());
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == no_value)
      continue;
    const value& v = g.values[n.inputs[i]];
    const type_class& c = class_of(operand_letter(letters, i));
    if (!(c.types & set_of(v.type)))
      fail(errc::invalid_model, "{}: input {} ('{}') is {}, but must be {}", describe_origin(n), i, v.name,
           to_string(v.type), c.words);
    size_t& other = first[static_cast<size_t>(&c - classes.data())];
    if (c.shared && other < i && g.values[n.inputs[other]].type != v.type)
      fail(errc::invalid_model, "{}: input {} ('{}') is {}, but must be {}, as input {} is", describe_origin(n), i,
           v.name, to_string(v.type), to_string(g.values[n.inputs[other]].type), other);
    other = std::min(other, i);
  }
}

} // namespace troupe
