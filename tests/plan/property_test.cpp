// Properties of plans of thousands of random graphs: invariants, memory, and simulated executions in random order.
#include "plan/bind/layout_buckets.hpp"
#include "plan/cut/waves.hpp"
#include "plan/graphs.hpp"
#include "plan/saved_plan.hpp"
#include "plan/show/print.hpp"
#include "plan/simulated_execution.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>
#include <set>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Dims of an earlier value, which may make a node depend on data, or new ones.
symbolic_shape random_dims(generator& random, const graph_builder& b, const std::vector<value_id>& values) {
  if (below(random, 3) == 0)
    return *b.g.values[values[below(random, values.size())]].dims;
  if (below(random, 3) == 0)
    return {dim::symbol("n"), static_cast<int64_t>(1 + below(random, 40))};
  const int64_t scale = below(random, 4) ? 1 : 4096; // sometimes so large that copying it beside work pays
  return {static_cast<int64_t>(1 + below(random, 300)) * scale};
}

/// Adds products of earlier values beside each other, perhaps read elsewhere too.
void add_joined_products(generator& random, graph_builder& b, std::vector<value_id>& values) {
  std::vector<value_id> matrices;
  for (value_id v : values)
    if (const symbolic_shape& dims = *b.g.values[v].dims;
        dims.size() == 2 && dims[1].is(8) && dims[0] == dim::symbol("n"))
      matrices.push_back(v);
  std::vector<value_id> parts;
  for (size_t i = 0; i < 2 + below(random, 2); ++i) {
    const auto columns = static_cast<int64_t>(1 + below(random, 12));
    const value_id w = b.g.add_constant(fmt::format("w{}", b.g.values.size()), tensor(dtype::float32, {8, columns}));
    parts.push_back(b.inferred("MatMul", {matrices[below(random, matrices.size())], w}));
    if (below(random, 6) == 0)
      values.push_back(parts.back());
  }
  values.push_back(b.inferred("Concat", parts, test::attrs_of({{"axis", int64_t{1}}})));
}

/// Adds a node of a random kind that reads some of `values`; appends its output.
void add_random_node(generator& random, graph_builder& b, std::vector<value_id>& values) {
  if (below(random, 12) == 0)
    return add_joined_products(random, b, values);
  const auto pick = [&] { return values[values.size() - 1 - below(random, std::min<size_t>(values.size(), 8))]; };
  std::vector<value_id> inputs{pick()};
  const symbolic_shape first = *b.g.values[inputs[0]].dims;
  switch (below(random, 10)) {
    case 0:
    case 1: values.push_back(b.node(view_op, inputs, first)); return;
    case 2:
      if (below(random, 4) == 0) {
        values.push_back(b.data_dependent(plain_op, inputs));
        return;
      }
      [[fallthrough]];
    case 3:
    case 4:
      inputs.push_back(pick());
      values.push_back(b.node(in_place_op, inputs, first));
      return;
    default:
      while (below(random, 2))
        inputs.push_back(pick());
      if (below(random, 8) == 0)
        inputs.push_back(no_value);
      if (below(random, 8) == 0) // shape arithmetic: elements known on the host, perhaps only in a later segment
        inputs.push_back(b.known({1}, {b.g.values[values[below(random, values.size())]].dims->front() + 1}));
      values.push_back(b.node(below(random, 8) ? plain_op : host_op, inputs, random_dims(random, b, values)));
  }
}

std::shared_ptr<const graph> random_graph(generator& random) {
  graph_builder b;
  std::vector<value_id> values;
  for (size_t i = 0; i <= below(random, 3); ++i)
    values.push_back(b.input({dim::symbol("n"), 8}));
  values.push_back(b.g.add_constant("w", tensor::of<float>({2}, std::vector<float>{1, 2})));
  values.push_back(b.known({2}, {dim::symbol("n"), 3}));
  for (size_t i = 0, count = 1 + below(random, 40); i < count; ++i)
    add_random_node(random, b, values);
  std::vector<value_id> outputs;
  for (size_t i = 0; i <= below(random, 3); ++i)
    outputs.push_back(values[values.size() - 1 - below(random, std::min<size_t>(values.size(), 12))]);
  return b.done(outputs);
}

/// Checks pair by pair that arena values which are live together do not overlap, save an in-place output and its input.
void check_no_overlap(const plan& p, const bound_plan& b) {
  for (device_index d = 0; d < p.devices.size(); ++d) {
    const device_lifetimes& all = p.lifetimes[b.segment * p.devices.size() + d];
    for (size_t i = 0; i < all.values.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const lifetime &x = all.values[j], &y = all.values[i];
        const auto begin = [&](const lifetime& l) { return b.layout->memory[d].offset[l.value]; };
        const auto end = [&](const lifetime& l) {
          return begin(l) + bytes_of(dtype::float32, volume(b.dims[l.value]));
        };
        const bool apart = x.last < y.first || end(x) <= begin(y) || end(y) <= begin(x);
        const bool in_place =
            x.last == y.first && begin(x) == begin(y) && end(x) == end(y) && y.reuse_end > y.reuse_begin;
        if (!apart && !in_place)
          FAIL("values " << x.value << " and " << y.value << " overlap on device " << d);
      }
  }
}

/// Host-memory devices, others that run everything, and GPUs; one at least runs everything.
std::vector<device_info> random_devices(generator& random) {
  std::vector<device_info> devices = cpus(1 + below(random, 6));
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string name = devices[i].name;
    if (i > 0 && below(random, 2))
      devices[i] = gpus(1)[0];
    devices[i].name = name;
    devices[i].host_memory = !devices[i].gpu && below(random, 4) != 0;
    devices[i].copies_beside_work = !devices[i].host_memory && below(random, 2);
    devices[i].profile.launch_s = 1e-3;
    devices[i].profile.submit_s = below(random, 2) ? 1e-2 : 1e-5;
    devices[i].profile.down.bytes_per_s = devices[i].host_memory ? 1e20 : 1e9;
    devices[i].fallback = devices.size() > 1 && i == 0 && below(random, 2);
  }
  std::rotate(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(below(random, devices.size())),
              devices.end());
  return devices;
}

} // namespace

TEST_CASE("random plans keep their invariants and execute in any order", "[plan][A2][A4][A12][B4][C5][D1][D4][D5]") {
  size_t several_segments = 0, several_chunks = 0, in_place = 0, late_known = 0, wide_waves = 0, shared_layouts = 0,
         moved_boundaries = 0, joined = 0; // the test must cover these
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    generator random(seed);
    INFO("seed " << seed);
    const auto g = random_graph(random);
    std::vector<device_info> devices = random_devices(random);
    constexpr placement_policy choices[] = {placement_policy::single, placement_policy::weighted,
                                            placement_policy::heft, placement_policy::pipeline};
    const auto policy = below(random, 2) ? placement_policy::round_robin : choices[below(random, 4)];
    const auto p = make_plan(g, devices, {policy});
    verify(*p);
    layout_buckets layouts(4);
    for (auto mode : {completion_mode::device, completion_mode::host, completion_mode::device})
      simulated_execution(p, layouts, mode, random).run();
    for (int64_t n : {5, 6, 7, 0}) {
      bindings values{{"n", n}};
      for (const data_symbol& symbol : p->symbols)
        values[symbol.name] = n + 1;
      for (uint32_t s = 0; s < p->segment_count; ++s) {
        const auto bound = layouts.bind(p, s, values);
        check_no_overlap(*p, *bound);
        test::verify_memory(*bound);
        for (device_index d = 0; d < devices.size(); ++d)
          in_place += !p->lifetimes[s * devices.size() + d].candidates.empty();
        late_known += s > 0 && !p->known_values[s].empty();
      }
    }
    shared_layouts += layouts.stats().hits;
    several_segments += p->segment_count > 1;
    moved_boundaries += std::any_of(p->remarks.begin(), p->remarks.end(), [](const std::string& text) {
      return text.find("chunk boundaries") != std::string::npos;
    });
    several_chunks += p->chunks.size() > 4;
    for (const chunk& c : p->chunks)
      wide_waves += widest_wave(*p, c) > 2;
    for (const node& call : p->program->nodes)
      joined += is_joined(*p, call);
  }
  CHECK(joined > 200);
  CHECK(moved_boundaries > 100);
  CHECK(several_segments > 300);
  CHECK(several_chunks > 300);
  CHECK(in_place > 300);
  CHECK(late_known > 30);
  CHECK(wide_waves > 100);
  CHECK(shared_layouts > 3000);
}

namespace {

/// Devices and nodes of every chunk, by name.
std::vector<std::pair<device_index, std::set<std::string>>> chunk_names(const plan& p) {
  std::vector<std::pair<device_index, std::set<std::string>>> chunks;
  for (const chunk& c : p.chunks) {
    chunks.emplace_back(c.device, std::set<std::string>());
    for (node_id n : c.nodes)
      chunks.back().second.insert(p.program->nodes[n].name);
  }
  return chunks;
}

/// Moves a random run of a random chunk's nodes into a new chunk or into another one.
void edit_randomly(generator& random, nlohmann::json& saved) {
  auto& chunks = saved["chunks"];
  const size_t from = below(random, chunks.size());
  if (below(random, 2))
    chunks.push_back({{"device", saved["devices"][below(random, saved["devices"].size())]["name"]},
                      {"nodes", nlohmann::json::array()}});
  auto& nodes = chunks[from]["nodes"];
  auto& target = chunks[below(random, 2) ? chunks.size() - 1 : below(random, chunks.size())]["nodes"];
  for (size_t count = below(random, nodes.size() + 1); count-- > 0;) {
    const nlohmann::json moved = nodes.back();
    nodes.erase(nodes.size() - 1);
    target.push_back(moved);
  }
}

} // namespace

TEST_CASE("random plans survive being saved, and edited ones execute or are refused", "[plan][B1][A12]") {
  size_t followed = 0, refused = 0;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    generator random(seed);
    INFO("seed " << seed);
    const auto g = random_graph(random);
    const std::vector<device_info> devices = random_devices(random);
    const auto policy = below(random, 4) ? placement_policy::round_robin : placement_policy::single;
    const auto original = make_plan(g, devices, {policy});
    auto saved = nlohmann::json::parse(to_json(*original));
    const auto again = make_plan(g, devices, {.saved = parse_saved_plan(saved.dump(), "saved")});
    verify(*again);
    CHECK(chunk_names(*again) == chunk_names(*original));
    if (original->chunks.empty())
      continue;
    edit_randomly(random, saved);
    try {
      const auto edited = make_plan(g, devices, {.saved = parse_saved_plan(saved.dump(), "edited")});
      verify(*edited);
      layout_buckets layouts(4);
      for (auto mode : {completion_mode::device, completion_mode::host})
        simulated_execution(edited, layouts, mode, random).run();
      ++followed;
    } catch (const error& e) {
      INFO(e.what());
      CHECK(e.code() == errc::invalid_plan);
      ++refused;
    }
  }
  CHECK(followed > 300);
  CHECK(refused > 100);
}
