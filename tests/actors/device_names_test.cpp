#include "actors/device_names.hpp"
#include "base/error.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::actors;

namespace {

std::vector<std::string> names_of(const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const device_request& r : parse_device_names(wanted, 0))
    names.push_back(r.name);
  return names;
}

} // namespace

TEST_CASE("device names: instances are numbered, all means every physical device", "[actors]") {
  CHECK(names_of({"cpu"}) == std::vector<std::string>{"cpu"});
  CHECK(names_of({"cpu*3", "null"}) == std::vector<std::string>{"cpu", "cpu#1", "cpu#2", "null"});
  CHECK(names_of({"all"}) == std::vector<std::string>{"cpu"});
  CHECK(parse_device_names({"null"}, 0).at(0).kind == device_kind::null);
  CHECK(names_of({"slow:25*2", "slow:50"}) == std::vector<std::string>{"slow:25", "slow:25#1", "slow:50"});
  CHECK(parse_device_names({"slow:25"}, 0).at(0).percent == 25);
}

TEST_CASE("device names: unknown, duplicate and miscounted ones are errors", "[actors]") {
  for (const char* wrong : {"gpu", "", "cpu*", "cpu*0", "cpu*257", "cpu*-1", "cpu*2x", "cpu#1", "*2", "cpu*99999999999",
                            "slow", "slow:", "slow:0", "slow:101", "slow:5x"})
    CHECK_THROWS_AS(parse_device_names({wrong}, 0), error);
  CHECK_THROWS_AS(parse_device_names({"cpu", "cpu*2"}, 0), error);
  CHECK_THROWS_AS(parse_device_names({"all", "cpu"}, 0), error);
}
