#include "support/places.hpp"

namespace troupe::test {

std::string command_path() {
  return TROUPE_COMMAND;
}

std::string test_data() {
  return TROUPE_TEST_DATA;
}

std::string test_plugins() {
  return TROUPE_TEST_PLUGINS;
}

} // namespace troupe::test
