// Execution traces of Chakra, read back as Protocol Buffers are.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/traced_diamond.hpp"
#include "troupe/inspect.hpp"

#include <map>
#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

class encoded {
public:
  explicit encoded(std::string_view bytes) : rest_(bytes) {}

  bool ended() const { return rest_.empty(); }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE((!rest_.empty() && shift < 64));
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80)
        return value;
    }
  }
  std::string_view bytes() {
    const uint64_t size = number();
    REQUIRE(size <= rest_.size());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

private:
  std::string_view rest_;
};

struct chakra_node {
  uint64_t id = 0, type = 0, start = 0, duration = 0;
  std::string name;
  std::vector<uint64_t> waits_for;
  std::map<std::string, uint64_t> attributes;
};

void read_attribute(std::string_view bytes, std::map<std::string, uint64_t>& into) {
  encoded in(bytes);
  REQUIRE(in.number() == (1U << 3 | 2U));
  const std::string name(in.bytes());
  const uint64_t kind = in.number();
  const std::map<std::string, uint64_t> fields{{"is_cpu_op", 27}, {"tensor_size", 13}, {"comm_src", 7},
                                               {"comm_dst", 7},   {"comm_tag", 7},     {"comm_size", 9}};
  CHECK(kind == fields.at(name) << 3);
  CHECK(into.emplace(name, in.number()).second);
  CHECK(in.ended());
}

chakra_node read_node(std::string_view bytes) {
  chakra_node n;
  for (encoded in(bytes); !in.ended();) {
    const uint64_t tag = in.number();
    switch (tag) {
      case 1 << 3: n.id = in.number(); break;
      case 2 << 3 | 2: n.name = in.bytes(); break;
      case 3 << 3: n.type = in.number(); break;
      case 5 << 3 | 2:
        for (encoded ids(in.bytes()); !ids.ended();)
          n.waits_for.push_back(ids.number());
        break;
      case 6 << 3: n.start = in.number(); break;
      case 7 << 3: n.duration = in.number(); break;
      case 10 << 3 | 2: read_attribute(in.bytes(), n.attributes); break;
      default: FAIL("an unknown field " << tag);
    }
  }
  return n;
}

std::vector<chakra_node> read_trace_file(const std::string& text) {
  encoded in(text);
  encoded head(in.bytes());
  CHECK((head.number() == (1U << 3 | 2U) && head.bytes() == "1.0.0" && head.ended()));
  std::vector<chakra_node> nodes;
  while (!in.ended())
    nodes.push_back(read_node(in.bytes()));
  return nodes;
}

} // namespace

TEST_CASE("Chakra has a trace for each device, and both ends of what goes between", "[trace][formats]") {
  const std::vector<std::string> files = to_chakra(traced_diamond());
  REQUIRE(files.size() == 2);
  std::map<std::string, size_t> computed;
  std::set<std::tuple<uint64_t, uint64_t, uint64_t>> sent, received; // from, to, tag
  for (uint64_t device = 0; device < 2; ++device) {
    const std::vector<chakra_node> nodes = read_trace_file(files[device]);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const chakra_node& n = nodes[i];
      CHECK(n.id == i);
      for (const uint64_t before : n.waits_for)
        CHECK(before < i);
      CHECK(n.attributes.at("is_cpu_op") == 0);
      if (n.type == 4) {
        computed[n.name.substr(0, n.name.find('_'))] += n.waits_for.size();
        CHECK(n.attributes.at("tensor_size") == (n.waits_for.size() == 2 ? 72 : 48));
        continue;
      }
      const std::tuple way(n.attributes.at("comm_src"), n.attributes.at("comm_dst"), n.attributes.at("comm_tag"));
      CHECK(n.attributes.at("comm_size") == 24);
      if (n.type == 5) {
        CHECK((std::get<0>(way) == device && n.waits_for.size() == 1 && nodes[n.waits_for[0]].type == 4));
        CHECK(sent.insert(way).second);
      } else {
        CHECK((n.type == 6 && std::get<1>(way) == device && n.waits_for.empty()));
        CHECK(received.insert(way).second);
      }
    }
  }
  CHECK(sent == received);
  CHECK(!sent.empty());
  size_t reads = 0;
  for (const auto& [name, count] : computed)
    reads += count;
  CHECK(reads == 1 + 2 + 2); // of a Sigmoid, the Add and the Mul
}
