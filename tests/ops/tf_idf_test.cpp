#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// A pool of 1 and 2, and of the pairs (1, 2) and (2, 2); each has its own place in the result, the last ones first.
attributes pool(const char* mode, int64_t shortest, int64_t longest, int64_t skipped, std::vector<float> weights = {}) {
  attributes attrs = attrs_of({{"mode", std::string(mode)},
                               {"min_gram_length", shortest},
                               {"max_gram_length", longest},
                               {"max_skip_count", skipped},
                               {"ngram_counts", int_list{0, 2}},
                               {"ngram_indexes", int_list{3, 2, 1, 0}},
                               {"pool_int64s", int_list{1, 2, 1, 2, 2, 2}}});
  if (!weights.empty())
    attrs.set("weights", std::move(weights));
  return attrs;
}

std::vector<double> counted(const attributes& attrs, const std::vector<int64_t>& x) {
  return elements(run_op("TfIdfVectorizer", 9, attrs, {longs(x)})[0]);
}

} // namespace

TEST_CASE("TfIdfVectorizer counts n-grams of each length and distance", "[ops][tf_idf]") {
  const int_list x{1, 2, 2, 7, 2};
  CHECK(counted(pool("TF", 1, 1, 5), x) == std::vector<double>{0, 0, 3, 1}); // single elements count once
  CHECK(counted(pool("TF", 2, 2, 0), x) == std::vector<double>{1, 1, 0, 0});
  CHECK(counted(pool("TF", 1, 2, 1), x) == std::vector<double>{2, 2, 3, 1}); // (2, 2) also at 2 … 4, (1, 2) at 0 … 2
  CHECK(counted(pool("TF", 1, 9, 0), x) == std::vector<double>{1, 1, 3, 1});
  CHECK(counted(pool("TF", 1, 2, INT64_MAX), {}) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("TfIdfVectorizer weighs whether a word is there, or how often", "[ops][tf_idf]") {
  const std::vector<float> weights{10, 20, 30, 40}; // in the pool's order
  CHECK(counted(pool("IDF", 1, 2, 0, weights), {2, 2, 2}) == std::vector<double>{40, 0, 20, 0});
  CHECK(counted(pool("TFIDF", 1, 2, 0, weights), {2, 2, 2}) == std::vector<double>{80, 0, 60, 0});
  CHECK(counted(pool("TF", 1, 2, 0, weights), {2, 2, 2}) == std::vector<double>{2, 0, 3, 0});
  CHECK(counted(pool("IDF", 1, 1, 0), {2, 2}) == std::vector<double>{0, 0, 1, 0});
}

TEST_CASE("TfIdfVectorizer takes rows, int32 and strings", "[ops][tf_idf]") {
  const tensor rows = tensor::of<int32_t>({2, 2}, std::vector<int32_t>{1, 2, 2, 2});
  const tensor y = run_op("TfIdfVectorizer", 9, pool("TF", 1, 2, 0), {rows})[0];
  CHECK(y.dims() == shape{2, 4});
  CHECK(elements(y) == std::vector<double>{0, 1, 1, 1, 1, 0, 2, 0});
  attributes attrs = pool("TF", 1, 2, 0);
  attrs.erase("pool_int64s");
  attrs.set("pool_strings", std::vector<std::string>{"a", "b", "a", "b", "b", "b"});
  tensor text(dtype::string, {3});
  text.mutable_data<std::string>()[0] = "a";
  text.mutable_data<std::string>()[1] = "b";
  CHECK(elements(run_op("TfIdfVectorizer", 9, attrs, {text})[0]) == std::vector<double>{0, 1, 1, 1});
  CHECK_THROWS_WITH(run_op("TfIdfVectorizer", 9, attrs, {longs({1})}), Contains("does not hold what the input does"));
}

TEST_CASE("TfIdfVectorizer refuses pools that cannot be", "[ops][tf_idf][E5]") {
  const auto refuses = [](const char* name, attribute value, const char* text) {
    attributes attrs = pool("TF", 1, 2, 0);
    attrs.set(name, std::move(value));
    CHECK_THROWS_WITH(run_op("TfIdfVectorizer", 9, attrs, {longs({1, 2})}), Contains(text));
  };
  refuses("mode", std::string("BM25"), "'BM25'");
  refuses("min_gram_length", int64_t{0}, "n-grams of 0");
  refuses("max_gram_length", int64_t{0}, "n-grams of 1 to 0");
  refuses("max_skip_count", int64_t{-1}, "skip up to -1");
  refuses("ngram_indexes", int_list{}, "is empty");
  refuses("ngram_indexes", int_list{0, 1, 2, -1}, "has -1");
  refuses("ngram_indexes", int_list{0, 1, 2, int64_t{1} << 40}, "are possible");
  refuses("ngram_indexes", int_list{0, 1}, "more n-grams than the 2");
  refuses("ngram_counts", int_list{0, 9}, "gives elements 0 to 9 of 6");
  refuses("ngram_counts", int_list{2, 1}, "gives elements 2 to 1");
  refuses("ngram_counts", int_list{0, 3}, "gives elements 3 to 6 of 6 to n-grams of 2");
  refuses("weights", std::vector<float>{1}, "1 weights for 4");
}
