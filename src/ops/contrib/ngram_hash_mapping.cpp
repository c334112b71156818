// NGramHashMapping of com.microsoft: several hashes of the last tokens at each place, which choose rows of tables
// (Cheng et al., "Conditional memory via scalable lookup", 2026, as ONNX Runtime defines it).
//
// input_ids are [batch, sequence], multipliers [max_ngram_size], vocab_sizes [hashes], y is [batch, sequence, hashes],
// all of one integer type. n_head_per_ngram hashes are of the last 2 tokens, as many of the last 3 … max_ngram_size:
// each product of a token and the multiplier of its distance wraps around, all are joined by exclusive or, and the rest
// of the division by the hash's vocabulary size, not negative, is the hash. Before input_ids are past_ids, [batch,
// max_ngram_size − 1], else tokens pad_id; output 1 is what the next call's past_ids are. Where eos_token_id is stated,
// pad_id takes the place of such a token and of all before it, but for the token at the place itself.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <limits>
#include <type_traits>

namespace troupe {
namespace {

constexpr size_t multipliers_input = 1, sizes_input = 2, past_input = 3;

struct hash_counts {
  int64_t tokens, heads; // the most tokens of a hash, and the hashes of each number of tokens
  int64_t before() const { return tokens - 1; }
  int64_t hashes() const { return before() * heads; }
};

hash_counts parse_counts(const attributes& attrs) {
  const hash_counts counts{attrs.integer("max_ngram_size"), attrs.integer("n_head_per_ngram")};
  if (counts.tokens < 2 || counts.heads < 1)
    fail(errc::invalid_model,
         "attributes 'max_ngram_size' and 'n_head_per_ngram' are {} and {}; at least 2 and 1 are needed", counts.tokens,
         counts.heads);
  if (counts.heads > std::numeric_limits<int64_t>::max() / counts.before())
    fail(errc::invalid_model, "{} hashes for each of {} lengths are too many", counts.heads, counts.before());
  return counts;
}

/// Returns a token that an attribute states, which must be there.
template <class T>
T stated_token(const attributes& attrs, const char* name) {
  const int64_t token = attrs.integer(name);
  if (token < std::numeric_limits<T>::min() || token > std::numeric_limits<T>::max())
    fail(errc::invalid_model, "attribute '{}' is {}, which does not fit in {}", name, token, to_string(dtype_of<T>));
  return static_cast<T>(token);
}

/// Returns the token that ends a text, if there is one.
template <class T>
std::optional<T> end_token(const attributes& attrs) {
  constexpr auto name = "eos_token_id";
  return attrs.has(name) ? std::optional<T>(stated_token<T>(attrs, name)) : std::nullopt;
}

template <class T>
void check_tokens(const attributes& attrs) {
  stated_token<T>(attrs, "pad_id");
  end_token<T>(attrs);
}

/// Throws unless these operands belong together; `dims` gives the dims of an operand.
template <class Dims>
void check_sizes(const hash_counts& counts, bool has_past, const Dims& dims) {
  const symbolic_shape ids = dims(0);
  if (ids.size() != 2)
    fail(errc::invalid_model, "input_ids have shape {}; [batch, sequence] is needed", to_string(ids));
  require_same_dims(dims(multipliers_input), symbolic_shape{dim(counts.tokens)}, "multipliers and max_ngram_size");
  require_same_dims(dims(sizes_input), symbolic_shape{dim(counts.hashes())}, "vocab_sizes and the number of hashes");
  if (has_past)
    require_same_dims(dims(past_input), symbolic_shape{ids[0], counts.before()},
                      "past_ids and [batch, max_ngram_size - 1]");
}

void infer_hash(infer_context& c) {
  const hash_counts counts = parse_counts(c.attrs());
  const dtype type = common_type(c);
  check_sizes(counts, c.has_input(past_input), [&](size_t i) { return c.dims(i); });
  type == dtype::int32 ? check_tokens<int32_t>(c.attrs()) : check_tokens<int64_t>(c.attrs());
  const symbolic_shape ids = c.dims(0);
  c.set_output(0, type, {ids[0], ids[1], counts.hashes()});
  c.set_output(1, type, {ids[0], counts.before()});
}

/// A row of a batch with what was before it.
template <class T>
class token_row {
public:
  /// `past` may be null.
  token_row(const T* past, int64_t before, const T* ids, T pad) : past_(past), before_(before), ids_(ids), pad_(pad) {}

  /// Returns the token at a place, which is negative in the past.
  T at(int64_t place) const {
    if (place >= 0)
      return ids_[place];
    return past_ && place >= -before_ ? past_[before_ + place] : pad_;
  }
  T pad() const { return pad_; }

private:
  const T* past_;
  int64_t before_;
  const T* ids_;
  T pad_;
};

/// Writes the hashes at one place of a row. `end` is the token that ends a text, if there is one.
template <class T>
void hash_place(const token_row<T>& row, int64_t place, const hash_counts& counts, std::optional<T> end,
                const T* multipliers, const T* sizes, T* y) {
  using U = std::make_unsigned_t<T>;
  U mixed = static_cast<U>(row.at(place)) * static_cast<U>(multipliers[0]);
  bool ended = false;
  for (int64_t k = 1; k < counts.tokens; ++k) {
    const T token = row.at(place - k);
    ended = ended || token == end;
    mixed ^= static_cast<U>(ended ? row.pad() : token) * static_cast<U>(multipliers[k]);
    for (int64_t h = 0; h < counts.heads; ++h) {
      const T size = *sizes++, rest = static_cast<T>(static_cast<T>(mixed) % size);
      *y++ = rest < 0 ? static_cast<T>(rest + size) : rest;
    }
  }
}

template <class T>
void run_hash(kernel_context& c) {
  const hash_counts counts = parse_counts(c.attrs());
  const T pad = stated_token<T>(c.attrs(), "pad_id");
  const std::optional<T> end = end_token<T>(c.attrs());
  const int64_t batch = c.input(0).dims[0], length = c.input(0).dims[1], before = counts.before();
  const auto *ids = c.input(0).as<T>(), *multipliers = c.input(multipliers_input).as<T>(),
             *sizes = c.input(sizes_input).as<T>(),
             *past = c.has_input(past_input) ? c.input(past_input).as<T>() : nullptr;
  for (int64_t h = 0; h < counts.hashes(); ++h)
    if (sizes[h] < 1)
      fail(errc::invalid_input, "element {} of vocab_sizes is {}; it must be positive", h, sizes[h]);
  const auto row_of = [&](int64_t b) {
    return token_row<T>(past ? past + b * before : nullptr, before, ids + b * length, pad);
  };
  T* y = c.output(0).as<T>();
  parallel_for(batch * length, elementwise_grain / (counts.hashes() + 1) + 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      hash_place(row_of(i / length), i % length, counts, end, multipliers, sizes, y + i * counts.hashes());
  });
  if (!c.has_output(1))
    return;
  T* present = c.output(1).as<T>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t j = 0; j < before; ++j)
      *present++ = row_of(b).at(length - before + j);
}

void hash_ngrams(kernel_context& c) {
  check_sizes(parse_counts(c.attrs()), c.has_input(past_input), [&](size_t i) { return to_symbolic(c.input(i).dims); });
  if (c.input(0).type == dtype::int32)
    run_hash<int32_t>(c);
  else
    run_hash<int64_t>(c);
}

constexpr auto ngram_hash_rows = std::to_array<op_def>({
    op_row("NGramHashMapping", 1, infer_hash, hash_ngrams,
           {.domain = microsoft,
            .inputs = {3, 4},
            .max_outputs = 2,
            .types = set_of(dtype::int32, dtype::int64),
            .cost = cost_per_output<4>,
            .axes = axes::batch<3>}),
});

} // namespace

extern constinit const op_table contrib_ngram_hash_mapping_ops = ngram_hash_rows;

} // namespace troupe
