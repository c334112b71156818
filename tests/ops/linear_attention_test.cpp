#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

attributes rule(const char* name, int64_t q_heads, int64_t kv_heads) {
  return attrs_of({{"update_rule", std::string(name)}, {"q_num_heads", q_heads}, {"kv_num_heads", kv_heads}});
}

std::vector<tensor> attend(const attributes& attrs, std::vector<tensor> inputs) {
  return run_op("LinearAttention", 27, attrs, std::move(inputs), 2);
}

} // namespace

TEST_CASE("LinearAttention accumulates keys times values", "[ops][linear_attention]") {
  // One head, keys of 2, values of 1: S = (3, 0), then (3, 4 · 5).
  const tensor q = floats({1, 2, 2}, {2, 1, 1, 1}), k = floats({1, 2, 2}, {1, 0, 0, 4}), v = floats({1, 2, 1}, {3, 5});
  attributes attrs = rule("linear", 1, 1);
  attrs.set("scale", 0.5f);
  const auto y = attend(attrs, {q, k, v});
  CHECK(elements(y[0]) == std::vector<double>{3, 11.5});
  CHECK(y[1].dims() == shape{1, 1, 2, 1});
  CHECK(elements(y[1]) == std::vector<double>{3, 20});
  CHECK(elements(attend(rule("linear", 1, 1), {q, k, v})[0])[1] == Approx(23 / std::sqrt(2.)));
}

TEST_CASE("LinearAttention forgets by decay, by head or by row", "[ops][linear_attention]") {
  const tensor q = floats({1, 1, 2}, {1, 1}), k = floats({1, 1, 2}, {0, 0}), v = floats({1, 1, 1}, {9});
  const tensor past = floats({1, 1, 2, 1}, {8, 16});
  const float half = std::log(0.5f);
  const auto by_head = attend(rule("gated", 1, 1), {q, k, v, past, floats({1, 1, 1}, {half})});
  CHECK(elements(by_head[1])[0] == Approx(4));
  CHECK(elements(by_head[1])[1] == Approx(8));
  const auto by_row = attend(rule("gated", 1, 1), {q, k, v, past, floats({1, 1, 2}, {half, 0})});
  CHECK(elements(by_row[1])[0] == Approx(4));
  CHECK(elements(by_row[1])[1] == 16);
}

TEST_CASE("LinearAttention's delta rules correct the state after its decay", "[ops][linear_attention]") {
  // S = 8 is read as 8 · 2; beta · (v − that) · k is added.
  const tensor q = floats({1, 1, 1}, {1}), k = floats({1, 1, 1}, {2}), v = floats({1, 1, 1}, {10});
  const tensor past = floats({1, 1, 1, 1}, {8}), beta = floats({1, 1, 1}, {0.5f});
  CHECK(elements(attend(rule("delta", 1, 1), {q, k, v, past, tensor{}, beta})[1]) == std::vector<double>{2});
  const tensor decay = floats({1, 1, 1}, {std::log(0.5f)});
  const auto both =
      attend(attrs_of({{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}}), {q, k, v, past, decay, beta});
  CHECK(elements(both[1])[0] == Approx(4 + (10 - 4 * 2) * 0.5 * 2));
}

TEST_CASE("LinearAttention in one call is that in steps, whatever the sharing of heads", "[ops][linear_attention]") {
  constexpr int64_t steps = 5;
  const tensor q = test::random_tensor({2, steps, 12}, 1), k = test::random_tensor({2, steps, 6}, 2),
               v = test::random_tensor({2, steps, 4}, 3), decay = test::random_tensor({2, steps, 2}, 4),
               beta = test::random_tensor({2, steps, 1}, 5);
  const attributes attrs = rule("gated_delta", 4, 2); // keys of 3, values of 2
  const auto whole = attend(attrs, {q, k, v, tensor{}, decay, beta});
  REQUIRE(whole[0].dims() == shape{2, steps, 8});
  REQUIRE(whole[1].dims() == shape{2, 2, 3, 2});
  tensor state;
  for (int64_t t = 0; t < steps; ++t) {
    std::vector<tensor> step;
    for (const tensor& x : {q, k, v, decay, beta})
      step.push_back(run_op("Slice", 13, {}, {x, longs({t}), longs({t + 1}), longs({1})})[0]);
    const auto y = attend(attrs, {step[0], step[1], step[2], state, step[3], step[4]});
    state = y[1];
    const std::vector<double> got = elements(y[0]), all = elements(whole[0]);
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == Approx(all[(i / 8 * steps + static_cast<size_t>(t)) * 8 + i % 8]).margin(1e-5));
  }
  const std::vector<double> last = elements(state), end = elements(whole[1]);
  for (size_t i = 0; i < last.size(); ++i)
    CHECK(last[i] == Approx(end[i]).margin(1e-5));
}

TEST_CASE("LinearAttention of no steps hands the state on, in the state's type", "[ops][linear_attention]") {
  const tensor none(dtype::float16, {1, 0, 2}), past = ramp({1, 1, 2, 2});
  const auto y = attend(rule("linear", 1, 1), {none, none, none, past});
  CHECK(y[0].dims() == shape{1, 0, 2});
  CHECK(y[1].type() == dtype::float32);
  CHECK(elements(y[1]) == elements(past));
}

TEST_CASE("LinearAttention refuses operands that do not fit", "[ops][linear_attention]") {
  const tensor x = ramp({1, 2, 4});
  const auto refuses = [](const attributes& attrs, const std::vector<tensor>& inputs, const char* text) {
    CHECK_THROWS_WITH(attend(attrs, inputs), Catch::Contains(text));
  };
  refuses(rule("square", 1, 1), {x, x, x}, "'square', not linear");
  refuses(rule("linear", 3, 2), {x, x, x}, "3 heads of queries cannot share 2");
  refuses(rule("linear", 0, 1), {x, x, x}, "0 heads");
  refuses(rule("linear", 1, -1), {x, x, x}, "-1 heads");
  refuses(rule("linear", 3, 3), {x, x, x}, "cannot be split into 3 heads");
  refuses(rule("linear", 2, 1), {x, x, x}, "key and query");
  refuses(rule("linear", 1, 1), {x, x, ramp({1, 3, 4})}, "value and query");
  refuses(rule("linear", 1, 1), {ramp({2, 4}), x, x}, "rank 3");
  refuses(rule("linear", 1, 1), {x, x, x, ramp({1, 1, 4, 3})}, "past_state");
  refuses(rule("linear", 1, 1), {x, x, longs({1})}, "value");
  refuses(rule("gated", 1, 1), {x, x, x}, "needs decay");
  refuses(rule("gated", 2, 2), {x, x, x, tensor{}, ramp({1, 2, 3})}, "columns of decay");
  refuses(rule("delta", 2, 2), {x, x, x}, "needs beta");
  refuses(rule("delta", 2, 2), {x, x, x, tensor{}, tensor{}, ramp({1, 2, 3})}, "columns of beta");
  refuses(rule("delta", 2, 2), {x, x, x, tensor{}, tensor{}, ramp({1, 1, 2})}, "beta and query");
  CHECK_THROWS_AS(attend({}, {x, x, x}), error); // no heads
}
