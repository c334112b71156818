// TfIdfVectorizer: how often each n-gram of a pool is in each row.
//
// An n-gram of length n with skip distance s is n elements that are s apart; n goes from min_gram_length to
// max_gram_length, s from 1 to max_skip_count + 1 (single elements count once). The pool has the n-grams of length 1
// first, then those of length 2 …; ngram_counts says where each length begins, ngram_indexes where an n-gram's count
// goes in the result, weights what IDF and TFIDF make of it. Elements are int32, int64 or strings, [C] or [N, C]; the
// result is [largest index + 1] or [N, that].
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <algorithm>
#include <map>

namespace troupe {
namespace {

/// A file may name any index: the result must not be larger than this.
constexpr int64_t most_indexes = int64_t{1} << 26;

/// What an attribute says of the pool, apart from its elements.
struct gram_rule {
  int64_t shortest, longest, most_skipped;
  std::string mode;
  std::vector<int64_t> counts, indexes;
  std::vector<float> weights;

  int64_t size() const { return *std::max_element(indexes.begin(), indexes.end()) + 1; }
};

gram_rule parse_rule(const attributes& attrs) {
  gram_rule r{attrs.integer("min_gram_length"), attrs.integer("max_gram_length"),
              attrs.integer("max_skip_count"),  word_of(attrs, "mode", "", {"TF", "IDF", "TFIDF"}),
              attrs.integers("ngram_counts"),   attrs.integers("ngram_indexes"),
              attrs.reals("weights", {})};
  if (r.shortest < 1 || r.longest < r.shortest || r.most_skipped < 0)
    fail(errc::invalid_model, "n-grams of {} to {} elements that skip up to {} cannot be", r.shortest, r.longest,
         r.most_skipped);
  if (r.indexes.empty())
    fail(errc::invalid_model, "attribute 'ngram_indexes' is empty");
  for (const int64_t i : r.indexes)
    if (i < 0 || i >= most_indexes)
      fail(errc::invalid_model, "attribute 'ngram_indexes' has {}; 0 to {} are possible", i, most_indexes - 1);
  if (!r.weights.empty() && r.weights.size() != r.indexes.size())
    fail(errc::invalid_model, "there are {} weights for {} n-grams", r.weights.size(), r.indexes.size());
  return r;
}

/// The n-grams of a pool, of elements of T, by their elements' numbers.
template <class T>
class gram_pool {
public:
  gram_pool(const gram_rule& rule, const std::vector<T>& elements) {
    size_t gram = 0;
    for (size_t i = 0; i < rule.counts.size(); ++i) {
      const int64_t length = static_cast<int64_t>(i) + 1, begin = rule.counts[i],
                    end = i + 1 < rule.counts.size() ? rule.counts[i + 1] : std::ssize(elements);
      if (begin < 0 || end < begin || end > std::ssize(elements) || (end - begin) % length != 0)
        fail(errc::invalid_model, "attribute 'ngram_counts' gives elements {} to {} of {} to n-grams of {}", begin, end,
             elements.size(), length);
      for (int64_t at = begin; at < end; at += length, ++gram) {
        if (gram >= rule.indexes.size())
          fail(errc::invalid_model, "the pool has more n-grams than the {} of attribute 'ngram_indexes'",
               rule.indexes.size());
        std::vector<int64_t> numbers;
        for (int64_t k = at; k < at + length; ++k)
          numbers.push_back(numbers_.try_emplace(elements[static_cast<size_t>(k)], std::ssize(numbers_)).first->second);
        if (length >= rule.shortest && length <= rule.longest)
          grams_.try_emplace(std::move(numbers), gram);
      }
    }
    longest_ = std::min<int64_t>(rule.longest, std::ssize(rule.counts));
  }

  /// Calls `found(gram)` for each n-gram that a row has.
  template <class Found>
  void each(const gram_rule& rule, const T* row, int64_t length, Found&& found) const {
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < length; ++i) {
      const auto known = numbers_.find(row[i]);
      numbers.push_back(known == numbers_.end() ? -1 : known->second);
    }
    std::vector<int64_t> gram;
    for (int64_t n = rule.shortest; n <= longest_; ++n)
      for (int64_t skip = 1; skip - 1 <= (n == 1 ? 0 : rule.most_skipped) && (n - 1) * skip < length; ++skip)
        for (int64_t first = 0; first + (n - 1) * skip < length; ++first) {
          gram.clear();
          for (int64_t k = 0; k < n; ++k)
            gram.push_back(numbers[static_cast<size_t>(first + k * skip)]);
          if (const auto known = grams_.find(gram); known != grams_.end())
            found(known->second);
        }
  }

private:
  std::map<T, int64_t> numbers_;
  std::map<std::vector<int64_t>, size_t> grams_; // by their elements' numbers: the position in the pool
  int64_t longest_ = 0;
};

void infer_tf_idf(infer_context& c) {
  const gram_rule rule = parse_rule(c.attrs());
  symbolic_shape dims = c.dims(0);
  if (dims.empty() || dims.size() > 2)
    fail(errc::invalid_model, "an input of shape {}; [C] or [N, C] is needed", to_string(dims));
  if (c.attrs().has(c.type(0) == dtype::string ? "pool_int64s" : "pool_strings"))
    fail(errc::invalid_model, "the pool does not hold what the input does, {}", to_string(c.type(0)));
  dims.back() = rule.size();
  c.set_output(0, dtype::float32, std::move(dims));
}

template <class T>
void count_grams(kernel_context& c, const gram_rule& rule, const std::vector<T>& elements, const T* x) {
  const gram_pool<T> pool(rule, elements);
  const auto dims = c.input(0).dims;
  const int64_t rows = dims.size() == 2 ? dims[0] : 1, length = dims.back(), size = rule.size();
  auto* y = c.output(0).as<float>();
  std::fill_n(y, rows * size, 0.f);
  parallel_for(rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      pool.each(rule, x + r * length, length, [&](size_t gram) {
        const float weight = rule.weights.empty() || rule.mode == "TF" ? 1 : rule.weights[gram];
        float& to = y[r * size + rule.indexes[gram]];
        to = rule.mode == "IDF" ? weight : to + weight;
      });
  });
}

void tf_idf(kernel_context& c) {
  const gram_rule rule = parse_rule(c.attrs());
  if (c.input(0).type == dtype::string)
    return count_grams<std::string>(c, rule, c.attrs().texts("pool_strings", {}), c.input(0).as<std::string>());
  const std::vector<int64_t> x = to_int64(c.input(0));
  count_grams<int64_t>(c, rule, c.attrs().integers("pool_int64s", {}), x.data());
}

constexpr auto tf_idf_rows = std::to_array<op_def>({
    op_row("TfIdfVectorizer", 9, infer_tf_idf, tf_idf,
           {.types = set_of(dtype::int32, dtype::int64, dtype::string),
            .axes = axes::before_last<1>,
            .mixes = "counts what is along"}),
});

} // namespace

extern constinit const op_table onnx_tf_idf_ops = tf_idf_rows;

} // namespace troupe
