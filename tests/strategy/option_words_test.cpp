// The words of options are those that the command knows.
#include "troupe/option_words.hpp"

#include "plan/place/policies.hpp"
#include "strategy/replica_sets.hpp"
#include "support/catch.hpp"

using namespace troupe;
using Catch::Contains;

TEST_CASE("the words of policies and strategies are the command's", "[strategy][C6]") {
  for (const policy_row& row : policies())
    CHECK(value_of(policy_words, "policy", row.name) == row.policy);
  CHECK(std::size(policy_words) == policies().size() + 1); // and plug-in
  for (const auto& word : strategy_words)
    CHECK(to_string(word.value) == word.text);
  CHECK(text_of(strategy_words, strategy::work_stealing) == "work-stealing");
  CHECK_THROWS_WITH(value_of(precision_words, "precision", "fp64"),
                    Contains("precision 'fp64' is not known; known are: fp32, fp16, auto"));
}
