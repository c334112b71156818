#include "loader/annotations.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/write_file.hpp"
#include "loader/mapped_file.hpp"
#include "loader/wire_reader.hpp"
#include "loader/wire_writer.hpp"

#include <algorithm>
#include <ostream>

namespace troupe {
namespace {

// Fields of ModelProto, GraphProto and NodeProto.
constexpr uint64_t model_ir_version = 1, model_graph = 7, model_configuration = 26;
constexpr uint64_t graph_node = 1, node_input = 1, node_output = 2, node_name = 3, node_configurations = 10;
constexpr int64_t annotated_ir_version = 11;

// -- reading

int64_t signed_number(const wire_reader& at) {
  return static_cast<int64_t>(at.number);
}

/// What NodeProto says of itself.
struct node_names {
  std::string name; // as the loader names it
  std::vector<std::string> inputs, outputs;
};

node_names names_of(std::string_view node) {
  node_names names;
  for (wire_reader at(node); at.next();)
    switch (at.field) {
      case node_input: names.inputs.emplace_back(at.text); break;
      case node_output: names.outputs.emplace_back(at.text); break;
      case node_name: names.name = at.text; break;
      default: break;
    }
  if (names.name.empty() && !names.outputs.empty())
    names.name = names.outputs[0];
  std::erase(names.outputs, "");
  return names;
}

/// ShardedDimProto.
struct sharded_dim {
  int64_t axis = 0, parts = 1, shardings = 0;
};

sharded_dim read_dim(std::string_view dim) {
  sharded_dim read;
  for (wire_reader at(dim); at.next();) {
    if (at.field == 1)
      read.axis = signed_number(at);
    if (at.field != 2)
      continue;
    ++read.shardings;
    for (wire_reader of(at.text); of.next();)
      if (of.field == 3)
        read.parts = signed_number(of);
  }
  return read;
}

/// ShardingSpecProto.
struct sharding_spec {
  std::string tensor;
  std::vector<int64_t> devices;
  bool has_groups = false;
  std::vector<sharded_dim> dims; // in more than one part
};

sharding_spec read_spec(std::string_view spec) {
  sharding_spec read;
  for (wire_reader at(spec); at.next();)
    switch (at.field) {
      case 1: read.tensor = at.text; break;
      case 2: // packed or not
        if (at.text.empty())
          read.devices.push_back(signed_number(at));
        for (wire_reader of(at.text); of.next_number();)
          read.devices.push_back(signed_number(of));
        break;
      case 3: read.has_groups = true; break;
      case 4:
        if (const sharded_dim dim = read_dim(at.text); dim.parts != 1 || dim.shardings > 1)
          read.dims.push_back(dim);
        break;
      default: break;
    }
  return read;
}

/// Returns why a sharding cannot be followed; "" if it can.
std::string refusal(const sharding_spec& s, const device_configuration& of) {
  const auto exists = [&](int64_t d) { return d >= 0 && d < of.count; };
  if (s.has_groups)
    return "device groups";
  if (s.devices.empty() || !std::ranges::all_of(s.devices, exists))
    return "devices that the configuration does not have";
  if (s.dims.empty())
    return "";
  if (s.dims.size() > 1 || s.dims[0].shardings != 1)
    return "parts along several dims";
  std::vector<int64_t> sorted = s.devices;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end() || s.dims[0].parts != static_cast<int64_t>(sorted.size()))
    return "parts that are not one for each device";
  return of.team.empty() || of.team == s.devices ? "" : "parts on other devices than those of the nodes before";
}

void add_spec(node_annotation& to, const sharding_spec& s, const node_names& names, device_configuration& of) {
  const bool is_result = std::ranges::find(names.outputs, s.tensor) != names.outputs.end();
  if (!is_result && std::ranges::find(names.inputs, s.tensor) == names.inputs.end()) {
    to.refused = "tensors that are not the node's";
  } else if (const std::string why = refusal(s, of); !why.empty()) {
    to.refused = why;
  } else if (!s.dims.empty()) {
    to.shardings.push_back({s.tensor, s.dims[0].axis});
    of.team = s.devices;
  } else if (s.devices.size() == 1 && (is_result || !to.device)) {
    to.device = s.devices[0]; // a node runs where its results are
  }
}

/// NodeDeviceConfigurationProto.
void read_node(std::string_view annotation, const node_names& names, std::vector<device_configuration>& all) {
  std::string id;
  for (wire_reader at(annotation); at.next();)
    if (at.field == 1)
      id = at.text;
  const auto of = std::ranges::find(all, id, &device_configuration::name);
  if (of == all.end())
    return;
  node_annotation read;
  for (wire_reader at(annotation); at.next();)
    if (at.field == 2)
      add_spec(read, read_spec(at.text), names, *of);
    else if (at.field == 3)
      read.stage = signed_number(at);
  if (!read.shardings.empty())
    read.device.reset();
  if (read.stage && (*read.stage < 0 || *read.stage >= of->count))
    read.refused = "a pipeline stage that the configuration has no device for";
  of->add(std::move(read), names.name, names.outputs);
}

/// GraphProto.
void read_nodes(std::string_view graph, std::vector<device_configuration>& all, hasher& h) {
  for (wire_reader at(graph); at.next();) {
    if (at.field != graph_node)
      continue;
    for (wire_reader of(at.text); of.next();)
      if (of.field == node_configurations) {
        const node_names names = names_of(at.text);
        read_node(of.text, names, all);
        h.add(names.name);
        h.add(of.text);
      }
  }
}

/// DeviceConfigurationProto.
device_configuration read_configuration(std::string_view configuration) {
  device_configuration read;
  for (wire_reader at(configuration); at.next();)
    switch (at.field) {
      case 1: read.name = at.text; break;
      case 2: read.count = signed_number(at); break;
      case 3: read.devices.emplace_back(at.text); break;
      default: break;
    }
  if (read.count <= 0)
    read.count = static_cast<int64_t>(read.devices.size());
  if (read.devices.size() != static_cast<size_t>(read.count))
    read.devices.clear();
  return read;
}

// -- writing

std::string spec_field(const std::string& tensor, const std::vector<int64_t>& devices, const std::string& dim = "") {
  std::string spec = text_field(1, tensor);
  for (const int64_t d : devices)
    spec += number_field(2, d);
  return text_field(2, spec + dim);
}

/// Returns NodeProto's field with an annotation; shardings of tensors that are not the node's are left out.
std::string annotation_field(const node_annotation& a, const node_names& names, const device_configuration& of) {
  const auto parts = static_cast<int64_t>(of.team.size());
  std::string made = text_field(1, of.name);
  for (const tensor_sharding& s : a.shardings)
    if (std::ranges::find(names.inputs, s.tensor) != names.inputs.end() ||
        std::ranges::find(names.outputs, s.tensor) != names.outputs.end())
      made +=
          spec_field(s.tensor, of.team, text_field(4, number_field(1, s.axis) + text_field(2, number_field(3, parts))));
  if (a.shardings.empty())
    for (const std::string& result : names.outputs)
      made += spec_field(result, a.device ? std::vector{*a.device} : of.team);
  if (a.stage)
    made += number_field(3, *a.stage);
  return text_field(node_configurations, made);
}

std::string configuration_field(const device_configuration& c) {
  std::string made = text_field(1, c.name) + number_field(2, c.count);
  for (const std::string& device : c.devices)
    made += text_field(3, device);
  return text_field(model_configuration, made);
}

/// Whether two nodes are in the same place, so that what both read is made there. Null: nothing is stated.
bool agree(const node_annotation* a, const node_annotation* b) {
  return a && b && a->device == b->device && a->stage == b->stage && a->shardings.empty() == b->shardings.empty();
}

/// Finds the annotation of each node of a serialized GraphProto, in their order; null: none.
std::vector<const node_annotation*> annotations_of(const std::vector<node_names>& nodes,
                                                   const device_configuration& of) {
  std::vector<const node_annotation*> found;
  found.reserve(nodes.size());
  for (const node_names& n : nodes)
    found.push_back(of.find(n.name, n.outputs));
  std::unordered_map<std::string, const node_annotation*> of_reader; // by tensor; null: they differ
  for (size_t i = nodes.size(); i-- > 0;) {
    for (const std::string& result : nodes[i].outputs)
      if (const auto reader = of_reader.find(result); !found[i] && reader != of_reader.end())
        found[i] = reader->second;
    for (const std::string& operand : nodes[i].inputs)
      if (const auto [at, is_new] = of_reader.emplace(operand, found[i]); !is_new && !agree(at->second, found[i]))
        at->second = nullptr;
  }
  return found;
}

/// A GraphProto on its way to a file: the fields of another one, its nodes annotated.
class annotated_graph {
public:
  annotated_graph(std::string_view graph, const device_configuration& of) : graph_(graph) {
    std::vector<node_names> names;
    for (wire_reader at(graph); at.next();)
      if (at.field == graph_node)
        names.push_back(names_of(at.text));
      else
        bytes_ += at.whole.size();
    const std::vector<const node_annotation*> found = annotations_of(names, of);
    for (wire_reader at(graph); at.next();)
      if (at.field == graph_node) {
        const size_t i = nodes_.size();
        nodes_.push_back(text_field(graph_node, annotated_node(at.text, found[i], names[i], of)));
        bytes_ += nodes_[i].size();
      }
  }

  void write(std::ostream& out) const {
    out << head_of(model_graph, bytes_);
    auto node = nodes_.begin();
    for (wire_reader at(graph_); at.next();)
      if (at.field == graph_node)
        out << *node++;
      else
        out << at.whole;
  }

private:
  static std::string annotated_node(std::string_view node, const node_annotation* a, const node_names& names,
                                    const device_configuration& of) {
    std::string made;
    for (wire_reader at(node); at.next();)
      if (at.field != node_configurations)
        made += at.whole;
    return a ? made + annotation_field(*a, names, of) : made;
  }

  std::string_view graph_;
  std::vector<std::string> nodes_; // as fields of the graph
  size_t bytes_ = 0;
};

/// Whether an initializer of a serialized GraphProto is in another file.
bool has_external_data(std::string_view graph) {
  constexpr uint64_t graph_initializer = 5, tensor_location = 14;
  for (wire_reader at(graph); at.next();)
    if (at.field == graph_initializer)
      for (wire_reader of(at.text); of.next();)
        if (of.field == tensor_location && of.number == 1)
          return true;
  return false;
}

void write_model(std::string_view model, const device_configuration& configuration, std::ostream& out) {
  int64_t version = 0;
  for (wire_reader at(model); at.next();)
    if (at.field == model_ir_version)
      version = signed_number(at);
    else if (at.field == model_graph)
      annotated_graph(at.text, configuration).write(out);
    else if (at.field != model_configuration)
      out << at.whole;
  out << number_field(model_ir_version, std::max(version, annotated_ir_version));
  out << configuration_field(configuration);
}

} // namespace

std::shared_ptr<const model_annotations> read_annotations(std::string_view model) {
  auto read = std::make_shared<model_annotations>();
  hasher h;
  for (wire_reader at(model); at.next();)
    if (at.field == model_configuration) {
      read->configurations.push_back(read_configuration(at.text));
      h.add(at.text);
    }
  if (read->configurations.empty())
    return nullptr;
  for (wire_reader at(model); at.next();)
    if (at.field == model_graph)
      read_nodes(at.text, read->configurations, h);
  std::erase_if(read->configurations, [](const device_configuration& c) { return c.nodes.empty(); });
  read->key = h.digest();
  return read->configurations.empty() ? nullptr : read;
}

void write_annotated(const std::filesystem::path& file, const device_configuration& configuration,
                     const std::filesystem::path& out) {
  namespace fs = std::filesystem;
  const auto mapped = mapped_file::open(file);
  std::error_code missing; // then they are not the same
  if (fs::equivalent(file, out, missing))
    fail(errc::invalid_argument, "{}: an annotated model is written to a file of its own", out.string());
  const std::string_view model{reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()};
  const auto folder = [](const fs::path& p) { return p.has_parent_path() ? p.parent_path() : fs::path("."); };
  for (wire_reader at(model); at.next();)
    if (at.field == model_graph && has_external_data(at.text) && !fs::equivalent(folder(file), folder(out), missing))
      fail(errc::invalid_argument, "{}: the model has weights in files beside it, so it must be written to '{}'",
           out.string(), folder(file).string());
  write_file(out, [&](std::ostream& to) { write_model(model, configuration, to); });
}

} // namespace troupe
