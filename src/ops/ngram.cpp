// NGramRepeatBlock of com.microsoft: −∞ becomes the score of each token that would repeat an n-gram of its row.
//
// input_ids [batch, length], scores [batch, vocabulary]: wherever the last ngram_size − 1 ids of a row were before, the id behind them is banned.
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

int64_t gram_size(const attributes& attrs) {
  const int64_t size = attrs.integer("ngram_size");
  if (size < 1)
    fail(errc::invalid_model, "n-grams of {} tokens", size);
  return size;
}

void infer_repeat_block(infer_context& c) {
  gram_size(c.attrs());
  if (c.rank(0) != 2 || c.rank(1) != 2 || c.type(1) != dtype::float32)
    fail(errc::invalid_model,
         "ids {} and scores {} of {}; [batch, length] and [batch, vocabulary] of float32 are needed",
         to_string(c.dims(0)), to_string(c.dims(1)), to_string(c.type(1)));
  require_same(c.dims(0)[0], c.dims(1)[0], "the rows of ids and scores");
  c.set_output(0, dtype::float32, c.dims(1));
}

void repeat_block(kernel_context& c) {
  const auto dims = c.input(0).dims;
  const int64_t rows = dims[0], length = dims[1], words = c.input(1).dims[1], size = gram_size(c.attrs());
  if (c.input(1).dims[0] != rows)
    fail(errc::invalid_input, "{} rows of ids, but {} of scores", rows, c.input(1).dims[0]);
  float* y = c.output(0).as<float>();
  std::copy_n(c.input(1).as<float>(), rows * words, y);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t *ids = c.input(0).as<int64_t>() + r * length, *end = ids + length;
    for (int64_t at = 0; size <= length && at + size <= length; ++at) {
      const int64_t next = ids[at + size - 1];
      if (!std::equal(end - (size - 1), end, ids + at))
        continue;
      if (next < 0 || next >= words)
        fail(errc::invalid_input, "the id {} is none of the {} that have scores", next, words);
      y[r * words + next] = -std::numeric_limits<float>::infinity();
    }
  }
}

constexpr auto ngram_rows = std::to_array<op_def>({
    op_row("NGramRepeatBlock", 1, infer_repeat_block, repeat_block,
           {.domain = microsoft, .inputs = {2, 2}, .types = set_of(dtype::int64)}),
});

} // namespace

std::span<const op_def> ngram_ops() {
  return ngram_rows;
}

} // namespace troupe
