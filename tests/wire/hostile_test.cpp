// Damaged plans and bindings end in a plan or in one clear error.
#include "support/catch.hpp"
#include "support/verify_memory.hpp"
#include "wire/wire_models.hpp"

#include <functional>

using namespace troupe;
using namespace troupe::test;

namespace {

struct message {
  std::vector<uint8_t> plan, binding;
  std::shared_ptr<const troupe::plan> source;
};

/// A small plan, and its first segment's binding.
message message_of(const std::string& name) {
  message m;
  leaf_table leaves;
  m.source = make_plan(wire_programs().at(name), wire_device_sets()[1], {placement_policy::round_robin});
  m.plan = leaves.encode(*m.source);
  m.binding = wire::encode_binding(*bind_segment(m.source, 0, symbols_near(*m.source, 6)));
  return m;
}

/// Returns whether `work` succeeds; an error has to be one to expect of bad bytes, with words.
bool passes(const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const error& e) {
    INFO(e.what());
    CHECK(e.code() != errc::internal);
    CHECK(*e.what() != '\0');
    return false;
  }
}

/// Decodes a plan as a worker does, and binds it.
void use_plan(std::span<const uint8_t> bytes) {
  const wire::decoded_plan made = wire::derive_plan(bytes);
  for (device_index d = 0; d < made.source->devices.size(); ++d)
    wire::leaves_needed(*made.source, d);
  wire::fingerprint(*made.source);
  const bound_plan_ptr bound = bind_segment(made.source, 0, symbols_near(*made.source, 6));
  verify_memory(*bound);
  wire::layout_table layouts;
  wire::decode_binding(wire::encode_binding(*bound), made, layouts);
}

std::vector<uint8_t> damaged(std::vector<uint8_t> bytes, std::mt19937_64& random) {
  for (size_t edits = 1 + random() % 3; edits-- > 0 && !bytes.empty();) {
    const size_t at = random() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 6) {
      case 0: bytes[at] = static_cast<uint8_t>(random()); break;
      case 1: bytes[at] ^= static_cast<uint8_t>(1u << random() % 8); break;
      case 2: bytes[at] = random() % 2 ? 0xff : 0x7f; break;
      case 3:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(std::min(bytes.size() - at, 1 + random() % 8)));
        break;
      case 4: bytes.insert(place, 1 + random() % 8, static_cast<uint8_t>(random() % 3)); break;
      default: bytes[at] = bytes[random() % bytes.size()];
    }
  }
  return bytes;
}

} // namespace

TEST_CASE("a plan or a binding that is cut short anywhere is refused", "[wire]") {
  for (const char* name : {"recipe", "control", "shapes"}) {
    const message m = message_of(name);
    for (size_t cut = 0; cut < m.plan.size(); ++cut)
      CHECK_FALSE(passes([&] { use_plan(std::span(m.plan).first(cut)); }));
    const wire::decoded_plan made = wire::decode_plan(m.plan);
    for (size_t cut = 0; cut < m.binding.size(); ++cut)
      CHECK_FALSE(passes([&] {
        wire::layout_table layouts;
        wire::decode_binding(std::span(m.binding).first(cut), made, layouts);
      }));
  }
}

TEST_CASE("a damaged plan or binding is refused or used, never worse", "[wire]") {
  constexpr int rounds = 2000;
  std::mt19937_64 random(13);
  size_t used = 0, refused = 0;
  for (const char* name : {"recipe", "control", "shapes", "quantized", "product", "data", "dims", "scan"}) {
    const message m = message_of(name);
    const wire::decoded_plan made = wire::decode_plan(m.plan);
    INFO(name);
    for (int i = 0; i < rounds; ++i)
      ++(passes([&] { use_plan(damaged(m.plan, random)); }) ? used : refused);
    for (int i = 0; i < rounds; ++i)
      ++(passes([&] {
        wire::layout_table layouts;
        verify_memory(*wire::decode_binding(damaged(m.binding, random), made, layouts).bound);
      })
             ? used
             : refused);
  }
  CHECK(used > 4'000);
  CHECK(refused > 10'000);
}

namespace {

/// Returns a worker's answer to a plan that differs in one thing, with a fingerprint to match.
std::string refusal_of(const std::string& name, const std::function<void(plan&, graph&)>& change) {
  const auto p = make_plan(wire_programs().at(name), wire_device_sets()[1], {placement_policy::round_robin});
  plan other = *p;
  auto program = std::make_shared<graph>(*p->program);
  other.program = program;
  change(other, *program);
  leaf_table leaves;
  try {
    wire::decode_plan(leaves.encode(other));
  } catch (const error& e) {
    CHECK(e.code() != errc::internal);
    return e.what();
  }
  return "it was accepted";
}

value_id output_of(const graph& g, const std::string& op) {
  for (const node& n : g.nodes)
    if (n.op_type == op)
      return n.outputs.at(0);
  throw std::logic_error("no node of this kind");
}

} // namespace

TEST_CASE("a plan whose values are not those that its operators make is refused", "[wire]") {
  using Catch::Contains;
  const std::string name = "product unfused";
  CHECK_THAT(refusal_of(name, [](plan&, graph&) {}), Contains("it was accepted"));
  CHECK_THAT(refusal_of(name, [](plan&, graph& g) { g.values[output_of(g, "Relu")].dims->push_back(2); }),
             Contains("another type or rank"));
  CHECK_THAT(refusal_of(name, [](plan&, graph& g) { (*g.values[output_of(g, "Relu")].dims)[1] = 3; }),
             Contains("other dims"));
  CHECK_THAT(refusal_of(name, [](plan&, graph& g) { g.values[output_of(g, "Relu")].type = dtype::int8; }),
             Contains("another type or rank"));
  CHECK_THAT(refusal_of(name, [](plan&, graph& g) { std::swap(g.nodes.front(), g.nodes.back()); }),
             Contains("a node reads what a later one makes"));
  CHECK_THAT(refusal_of(name, [](plan&, graph& g) { g.values[output_of(g, "Relu")].layout = layout::channels_last; }),
             Contains("no channels-last form"));
  CHECK_THAT(refusal_of(name,
                        [](plan&, graph& g) {
                          const auto weight =
                              std::ranges::find_if(g.values, [](const value& v) { return v.constant != nullptr; });
                          g.inputs.push_back(static_cast<value_id>(weight - g.values.begin()));
                        }),
             Contains("an input is a constant"));
  CHECK_THAT(refusal_of(name, [](plan& p, graph&) { p.placement[0] = 7; }), Contains("device cannot run it"));
  CHECK_THAT(
      refusal_of(name, [](plan& p, graph&) { p.devices.push_back({.name = "x", .kind = device_kind::control}); }),
      Contains("not as many"));
}

TEST_CASE("dims that operators do not make are found when a plan is bound", "[wire]") {
  const auto p = make_plan(wire_programs().at("product unfused"), wire_device_sets()[0], {});
  auto program = std::make_shared<graph>(*p->program);
  (*program->values[output_of(*program, "Sigmoid")].dims)[0] =
      dim::symbol("n") - 1; // a kernel would write beyond its end
  const auto other = restore_plan({program, p->devices, p->placement, p->inserted, p->chunk_of_node});
  leaf_table leaves;
  const wire::decoded_plan made = wire::decode_plan(leaves.encode(*other));
  CHECK(!made.open_nodes.empty());
  const std::vector<uint8_t> binding = wire::encode_binding(*bind_segment(p, 0, {{"n", 6}}));
  wire::layout_table layouts;
  CHECK_FALSE(passes([&] { wire::decode_binding(binding, made, layouts); }));
}
