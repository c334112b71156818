#include "base/printable.hpp"
#include "plan/show/explain.hpp"
#include "plan/show/print.hpp"

#include <fmt/format.h>

#include <set>

namespace troupe {
namespace {

/// Returns a quoted Graphviz string.
std::string dot_text(std::string_view text) {
  std::string out = "\"";
  for (char c : printable(text)) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + '"';
}

class dot_printer {
public:
  dot_printer(const plan& p, const bound_plan* bound) : p_(p), bound_(bound), g_(*p.program) {}

  std::string run() {
    print("digraph plan {{\n  compound=true; rankdir=TB; node [shape=box, style=rounded];\n");
    for (device_index d = 0; d < p_.devices.size(); ++d)
      print_device(d);
    print_ends();
    for (node_id n = 0; n < static_cast<node_id>(g_.nodes.size()); ++n)
      print_edges(n);
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      print_edge(g_.outputs[i], fmt::format("out{}", i), nullptr);
    print("}}\n");
    return std::move(out_);
  }

private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void print_device(device_index d) {
    print("  subgraph cluster_device{} {{\n    label={};\n", d, dot_text(p_.devices[d].name));
    for (chunk_id id = 0; id < p_.chunks.size(); ++id) {
      if (p_.chunks[id].device != d)
        continue;
      print("    subgraph cluster_chunk{} {{\n      label=\"chunk {}\";\n", id, id);
      for (node_id n : p_.chunks[id].nodes)
        print("      n{} [label={}];\n", n, dot_text(describe(g_.nodes[n])));
      print("    }}\n");
    }
    print("  }}\n");
  }

  /// The graph's inputs and outputs.
  void print_ends() {
    for (value_id v : g_.inputs)
      print("  in{} [label={}, shape=ellipse];\n", v, dot_text(g_.values[v].name));
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      print("  out{} [label={}, shape=ellipse];\n", i, dot_text(g_.values[g_.outputs[i]].name));
  }

  void print_edges(node_id n) {
    const std::set<value_id> inputs(g_.nodes[n].inputs.begin(), g_.nodes[n].inputs.end());
    for (value_id v : inputs)
      if (v != no_value)
        print_edge(v, fmt::format("n{}", n), &p_.chunks[p_.chunk_of_node[n]]);
  }

  /// An edge to a node of `reader`, or to an output where that is null. Constants have none.
  void print_edge(value_id v, const std::string& to, const chunk* reader) {
    const node_id maker = p_.producer[v];
    const value& info = g_.values[v];
    if (maker < 0 && (info.constant || info.known))
      return;
    const std::string from = maker < 0 ? fmt::format("in{}", v) : fmt::format("n{}", maker);
    const chunk* source = maker < 0 ? nullptr : &p_.chunks[p_.chunk_of_node[maker]];
    const bool stays = source && reader && source->device == reader->device && source->segment == reader->segment;
    if (stays) {
      print("  {} -> {};\n", from, to);
      return;
    }
    const auto bytes = bytes_in(p_, bound_, v);
    print("  {} -> {} [style=dashed, label={}];\n", from, to,
          dot_text(bytes ? bytes_text(*bytes) : dims_text(p_, bound_, v)));
  }

  const plan& p_;
  const bound_plan* bound_;
  const graph& g_;
  std::string out_;
};

} // namespace

std::string to_dot(const plan& p, const bound_plan* bound) {
  return dot_printer(p, bound).run();
}

} // namespace troupe
