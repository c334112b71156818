// Limits of strings on their way to other hosts.
#include "remote/plan_limit.hpp"
#include "remote/values.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"

using namespace troupe;
using Catch::Contains;

namespace {

/// Returns why a value that is to be pulled is refused before anything is; empty if it is pulled.
std::string refusal(remote::sent_value value) {
  std::string said;
  remote::take(std::move(value), {}, {.pull = [](const hash128&, const tensor&, const remote::pull_done&) {}},
               [&](const tensor&, const failure& why) { said = why.message; });
  return said;
}

remote::sent_value texts(int64_t count, int64_t bytes) {
  return {.from = remote::origin::sender, .type = dtype::string, .dims = {count}, .size = bytes};
}

} // namespace

TEST_CASE("texts whose size cannot be are refused before anything is allocated for them", "[remote][D2]") {
  CHECK(refusal(texts(3, 24)).empty());
  CHECK(refusal(texts(0, 0)).empty());
  CHECK_THAT(refusal(texts(4, 24)), Contains("24 bytes cannot hold 4 strings"));
  CHECK_THAT(refusal(texts(1, -8)), Contains("-8 bytes cannot hold"));
  CHECK_THAT(refusal(texts(1, INT64_MAX)), Contains("pin the nodes"));
  CHECK_THAT(refusal(texts(INT64_MAX, 24)), Contains("cannot hold"));
}

TEST_CASE("too many constant texts are an error that names them", "[remote][D3]") {
  test::graph_builder b;
  b.constant("short", tensor::of<std::string>({1}, std::vector<std::string>{"ab"}));
  b.constant("long", tensor::of<std::string>({2}, std::vector<std::string>{std::string(100, 'x'), ""}));
  b.constant("floats", tensor::of<float>({1}, std::vector<float>{1}));
  CHECK_NOTHROW(remote::check_strings(b.g));
  CHECK_NOTHROW(remote::check_strings(b.g, 114));
  CHECK_THROWS_WITH(remote::check_strings(b.g, 113),
                    Contains("114 bytes") && Contains("'long' alone 108") && Contains("113") && Contains("--devices"));
}
