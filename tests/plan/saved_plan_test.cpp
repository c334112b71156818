// Plans that are saved, edited and made again: a plan that fits is followed to the letter, and a misfit is named.
#include "plan/saved_plan.hpp"

#include "ops/registry.hpp"
#include "plan/graphs.hpp"
#include "plan/show/print.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "troupe/model_builder.hpp"

#include <nlohmann/json.hpp>

#include <random>

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;
using nlohmann::json;

namespace {

/// Two chains of three from one input, joined at the end: n0 … n6.
std::shared_ptr<const graph> two_chains(const op_def& first = plain_op) {
  graph_builder b;
  const value_id in = b.input({dim::symbol("n"), 4});
  std::vector<value_id> ends;
  for (int chain = 0; chain < 2; ++chain) {
    value_id v = b.node(chain ? plain_op : first, {in}, {dim::symbol("n"), 4});
    for (int i = 0; i < 2; ++i)
      v = b.node(plain_op, {v}, {dim::symbol("n"), 4});
    ends.push_back(v);
  }
  return b.done({b.node(plain_op, ends, {dim::symbol("n"), 4})});
}

json saved_json(const std::shared_ptr<const graph>& g, const std::vector<device_info>& devices,
                placement_policy policy = placement_policy::single) {
  return json::parse(to_json(*make_plan(g, devices, {policy})));
}

std::shared_ptr<const plan> load(const std::shared_ptr<const graph>& g, const std::vector<device_info>& devices,
                                 const json& saved) {
  auto p = make_plan(g, devices, {.saved = parse_saved_plan(saved.dump(), "edited.json")});
  verify(*p);
  return p;
}

/// Replaces the chunks by these: a device and its nodes' names each.
void set_chunks(json& saved, const std::vector<std::pair<std::string, std::vector<std::string>>>& chunks) {
  saved["chunks"] = json::array();
  for (const auto& [device, nodes] : chunks) {
    json list = json::array();
    for (const std::string& name : nodes)
      list.push_back({{"name", name}, {"op", "plain"}});
    saved["chunks"].push_back({{"device", device}, {"nodes", list}});
  }
}

/// Names of a chunk's nodes.
std::vector<std::string> names_of(const plan& p, chunk_id id) {
  std::vector<std::string> names;
  for (node_id n : p.chunks.at(id).nodes)
    names.push_back(p.program->nodes[n].name);
  return names;
}

std::string refusal(const std::shared_ptr<const graph>& g, const std::vector<device_info>& devices, const json& saved) {
  try {
    load(g, devices, saved);
  } catch (const error& e) {
    CHECK(e.code() == errc::invalid_plan);
    CHECK_THAT(e.what(), Catch::StartsWith("edited.json: "));
    return e.what();
  }
  return "it was accepted";
}

} // namespace

TEST_CASE("an edited plan is followed: devices, cuts and joins", "[plan][B1]") {
  const auto g = two_chains();
  const auto devices = cpus(2);
  json saved = saved_json(g, devices);
  REQUIRE(saved["chunks"].size() == 1);
  set_chunks(saved, {{"cpu#0", {"n0"}}, {"cpu#0", {"n1", "n2"}}, {"cpu#1", {"n5", "n3", "n4"}}, {"cpu#0", {"n6"}}});
  const auto p = load(g, devices, saved);
  REQUIRE(p->chunks.size() == 4);
  CHECK(names_of(*p, 0) == std::vector<std::string>{"n0"});
  CHECK(names_of(*p, 1) == std::vector<std::string>{"n1", "n2"});
  CHECK(names_of(*p, 2) == std::vector<std::string>{"n3", "n4", "n5"});
  CHECK(p->devices[p->chunks[2].device].name == "cpu#1");
  CHECK(p->chunks[3].predecessors == std::vector<chunk_id>{1, 2});
  CHECK(p->key != make_plan(g, devices, {})->key);

  // A chunk may wait for another device in its middle if the file wants it: grown chunks never do.
  set_chunks(saved, {{"cpu#1", {"n3"}}, {"cpu#0", {"n0", "n1", "n2", "n4", "n5", "n6"}}});
  CHECK(load(g, devices, saved)->chunks.size() == 2);
}

TEST_CASE("the order of chunks in a saved plan does not matter", "[plan][B1]") {
  const auto g = two_chains();
  json saved = saved_json(g, cpus(2));
  set_chunks(saved, {{"cpu#0", {"n6"}}, {"cpu#1", {"n5", "n4"}}, {"cpu#0", {"n2", "n1", "n0", "n3"}}});
  const auto p = load(g, cpus(2), saved);
  REQUIRE(p->chunks.size() == 3);
  CHECK(names_of(*p, 0) == std::vector<std::string>{"n0", "n1", "n2", "n3"});
  CHECK(names_of(*p, 2) == std::vector<std::string>{"n6"});
}

TEST_CASE("a fault of a saved plan is named", "[plan][B1][D8][C5]") {
  const auto g = two_chains();
  const auto devices = cpus(2);
  json good = saved_json(g, devices);
  set_chunks(good, {{"cpu#0", {"n0"}}, {"cpu#1", {"n1"}}, {"cpu#0", {"n2"}}, {"cpu#1", {"n3", "n4", "n5", "n6"}}});
  const auto refused = [&](const std::function<void(json&)>& edit) {
    json saved = good;
    edit(saved);
    return refusal(g, devices, saved);
  };
  CHECK(refused([](json&) {}) == "it was accepted");
  json& (*const chunk_node)(json&) = [](json& j) -> json& { return j["chunks"][1]["nodes"][0]; };
  CHECK_THAT(refused([](json& j) { j["chunks"][1]["device"] = "vulkan:7"; }),
             Contains("chunk 1 is on the device 'vulkan:7', which is not open; open are: cpu#0, cpu#1"));
  CHECK_THAT(refused([&](json& j) { chunk_node(j)["name"] = "none"; }),
             Contains("chunk 1 names the node 'none', which the model does not have"));
  CHECK_THAT(refused([&](json& j) { chunk_node(j)["op"] = "Conv"; }),
             Contains("the node 'n1' is a Conv in the plan, but a plain in the model"));
  CHECK_THAT(refused([](json& j) { j["chunks"][2]["nodes"].push_back(j["chunks"][1]["nodes"][0]); }),
             Contains("the node 'n1' is listed twice, in chunk 1 and in chunk 2"));
  CHECK_THAT(refused([](json& j) { j["chunks"].erase(1); }), Contains("no chunk holds test.plain 'n1'"));
  CHECK_THAT(refused([](json& j) { j["chunks"] = json::array(); }),
             Contains("no chunk holds test.plain 'n0' and 6 nodes more"));
  CHECK_THAT(refused([](json& j) {
               set_chunks(j, {{"cpu#0", {"n0", "n2", "n3", "n4", "n5"}}, {"cpu#1", {"n1", "n6"}}});
             }),
             Contains("chunks wait for each other: ") && Contains("'n1' in chunk 1 waits for 'n0' in chunk 0") &&
                 Contains("'n2' in chunk 0 waits for 'n1' in chunk 1"));
  CHECK_THAT(refused([](json& j) { j.erase("troupe_plan"); }), Contains("the file: 'troupe_plan' is missing"));
  CHECK_THAT(refused([](json& j) { j["troupe_plan"] = 99; }), Contains("plan version 99 is not known"));
  CHECK_THAT(refused([](json& j) { j["chunks"] = 5; }), Contains("chunks: a list is needed"));
  CHECK_THAT(refused([](json& j) { j["chunks"][0] = "chunk"; }), Contains("chunks[0]: 'device' is missing"));
  CHECK_THAT(refused([](json& j) { j["chunks"][2]["device"] = 2; }), Contains("chunks[2].device: a text is needed"));
  CHECK_THAT(refused([&](json& j) { chunk_node(j) = "n1"; }), Contains("chunks[1].nodes[0]: 'name' is missing"));
  CHECK_THAT(refused([](json& j) { j.erase("model"); }), Contains("the file: 'model' is missing"));
  CHECK_THAT(refused([](json& j) { j["model"]["structure"] = "00"; }), Contains("saved for another model"));
  CHECK_THROWS_WITH(parse_saved_plan("{\"chunks\": [", "cut.json"),
                    Contains("cut.json: not a plan: line 1, column 13: the text ends too early"));
  CHECK_THROWS_WITH(parse_saved_plan("[]", "list.json"), Contains("list.json: the file: 'troupe_plan' is missing"));
  CHECK_THROWS_WITH(read_saved_plan("no/such/file.json"), Contains("'no/such/file.json' cannot be read"));
}

TEST_CASE("a saved plan may nest as deep as it likes", "[plan][B1][D8]") {
  constexpr size_t deep = 1'000'000; // whatever takes a stack frame a level crashes
  const std::string nested = std::string(deep, '[') + std::string(deep, ']');
  const auto refused = [&](const std::string& text) {
    const error e = test::thrown_by([&] { parse_saved_plan(text, "deep.json"); });
    CHECK(e.code() == errc::invalid_plan);
    return std::string(e.what());
  };
  CHECK_THAT(refused("{\"troupe_plan\": " + nested + "}"), Contains("plan version that is not a number is not known"));
  CHECK_THAT(refused("{\"troupe_plan\": 1, \"model\": " + nested + "}"), Contains("model"));
  CHECK_THAT(refused(nested), Contains("the file"));
}

TEST_CASE("a plan of another model is refused with the differences", "[plan][B1]") {
  const json saved = saved_json(two_chains(), cpus(2));
  CHECK_THAT(
      refusal(two_chains(in_place_op), cpus(2), saved),
      Contains("the node 'n0' is a plain in the plan, but a in_place in the model; the plan was saved for another "
               "model, or with other options"));
  graph other = *two_chains();
  other.nodes[3].attrs.set("axis", int64_t{1});
  CHECK_THAT(refusal(std::make_shared<graph>(other), cpus(2), saved),
             Contains("nodes of these names have other attributes, operands, types or shapes here"));
  other = *two_chains();
  other.nodes[3].name = "renamed";
  CHECK_THAT(refusal(std::make_shared<graph>(other), cpus(2), saved),
             Contains("names the node 'n3', which the model does not have; the plan was saved for another model"));
}

TEST_CASE("weights may change under a saved plan", "[plan][B1]") {
  const auto with_weight = [](float w) {
    graph_builder b;
    const value_id in = b.input({4});
    const value_id weight = b.g.add_constant("w", tensor::scalar(w));
    return b.done({b.node(plain_op, {in, weight}, {4})});
  };
  CHECK(load(with_weight(2), cpus(1), saved_json(with_weight(1), cpus(1)))->chunks.size() == 1);
}

TEST_CASE("a saved plan cannot put a node on a GPU without a kernel for it", "[plan][B1]") {
  const auto g = two_chains(host_op);
  const auto devices = gpus_and_fallback(1);
  json saved = saved_json(g, devices);
  const std::string why = "which cannot run it: no GPU kernel for test.host";
  for (json& c : saved["chunks"])
    c["device"] = "vulkan:0";
  CHECK_THAT(refusal(g, devices, saved), Contains("puts test.host 'n0' on 'vulkan:0', " + why));
}

TEST_CASE("a chunk of a saved plan stays within a segment", "[plan][B1]") {
  graph_builder b;
  const value_id in = b.input({8, 4});
  const value_id found = b.data_dependent(plain_op, {in});
  const auto g = b.done({b.node(plain_op, {found}, {dim::symbol("#" + b.g.values[found].name + ".0"), 4})});
  json saved = saved_json(g, cpus(1));
  REQUIRE(saved["chunks"].size() == 2);
  CHECK(load(g, cpus(1), saved)->segment_count == 2);
  set_chunks(saved, {{"cpu#0", {"n0", "n1"}}});
  CHECK_THAT(refusal(g, cpus(1), saved), Contains("'n0' and 'n1' cannot be in one chunk: shapes depend on data"));
}

TEST_CASE("nodes that planning inserts are where they were when a plan is made again", "[plan][B1]") {
  const auto inserted = [](const json& saved) {
    size_t count = 0;
    for (const json& c : saved["chunks"])
      for (const json& n : c["nodes"])
        count += n.contains("inserted");
    return count;
  };
  const auto check_round_trip = [&](const std::shared_ptr<const graph>& g, const std::vector<device_info>& devices) {
    const json saved = saved_json(g, devices, placement_policy::round_robin);
    CHECK(inserted(saved) > 2);
    const auto p = load(g, devices, saved);
    REQUIRE(p->chunks.size() == saved["chunks"].size());
    for (chunk_id c = 0; c < p->chunks.size(); ++c) {
      std::vector<std::string> names;
      for (const json& n : saved["chunks"][c]["nodes"])
        names.push_back(n["name"]);
      CHECK(names_of(*p, c) == names);
    }
    json without = saved;
    for (json& c : without["chunks"])
      for (size_t n = c["nodes"].size(); n-- > 0;)
        if (c["nodes"][n].contains("inserted"))
          c["nodes"].erase(n);
    CHECK(load(g, devices, without)->program->nodes.size() == p->program->nodes.size());
  };
  // Large values between GPUs move in pieces.
  graph_builder b;
  const dim size = int64_t{1} << 24;
  const value_id in = b.input({size});
  const auto large = b.done({b.node(plain_op, {b.node(plain_op, {b.node(plain_op, {in}, {size})}, {size})}, {size})});
  check_round_trip(large, gpus(2));

  // Convolutions want channels last.
  model_builder m;
  variable x = m.input("x", dtype::float32, {1, 4, 8, 8});
  for (int i = 0; i < 3; ++i) {
    tensor weights(dtype::float32, {4, 4, 1, 1});
    std::fill_n(weights.mutable_data<float>(), weights.size(), 1.f);
    x = m.relu(m.conv(x, weights));
  }
  m.output("y", x);
  auto devices = cpus(3);
  for (device_info& d : devices)
    d.prefers_channels_last = true;
  check_round_trip(test::inferred_program(m.build().source()), devices);
}

TEST_CASE("an inserted node needs a chunk on its device", "[plan][B1][E5]") {
  graph_builder b;
  const value_id in = b.input({4});
  const auto g = b.done({b.node(plain_op, {b.node(plain_op, {in}, {4})}, {4})});
  saved_plan saved;
  saved.source = "mine.json";
  saved.chunks.push_back({.device = "cpu#0", .nodes = {}});
  const auto include = [&](const std::vector<device_index>& placement) {
    return include_inserted(*g, {false, true}, placement, cpus(2), saved, {0});
  };
  CHECK(include({0, 0}) == chunk_assignment{0, 0});
  CHECK_THROWS_WITH(include({0, 1}), Contains("mine.json: no chunk holds") && Contains("needs on 'cpu#1'"));
}

TEST_CASE("nodes get names of their own, so that plans can be edited by name", "[plan][B1]") {
  graph_builder b;
  value_id v = b.input({4});
  for (const char* name : {"same", "same", "", "bad \xff", "same#2"}) {
    v = b.node(plain_op, {v}, {4});
    b.g.nodes.back().name = name;
  }
  const auto g = b.done({v});
  const auto p = make_plan(g, cpus(2), {placement_policy::round_robin});
  CHECK(names_of(*p, 0) == std::vector<std::string>{"same"});
  CHECK(names_of(*p, 1) == std::vector<std::string>{"same#2"});
  CHECK(names_of(*p, 2) == std::vector<std::string>{"plain"});
  CHECK(names_of(*p, 3) == std::vector<std::string>{"bad \\xff"});
  CHECK(names_of(*p, 4) == std::vector<std::string>{"same#2#2"});
  CHECK(load(g, cpus(2), json::parse(to_json(*p)))->chunks.size() == 5);
}

TEST_CASE("a mutated plan is refused or followed, never worse", "[plan][B1][D8]") {
  const auto g = two_chains();
  const std::string good = to_json(*make_plan(g, cpus(2), {placement_policy::round_robin}));
  std::mt19937_64 random(5);
  size_t accepted = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = good;
    for (size_t edits = 1 + random() % 3; edits-- > 0;) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 20); break;
        case 2: text.insert(at, text.substr(random() % text.size(), 30)); break;
        default: text[at] = "0123456789\"{}[],:n"[random() % 18];
      }
    }
    try {
      verify(*make_plan(g, cpus(2), {.saved = parse_saved_plan(text, "mutated.json")}));
      ++accepted;
    } catch (const error& e) {
      CHECK(e.code() == errc::invalid_plan);
      ++refused;
    }
  }
  CHECK(accepted > 50);
  CHECK(refused > 1000);
}
