// NGramRepeatBlock and BifurcationDetector of com.microsoft: n-grams of tokens that were there before.
//
// NGramRepeatBlock: −∞ becomes the score of each token that would repeat an n-gram of its row. input_ids [batch,
// length], scores [batch, vocabulary]: wherever the last ngram_size − 1 ids of a row were before, the id after them is
// banned.
//
// BifurcationDetector (Sun, Ge, Wei, Wang, "Instantaneous grammatical error correction with shallow aggressive
// decoding", ACL 2021; as ONNX Runtime defines it): output 0 is the tokens that were there and, of those predicted for
// the source from a place on, all up to and with the first that is not the source's. Output 1 is where the source goes
// on after the last n tokens of output 0, if these are in the source once; the longest n of min_ngram_size to
// max_ngram_size that is there at all decides, and −1 says that there is no such place.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

int64_t gram_size(const attributes& attrs) {
  const int64_t size = attrs.integer("ngram_size");
  if (size < 1)
    fail(errc::invalid_model, "attribute 'ngram_size' must be at least 1, not {}", size);
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
        fail(errc::invalid_input, "the id {} is outside the {} ids that have scores", next, words);
      y[r * words + next] = -std::numeric_limits<float>::infinity();
    }
  }
}

// -- BifurcationDetector

constexpr size_t bifurcation_current = 1, bifurcation_place = 2, bifurcation_predicted = 3;

using token_span = std::span<const int64_t>;

struct gram_sizes {
  int64_t least, most;
};

gram_sizes parse_gram_sizes(const attributes& attrs) {
  const gram_sizes sizes{attrs.integer("min_ngram_size", 1), attrs.integer("max_ngram_size", 3)};
  if (sizes.least < 1 || sizes.most < sizes.least)
    fail(errc::invalid_model, "attributes 'min_ngram_size' and 'max_ngram_size' are {} and {}", sizes.least,
         sizes.most);
  return sizes;
}

void infer_bifurcation(infer_context& c) {
  parse_gram_sizes(c.attrs());
  for (size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i) && (c.type(i) != dtype::int64 || (i != bifurcation_place && c.rank(i) != 1)))
      fail(errc::invalid_model, "input {} is {} of shape {}; int64 is needed, and a vector of tokens", i,
           to_string(c.type(i)), to_string(c.dims(i)));
  require_same(volume(std::span<const dim>(c.dims(bifurcation_place))), 1, "elements of the place in the source");
  const bool predicts = c.has_input(bifurcation_predicted);
  c.set_output(0, dtype::int64, {predicts ? c.data_dependent(0, 0) : c.dims(bifurcation_current)[0]});
  c.set_output(1, dtype::int64, c.dims(bifurcation_place));
}

token_span tokens_of(const const_view& v) {
  return {v.as<int64_t>(), static_cast<size_t>(v.size())};
}

/// Returns the predicted tokens up to and with the first one that is not the source's from `place` on.
token_span accepted(token_span source, int64_t place, token_span predicted) {
  const int64_t size = std::ssize(source);
  if (place < 0 || place > size)
    fail(errc::invalid_input, "place {} is outside a source of {} tokens", place, size);
  const token_span rest = source.subspan(static_cast<size_t>(place));
  if (predicted.size() != rest.size() + 1)
    fail(errc::invalid_input, "{} predicted tokens from place {} on; a source of {} needs {}", predicted.size(), place,
         size, rest.size() + 1);
  const auto apart = std::mismatch(rest.begin(), rest.end(), predicted.begin()).second;
  return {predicted.begin(), apart + 1};
}

/// Returns the place in the source after the last tokens, −1 if they are not there or at more than one place.
int64_t place_after(token_span source, token_span tokens, gram_sizes sizes) {
  int64_t place = -1;
  for (int64_t n = sizes.least; n <= std::min(sizes.most, std::ssize(tokens)); ++n) {
    const token_span last = tokens.last(static_cast<size_t>(n));
    const auto find = [&](auto from) { return std::search(from, source.end(), last.begin(), last.end()); };
    const auto first = find(source.begin());
    if (first == source.end())
      break;
    place = first - source.begin() + n;
    if (place >= std::ssize(source))
      break;
    if (find(first + 1) != source.end())
      place = -1;
  }
  return place;
}

void detect_bifurcation(kernel_context& c) {
  const token_span source = tokens_of(c.input(0)), current = tokens_of(c.input(bifurcation_current));
  if (c.input(bifurcation_place).size() != 1)
    fail(errc::invalid_input, "the place in the source has {} elements instead of one",
         c.input(bifurcation_place).size());
  std::vector<int64_t> tokens(current.begin(), current.end());
  if (c.has_input(bifurcation_predicted)) {
    const token_span more =
        accepted(source, *c.input(bifurcation_place).as<int64_t>(), tokens_of(c.input(bifurcation_predicted)));
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  c.give(0, tensor::of<int64_t>({std::ssize(tokens)}, tokens));
  if (c.has_output(1))
    *c.output(1).as<int64_t>() = place_after(source, tokens, parse_gram_sizes(c.attrs()));
}

constexpr auto ngram_rows = std::to_array<op_def>({
    op_row("BifurcationDetector", 1, infer_bifurcation, detect_bifurcation,
           {.domain = microsoft,
            .inputs = {3, 4},
            .max_outputs = 2,
            .types = set_of(dtype::int64),
            .hides_elements = true,
            .mixes = "looks for one text in another"}),
    op_row("NGramRepeatBlock", 1, infer_repeat_block, repeat_block,
           {.domain = microsoft, .inputs = {2, 2}, .types = set_of(dtype::int64), .axes = axes::batch<1>}),
});

} // namespace

extern constinit const op_table contrib_ngram_ops = ngram_rows;

} // namespace troupe
