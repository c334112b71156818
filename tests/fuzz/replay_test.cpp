// Inputs on which the fuzzer once found a fault (tests/data/fuzz), each in every variant: they end in a result or in
// one clear error.
#include "support/catch.hpp"
#include "support/places.hpp"

#include "fuzz/untrusted.hpp"

#include <filesystem>
#include <fstream>

using namespace troupe::test;

namespace {

/// Calls `work(bytes)` for every file of a folder of findings; there must be some.
template <class F>
void for_each_finding(const std::string& kind, F&& work) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test_data() + "/fuzz/" + kind)) {
    INFO(entry.path().string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    REQUIRE_NOTHROW(work(std::as_bytes(std::span(bytes))));
    ++count;
  }
  CHECK(count > 0);
}

} // namespace

TEST_CASE("models that the fuzzer found end in a result or an error", "[fuzz]") {
  for_each_finding("model", [](untrusted bytes) {
    for (unsigned how = 0; how <= variant::all; ++how)
      try_model(bytes, how);
  });
}
