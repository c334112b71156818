// troupe inspect: what a model is made of, what it needs on these devices, the values of its tensors, and their ways.
#include "cli/command.hpp"
#include "cli/summary.hpp"

#include "base/printable.hpp"
#include "loader/file_facts.hpp"
#include "loader/onnx_loader.hpp"
#include "plan/show/explain.hpp"
#include "plan/show/statistics.hpp"
#include "troupe/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <numeric>

namespace troupe::cli {
namespace {

using json = nlohmann::ordered_json;

struct inspect_arguments : model_options {
  std::vector<std::string> tensors, flows;
  size_t elements = 8;
};

std::string dims_text(const value_info& info) {
  return info.dims ? to_string(std::span<const dim>(*info.dims)) : "of any shape";
}

json infos_json(const std::vector<value_info>& infos) {
  json list = json::array();
  for (const value_info& i : infos)
    list.push_back({{"name", i.name}, {"type", to_string(i.type)}, {"dims", dims_text(i)}});
  return list;
}

/// A string of the JSON, fit for a terminal.
std::string text_of(const json& j) {
  return printable(j.get<std::string>());
}

// -- the model

json statistics_json(const model_statistics& s) {
  json j{{"nodes", s.nodes}, {"parameters", s.parameters}, {"parameter_bytes", json::object()}};
  for (const auto& [type, bytes] : s.bytes)
    j["parameter_bytes"][std::string(to_string(type))] = bytes;
  j["operators"] = s.operators;
  return j;
}

/// What the file says of itself, and what of that is ignored.
json file_json(const std::filesystem::path& file) {
  const model_metadata about = read_metadata(file);
  const file_facts facts = read_facts(file);
  json j{{"ir_version", facts.ir_version},
         {"producer", about.producer_name},
         {"producer_version", about.producer_version},
         {"domain", about.domain},
         {"version", about.version},
         {"description", about.description},
         {"graph_description", about.graph_description},
         {"metadata", json::object()},
         {"ignored", facts.ignored}};
  for (const auto& [key, text] : about.properties)
    j["metadata"][key] = text;
  return j;
}

json work_json(const bound_plan& bound) {
  json list = json::object();
  for (const auto& [name, work] : work_by_operator(bound))
    list[name] = {{"flops", work.flops}, {"bytes", work.bytes}};
  return list;
}

json memory_json(const bound_plan& bound) {
  json list = json::array();
  for (device_index d = 0; d < bound.layout->memory.size(); ++d) {
    const plan& p = *bound.source;
    if (p.devices[d].kind == device_kind::control)
      continue;
    const device_memory& m = bound.layout->memory[d];
    list.push_back({{"device", p.devices[d].name},
                    {"available_bytes", p.devices[d].memory_bytes},
                    {"used_bytes", p.weight_bytes[d] + m.arena_bytes + m.transfer_bytes},
                    {"weight_bytes", p.weight_bytes[d]},
                    {"arena_bytes", m.arena_bytes},
                    {"saved_by_reuse_bytes", m.bytes_without_reuse - m.arena_bytes},
                    {"transfer_bytes", m.transfer_bytes}});
  }
  return list;
}

/// What of the file the rewrite changed, operator by operator.
json rewrite_json(const inspect_arguments& args, const model_statistics& planned) {
  return {{"fused", !args.no_fuse},
          {"precision", args.precision},
          {"policy", args.policy_name()},
          {"nodes", planned.nodes},
          {"operators", planned.operators}};
}

void print_counts(const char* title, const json& operators) {
  fmt::print("{}", title);
  for (const auto& [name, count] : operators.items())
    fmt::print(" {} {}", count.get<size_t>(), printable(name));
  fmt::print("\n");
}

/// Texts of a file may have pages.
std::string shortened(const json& j) {
  constexpr size_t longest = 200;
  const auto text = j.get<std::string>();
  return printable(text.size() > longest ? text.substr(0, longest) + "…" : text);
}

void print_file(const json& j) {
  const json& file = j["file"];
  fmt::print("file    IR version {}, opset", file["ir_version"].get<int64_t>());
  for (const auto& [domain, version] : j["opset"].items())
    fmt::print(" {}{}", domain.empty() ? "" : printable(domain) + " ", version.get<int64_t>());
  if (const std::string producer = shortened(file["producer"]); !producer.empty())
    fmt::print(", made by {} {}", producer, shortened(file["producer_version"]));
  fmt::print("\n");
  for (const char* key : {"domain", "description", "graph_description"})
    if (const std::string text = shortened(file[key]); !text.empty())
      fmt::print("{:<8}{}\n", key == std::string("graph_description") ? "graph" : key, text);
  for (const auto& [key, text] : file["metadata"].items())
    fmt::print("meta    {} = {}\n", printable(key), shortened(text));
  for (const json& line : file["ignored"])
    fmt::print("ignored {}\n", shortened(line));
}

void print_model(const json& j) {
  print_file(j);
  for (const char* side : {"inputs", "outputs"})
    for (const json& i : j[side])
      fmt::print("{:8}{} {} {}\n", side == std::string("inputs") ? "input" : "output", text_of(i["name"]),
                 text_of(i["type"]), text_of(i["dims"]));
  const json& model = j["model"];
  fmt::print("model   {} nodes, {} parameters", model["nodes"].get<size_t>(), model["parameters"].get<int64_t>());
  for (const auto& [type, bytes] : model["parameter_bytes"].items())
    fmt::print(", {} of {}", bytes_text(bytes.get<int64_t>()), type);
  fmt::print("\n");
  print_counts("as loaded:", model["operators"]);
  const json& plan = j["plan"];
  fmt::print("planned {} nodes, precision {}, policy {}{}\n", plan["nodes"].get<size_t>(), text_of(plan["precision"]),
             text_of(plan["policy"]), plan["fused"].get<bool>() ? "" : ", nothing fused");
  print_counts("as run:", plan["operators"]);
  double flops = 0;
  for (const auto& [name, work] : j["work"].items())
    flops += work["flops"].get<double>();
  fmt::print("work    {:.4g} GFLOP a run\n", flops / 1e9);
  for (const auto& [name, work] : j["work"].items())
    if (flops > 0 && work["flops"].get<double>() >= flops / 100)
      fmt::print("        {:5.1f} % {}\n", 100 * work["flops"].get<double>() / flops, printable(name));
  for (const json& m : j["memory"])
    fmt::print("memory  {}: {} of {} (weights {}, arena {}, inputs and outputs {}; reuse saves {})\n",
               text_of(m["device"]), bytes_text(m["used_bytes"].get<int64_t>()),
               bytes_text(m["available_bytes"].get<int64_t>()), bytes_text(m["weight_bytes"].get<int64_t>()),
               bytes_text(m["arena_bytes"].get<int64_t>()), bytes_text(m["transfer_bytes"].get<int64_t>()),
               bytes_text(m["saved_by_reuse_bytes"].get<int64_t>()));
}

// -- tensors

/// Makes the named values the model's outputs; what is an output already stays.
void ask_for(graph& g, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const value& v : g.values)
    known.push_back(v.name);
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      const std::string similar = similar_names(known, name);
      fail(errc::invalid_argument, "the model has no tensor '{}'{}", name,
           similar.empty() ? "" : "; similar are " + similar);
    }
    const auto v = static_cast<value_id>(found - known.begin());
    if (std::find(g.outputs.begin(), g.outputs.end(), v) == g.outputs.end())
      g.outputs.push_back(v);
  }
}

named_tensors values_of(engine& devices, const graph& source, const inspect_arguments& args) {
  graph g = source;
  ask_for(g, args.tensors);
  session_options options = args.session();
  options.outputs = args.tensors;
  const session model = devices.load(std::move(g), options);
  return model.run(complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed)).outputs;
}

void print_tensor(const std::string& name, const json& j) {
  fmt::print("tensor  {} {} {}", printable(name), text_of(j["type"]), j["dims"].dump());
  for (const auto& [key, number] : j.items())
    if (number.is_number())
      fmt::print("  {} {:.6g}", key, number.get<double>());
  fmt::print("  {}\n", j.contains("first") ? j["first"].dump() : "");
}

// -- flows

json node_json(const plan& p, node_id n) {
  return {{"node", p.program->nodes[n].name},
          {"op", operator_name(p.program->nodes[n])},
          {"device", p.devices[p.placement[n]].name},
          {"chunk", p.chunk_of_node[n]}};
}

json flow_json(const bound_plan& bound, const std::string& name) {
  const plan& p = *bound.source;
  const tensor_flow flow = flow_of(p, name);
  const value& info = p.program->values[flow.value];
  const auto value_name = [&](value_id v) { return p.program->values[v].name; };
  json j{{"name", name},
         {"type", to_string(info.type)},
         {"dims", dims_text(p, &bound, flow.value)},
         {"layout", info.layout == layout::plain ? "plain" : "channels last"}};
  j["bytes"] = nullptr;
  if (const auto bytes = bytes_in(p, &bound, flow.value))
    j["bytes"] = *bytes;
  j["made_by"] = flow.maker >= 0 ? node_json(p, flow.maker)
                                 : json(info.constant ? "a weight"
                                        : info.known  ? "known on the host"
                                                      : "a model input");
  if (flow.storage != flow.value)
    j[is_part(p, flow.value) ? "part_of" : "view_of"] = value_name(flow.storage);
  j["same_bytes_as"] = json::array();
  for (value_id v : flow.views)
    j["same_bytes_as"].push_back(value_name(v));
  j["moves"] = json::array();
  const auto end = [&](const std::optional<chunk_id>& c) {
    return c ? p.devices[p.chunks[*c].device].name : std::string("caller");
  };
  for (const transfer& t : flow.moves)
    j["moves"].push_back({{"from", end(t.from)}, {"to", end(t.to)}});
  j["read_by"] = json::array();
  for (node_id n : flow.readers)
    j["read_by"].push_back(node_json(p, n));
  return j;
}

std::string node_text(const json& j) {
  return j.is_string() ? text_of(j)
                       : fmt::format("{} '{}' on {} (chunk {})", text_of(j["op"]), text_of(j["node"]),
                                     text_of(j["device"]), j["chunk"].get<size_t>());
}

void print_flow(const json& j) {
  fmt::print("flow    {} {} {}{}\n", text_of(j["name"]), text_of(j["type"]), text_of(j["dims"]),
             j["bytes"].is_null() ? "" : ", " + bytes_text(j["bytes"].get<int64_t>()));
  fmt::print("  made by {}\n", node_text(j["made_by"]));
  for (const char* kind : {"view", "part"})
    if (const auto of = j.find(fmt::format("{}_of", kind)); of != j.end())
      fmt::print("  a {} of {}\n", kind, text_of(*of));
  for (const json& v : j["same_bytes_as"])
    fmt::print("  shares its bytes with {}\n", text_of(v));
  for (const json& m : j["moves"])
    fmt::print("  moves from {} to {}\n", text_of(m["from"]), text_of(m["to"]));
  for (const json& n : j["read_by"])
    fmt::print("  read by {}\n", node_text(n));
}

// -- all of it

json inspect(const inspect_arguments& args) {
  engine devices(args.engine());
  const graph source = load_model(model_file(args.model));
  json j;
  if (!args.tensors.empty())
    for (const auto& [name, value] : values_of(devices, source, args))
      j["tensors"][name] = summary_json(value, args.elements);
  if (!args.tensors.empty() && args.flows.empty())
    return j;
  const session model = devices.load(source, args.session());
  const named_tensors inputs = complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed);
  const bound_plan_ptr bound = bound_plan_of(model, inputs);
  print_warnings(model, inputs);
  for (const std::string& name : args.flows)
    j["flows"].push_back(flow_json(*bound, name));
  if (!args.flows.empty())
    return j;
  j["name"] = source.name;
  j["opset"] = source.opsets;
  j["file"] = file_json(model_file(args.model));
  j["inputs"] = infos_json(model.inputs());
  j["outputs"] = infos_json(model.outputs());
  j["model"] = statistics_json(statistics_of(source));
  j["plan"] = rewrite_json(args, statistics_of(*bound->source->program));
  j["work"] = work_json(*bound);
  j["memory"] = memory_json(*bound);
  return j;
}

void run_inspect(const inspect_arguments& args) {
  const json j = inspect(args);
  if (args.json) {
    write_json(j);
    return;
  }
  if (j.contains("model"))
    print_model(j);
  if (j.contains("tensors"))
    for (const auto& [name, t] : j["tensors"].items())
      print_tensor(name, t);
  if (j.contains("flows"))
    for (const json& f : j["flows"])
      print_flow(f);
}

} // namespace

void add_inspect(CLI::App& app) {
  auto args = std::make_shared<inspect_arguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Print a model's statistics and memory, values of its tensors, or their ways over the devices");
  add_model_options(*command, *args);
  command->option_defaults()->group("Options");
  command->add_option("--tensor", args->tensors, "Statistics of a tensor's values in a run; any of the model's tensors")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--flow", args->flows, "Where a tensor is made, moved and read")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--elements", args->elements, "How many elements of a tensor are shown (default 8)");
  command->callback([args] { run_inspect(*args); });
}

} // namespace troupe::cli
