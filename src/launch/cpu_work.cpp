#include "launch/cpu_work.hpp"

#include <array>

namespace troupe {
namespace {

constexpr auto whole = std::to_array<cpu_operators>({
    {"control flow: the nodes of its bodies are placed one by one", "If Loop Scan SequenceMap"},
    {"strings, sequences and optionals hold objects, not bytes that a GPU could read",
     "ConcatFromSequence Optional OptionalGetElement OptionalHasElement RegexFullMatch SequenceAt SequenceConstruct "
     "SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence StringConcat StringNormalizer "
     "StringSplit"},
    {"files of images are taken apart bit by bit, each after the one before", "ImageDecoder"},
    {"trees, maps, tables of labels and vectors of classical models are small",
     "CastMap CategoryMapper DictVectorizer LabelEncoder LinearClassifier LinearRegressor OneHotEncoder SVMClassifier "
     "SVMRegressor "
     "TreeEnsemble "
     "TreeEnsembleClassifier TreeEnsembleRegressor",
     "ai.onnx.ml"},
    {"no GPU kernel yet",
     "AttnLSTM CDist CropAndResize GatherBlockQuantized Inverse MatMulBnb4 MatMulFpQ4 MaxpoolWithMask MoE QMoE "
     "WordConvEmbedding",
     "com.microsoft"},
    {"hashes and searches of few integers, or text",
     "BifurcationDetector MurmurHash3 NGramHashMapping NGramRepeatBlock Tokenizer", "com.microsoft"},
    {"each element of a way through a matrix follows the one before", "DynamicTimeWarping", "com.microsoft"},
    {"how much comes out depends on the elements, which the host has to see anyway",
     "Compress NonMaxSuppression NonZero Unique"},
    {"the operator in its place decides shapes by what the run computes", "Deferred", "troupe"},
    {"bins of any size, of a few regions", "MaxRoiPool"},
    {"each number of a generator follows the one before",
     "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"},
    {"known from shapes and sizes before a run",
     "BlackmanWindow Constant HammingWindow HannWindow MelWeightMatrix Shape Size"},
    {"a few integers are looked up in tables of n-grams", "TfIdfVectorizer"},
});

constexpr auto parts = std::to_array<cpu_calls>({
    {"Attention", "present keys or values alone, scores of past keys without present ones",
     "joined keys live in the outputs for them"},
    {"BatchNormalization", "training", "statistics of a batch are not part of inference"},
    {"Cast CastLike", "from and to strings", "text is the host's"},
    {"Cast CastLike DequantizeLinear QuantizeLinear", "floats of 4 bits, powers of two, integers of 2 bits",
     "kernels know the other stored types"},
    {"ConvInteger MatMulInteger QLinearConv QLinearMatMul", "other than 8 bits, scales of float16",
     "sums and scales are int32 and float32"},
    {"Det", "GPUs without 64-bit floats", "float32 has too few digits"},
    {"DFT STFT", "lengths over 16384 that are not a power of two, or any without 64-bit floats",
     "sums by the definition take a length's square, and float32 has too few digits"},
    {"Dropout", "training that drops elements", "each number of its generator follows the one before"},
    {"Einsum", "three operands and more, or over 8 axes", "a kernel has two operands"},
    {"GRU LSTM RNN",
     "sequences of different lengths, peepholes, other activations than the usual ones, states that are quantised",
     "a step is the same for all rows"},
    {"GridSample RoiAlign", "a grid or regions of another type than the input", "a kernel has one float type"},
    {"MaxPool", "integers of 16 bits and more", "kernels compare floats and bytes"},
    {"Pow", "exponents of another type, unless one constant for all", "a kernel has one element type"},
    {"Range", "bfloat16, integers below 32 bits", "elements are made as words"},
    {"Resize Upsample", "interpolated integers, the nearest elements of a region", "weights are floats"},
});

} // namespace

std::span<const cpu_operators> operators_on_cpu() {
  return whole;
}

std::span<const cpu_calls> calls_on_cpu() {
  return parts;
}

} // namespace troupe
