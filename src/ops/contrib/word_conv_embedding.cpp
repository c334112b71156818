// WordConvEmbedding of com.microsoft: words as vectors, by a convolution over their characters (Kim, Jernite, Sontag,
// Rush, "Character-aware neural language models", AAAI 2016), as ONNX Runtime defines it.
//
// sequence [words, places] of int32 has the characters of each word, 0 where it has none; W [F, 1, window, E], B [F], C
// [characters, E] an embedding of each. An element of y [words, F] is the largest of tanh(W · window + B) over the
// windows of the word's characters, at least one of them. A word whose first character is 0 has none, and is a row of
// zeros (which ONNX Runtime leaves as its memory was).
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/gemm.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe {
namespace {

constexpr size_t word_filters = 1, word_bias = 2, word_table = 3;

/// Throws unless a size that an attribute may state (−1: it does not) is that of an operand.
void check_word_size(const attributes& attrs, const char* name, const dim& size) {
  if (const int64_t stated = attrs.integer(name, -1); stated != -1)
    require_same(size, stated, name);
}

void infer_word_embedding(infer_context& c) {
  const symbolic_shape &words = c.dims(0), &filters = c.dims(word_filters), &bias = c.dims(word_bias),
                       &table = c.dims(word_table);
  if (words.size() != 2 || filters.size() != 4 || bias.size() != 1 || table.size() != 2)
    fail(errc::invalid_model,
         "operands of shapes {}, {}, {} and {}; [words, places], [F, 1, window, E], [F] and [characters, E] are needed",
         to_string(words), to_string(filters), to_string(bias), to_string(table));
  for (size_t i = word_filters; i <= word_table; ++i)
    if (c.type(i) != dtype::float32)
      fail(errc::invalid_model, "input {} is {}, not float32", i, to_string(c.type(i)));
  require_same(filters[1], 1, "channels of the filters");
  require_same(filters[3], table[1], "the filters' and the characters' embeddings");
  require_same(filters[0], bias[0], "filters and their biases");
  check_word_size(c.attrs(), "embedding_size", filters[0]);
  check_word_size(c.attrs(), "conv_window_size", filters[2]);
  check_word_size(c.attrs(), "char_embedding_size", table[1]);
  c.set_output(0, dtype::float32, {words[0], filters[0]});
}

/// Returns how many characters a word has.
int64_t characters_of(const int32_t* word, int64_t places) {
  if (places == 0 || word[0] <= 0)
    return 0;
  return std::count_if(word, word + places, [](int32_t c) { return c > 0; });
}

/// Returns the embeddings of the first `count` characters of a word, one after the other.
std::vector<float> embedded(const int32_t* word, int64_t count, const const_view& table) {
  const int64_t characters = table.dims[0], width = table.dims[1];
  std::vector<float> rows(static_cast<size_t>(count * width));
  for (int64_t i = 0; i < count; ++i) {
    if (word[i] < 0 || word[i] >= characters)
      fail(errc::invalid_input, "character {} is outside the {} that have an embedding", word[i], characters);
    std::copy_n(table.as<float>() + word[i] * width, width, rows.data() + i * width);
  }
  return rows;
}

void word_conv_embedding(kernel_context& c) {
  const int64_t words = c.input(0).dims[0], places = c.input(0).dims[1];
  const int64_t filters = c.input(word_filters).dims[0], window = c.input(word_filters).dims[2],
                width = c.input(word_table).dims[1];
  require_same(c.input(word_filters).dims[1], 1, "channels of the filters");
  require_same(c.input(word_filters).dims[3], width, "the filters' and the characters' embeddings");
  require_same(c.input(word_bias).dims[0], filters, "filters and their biases");
  if (window < 1 || window > places)
    fail(errc::invalid_input, "windows of {} characters do not fit words of {} places", window, places);
  const std::vector<float> weights = transposed(c.input(word_filters).as<float>(), filters, window * width);
  const auto* bias = c.input(word_bias).as<float>();
  auto* y = c.output(0).as<float>();
  parallel_for(words, 1, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      const int32_t* word = c.input(0).as<int32_t>() + w * places;
      const int64_t length = characters_of(word, places);
      std::fill_n(y + w * filters, filters, 0.f);
      if (length == 0)
        continue;
      const std::vector<float> rows = embedded(word, std::max(length, window), c.input(word_table));
      const int64_t windows = std::max(length, window) - window + 1;
      std::vector<float> sums;
      for (int64_t i = 0; i < windows; ++i)
        sums.insert(sums.end(), bias, bias + filters);
      gemm(windows, filters, window * width, rows.data(), width, weights.data(), filters, sums.data(), filters);
      for (int64_t f = 0; f < filters; ++f) {
        float most = -std::numeric_limits<float>::infinity();
        for (int64_t i = 0; i < windows; ++i)
          most = std::max(most, std::tanh(sums[static_cast<size_t>(i * filters + f)]));
        y[w * filters + f] = most;
      }
    }
  });
}

op_cost word_embedding_cost(const attributes&, const call_shapes& call) {
  return {2 * static_cast<double>(volume(call.inputs[0])) * static_cast<double>(volume(call.inputs[word_filters])),
          operand_bytes(call)};
}

constexpr auto word_conv_embedding_rows = std::to_array<op_def>({
    op_row("WordConvEmbedding", 1, infer_word_embedding, word_conv_embedding,
           {.domain = microsoft,
            .inputs = {4, 4},
            .types = set_of(dtype::int32),
            .cost = word_embedding_cost,
            .axes = axes::batch<>}),
});

} // namespace

extern constinit const op_table contrib_word_conv_embedding_ops = word_conv_embedding_rows;

} // namespace troupe
