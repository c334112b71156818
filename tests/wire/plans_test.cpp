// Plans and bindings that cross hosts are the same on the other side, down to every id and byte.
#include "wire/plans.hpp"

#include "graph/bodies.hpp"
#include "ops/evaluate.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"
#include "support/verify_memory.hpp"
#include "wire/wire_models.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

void check_same_chunks(const plan& a, const plan& b) {
  REQUIRE(a.chunks.size() == b.chunks.size());
  for (size_t i = 0; i < a.chunks.size(); ++i) {
    const chunk &x = a.chunks[i], &y = b.chunks[i];
    CHECK((x.device == y.device && x.segment == y.segment && x.produces_outputs == y.produces_outputs));
    CHECK((x.nodes == y.nodes && x.wave_begin == y.wave_begin));
    CHECK((x.uploads == y.uploads && x.downloads == y.downloads));
    CHECK((x.predecessors == y.predecessors && x.dependents == y.dependents));
  }
  CHECK(a.transfers == b.transfers);
  CHECK((a.placement == b.placement && a.inserted == b.inserted && a.storage == b.storage));
  CHECK((a.producer == b.producer && a.segment_of_value == b.segment_of_value && a.known_values == b.known_values));
  CHECK((a.weight_bytes == b.weight_bytes && a.devices == b.devices && a.segment_count == b.segment_count));
}

void check_same_values(const graph& a, const graph& b) {
  REQUIRE(a.values.size() == b.values.size());
  for (size_t v = 0; v < a.values.size(); ++v) {
    const value &x = a.values[v], &y = b.values[v];
    CHECK((x.name == y.name && x.type == y.type && x.dims == y.dims && x.known == y.known && x.layout == y.layout));
    REQUIRE((x.constant == nullptr) == (y.constant == nullptr));
    if (!x.constant)
      continue;
    const tensor one = materialise(*x.constant), other = materialise(*y.constant);
    REQUIRE((one.type() == other.type() && one.dims() == other.dims()));
    if (one.type() != dtype::string)
      CHECK(std::memcmp(one.data(), other.data(), static_cast<size_t>(one.bytes())) == 0);
  }
}

void check_same_binding(const bound_plan& a, const bound_plan& b) {
  CHECK(a.dims == b.dims);
  CHECK(a.segment == b.segment);
  REQUIRE(a.known.size() == b.known.size());
  for (size_t v = 0; v < a.known.size(); ++v)
    if (a.known[v].defined())
      CHECK(std::memcmp(a.known[v].data(), b.known[v].data(), static_cast<size_t>(a.known[v].bytes())) == 0);
  REQUIRE(a.layout->memory.size() == b.layout->memory.size());
  for (size_t d = 0; d < a.layout->memory.size(); ++d) {
    CHECK(std::ranges::equal(a.layout->memory[d].offset, b.layout->memory[d].offset));
    CHECK(a.layout->memory[d].arena_bytes == b.layout->memory[d].arena_bytes);
    CHECK(slot_bytes(*a.layout, static_cast<device_index>(d)) == slot_bytes(*b.layout, static_cast<device_index>(d)));
  }
}

/// Binds all segments to several dims on both sides; returns how many bindings shared a layout.
size_t check_bindings(const std::shared_ptr<const plan>& p, const wire::decoded_plan& made) {
  layout_buckets buckets(4);
  wire::layout_table layouts;
  size_t bindings_made = 0;
  for (int64_t n : {6, 9, 10, 11, 12}) {
    const bindings values = symbols_near(*p, n);
    for (uint32_t s = 0; s < p->segment_count; ++s) {
      bound_plan_ptr bound;
      try {
        bound = buckets.bind(p, s, values);
      } catch (const error&) {
        continue; // dims that do not fit this model
      }
      ++bindings_made;
      const wire::decoded_binding other = wire::decode_binding(wire::encode_binding(*bound), made, layouts);
      CHECK(other.id == bound->id);
      check_same_binding(*bound, *other.bound);
      verify_memory(*other.bound);
    }
  }
  return bindings_made - layouts.size();
}

/// Encodes, decodes and compares a plan, and those of its bodies.
void check_plan(const std::shared_ptr<const plan>& p, size_t& shared, size_t& open) {
  leaf_table leaves;
  const std::vector<uint8_t> bytes = leaves.encode(*p);
  const wire::decoded_plan made = decode_whole(bytes, leaves);
  CHECK(wire::fingerprint(*made.source) == wire::fingerprint(*p));
  check_same_chunks(*p, *made.source);
  check_same_values(*p->program, *made.source->program);
  verify_chunks(*made.source);
  shared += check_bindings(p, made);
  open += made.open_nodes.size();
  for (const planned_body& body : p->bodies)
    check_plan(body.compiled, shared, open);
}

} // namespace

TEST_CASE("plans cross hosts unchanged, and so do their bindings", "[wire]") {
  size_t shared = 0, open = 0, with_bodies = 0;
  for (const auto& [name, program] : wire_programs())
    for (const std::vector<device_info>& devices : wire_device_sets())
      for (placement_policy policy :
           {placement_policy::single, placement_policy::round_robin, placement_policy::heft}) {
        INFO(name << " on " << devices.back().name << ", " << devices.size() << " devices");
        const auto p = make_plan(program, devices, {.policy = policy});
        check_plan(p, shared, open);
        with_bodies += !p->bodies.empty();
      }
  CHECK(with_bodies > 10);
  CHECK(shared > 100);
}

TEST_CASE("plans of nodes in parts cross hosts unchanged", "[wire][split]") {
  size_t shared = 0, open = 0, split = 0;
  for (const auto& [name, program] : wire_programs())
    for (const std::vector<device_info>& devices : wire_device_sets())
      for (const int along : {-1, 0, 1, 2}) {
        INFO(name << " on " << devices.back().name << ", " << devices.size() << " devices, along " << along);
        const auto p = make_plan(program, devices, {.policy = placement_policy::split, .split_along = along});
        check_plan(p, shared, open);
        split += p->split.has_value();
      }
  CHECK(split > 10);
}

TEST_CASE("fused quantised calls with absent zero points cross hosts", "[wire][quantised]") {
  const auto& program = wire_programs().at("quantised");
  CHECK(count_nodes(*program, "troupe.QuantizedMatMul") == 1);
  CHECK(count_nodes(*program, "troupe.QuantizedElementwise") > 0);
  size_t shared = 0, open = 0;
  const auto p = make_plan(program, wire_device_sets()[1], {.policy = placement_policy::round_robin});
  check_plan(p, shared, open);
  plan other = *p;
  const auto without = std::make_shared<graph>(*p->program);
  for (node& n : without->nodes)
    if (n.op_type == "QuantizedMatMul")
      n.inputs[3] = no_value; // a kernel would read B's scale, where there is none
  other.program = without;
  leaf_table leaves;
  CHECK_THROWS_WITH(wire::decode_plan(leaves.encode(other)), Catch::Contains("input 3 is missing"));
}

TEST_CASE("questions of compositions stay with the host that binds", "[wire]") {
  graph_builder b;
  const dim n = dim::symbol("n"), m = dim::symbol("m");
  b.g.opsets["com.microsoft"] = 1;
  const std::vector<value_id> operands{b.input("x", {n, 4}), b.input("y", {m, 4}), b.input("gate", {n, 1})};
  b.output(b.call("GatedAdd", operands, {"sum"}, {}, "com.microsoft")[0]);
  const auto p = make_plan(std::make_shared<const graph>(rewrite(b.g, {})), wire_device_sets()[0], {});
  CHECK(p->open_calls.at(0).size() == 1);
  leaf_table leaves;
  const wire::decoded_plan made = decode_whole(leaves.encode(*p), leaves);
  CHECK(made.source->open_calls.at(0).empty());
  const bound_plan_ptr bound = bind_segment(p, 0, {{"m", 3}, {"n", 3}});
  wire::layout_table layouts;
  check_same_binding(*bound, *wire::decode_binding(wire::encode_binding(*bound), made, layouts).bound);
}

TEST_CASE("random plans cross hosts unchanged", "[wire]") {
  size_t shared = 0, open = 0, several = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto sets = wire_device_sets();
    const auto policy = random() % 2 ? placement_policy::round_robin : placement_policy::heft;
    const auto p = make_plan(random_program(random), sets[random() % sets.size()], {.policy = policy});
    check_plan(p, shared, open);
    several += p->segment_count > 1;
  }
  CHECK(several > 5);
  CHECK(shared > 100);
}

TEST_CASE("large leaves are asked for by content, once each", "[wire]") {
  const auto p =
      make_plan(wire_programs().at("product unfused"), wire_device_sets()[1], {placement_policy::round_robin});
  leaf_table leaves;
  const std::vector<uint8_t> bytes = leaves.encode(*p);
  CHECK(bytes.size() < 10'000);
  REQUIRE(leaves.leaves.size() == 1);
  wire::decoded_plan made = wire::decode_plan(bytes);
  REQUIRE(made.leaves.size() == 1);
  const auto& [content, leaf] = *made.leaves.begin();
  CHECK(leaf->key == content);
  size_t wanted = 0;
  for (device_index d = 0; d < 2; ++d) {
    const std::vector<hash128> needed = wire::leaves_needed(*made.source, d);
    wanted += needed.size();
    CHECK((needed.empty() || needed == std::vector{content}));
  }
  CHECK(wanted > 0);
  CHECK(thrown_by([&] { wire::fill(*leaf, tensor(dtype::float32, {200, 201})); }).code() == errc::invalid_input);
  wire::fill(*leaf, leaves.leaves.at(content));
  CHECK(wire::leaves_needed(*made.source, 0).empty());
  CHECK(wire::leaves_needed(*made.source, 1).empty());
}

TEST_CASE("a plan that would be another one here is refused", "[wire]") {
  const auto p = make_plan(wire_programs().at("product"), wire_device_sets()[1], {placement_policy::round_robin});
  leaf_table leaves;
  std::vector<uint8_t> bytes = leaves.encode(*p);
  bytes[3] ^= 1; // of the fingerprint, which comes first
  const error e = thrown_by([&] { wire::decode_plan(bytes); });
  CHECK(e.code() == errc::invalid_plan);
  CHECK_THAT(e.what(), Contains("derives another plan"));
}

TEST_CASE("a binding of another plan or of another layout is refused", "[wire]") {
  const auto p = make_plan(wire_programs().at("product"), wire_device_sets()[0], {});
  leaf_table leaves;
  const wire::decoded_plan one = decode_whole(leaves.encode(*p), leaves), two = decode_whole(leaves.encode(*p), leaves);
  const std::vector<uint8_t> bytes = wire::encode_binding(*bind_segment(p, 0, {{"n", 5}}));
  wire::layout_table layouts;
  wire::decode_binding(bytes, one, layouts);
  CHECK(layouts.size() == 1);
  CHECK_THAT(thrown_by([&] { wire::decode_binding(bytes, two, layouts); }).what(), Contains("another plan"));
}
