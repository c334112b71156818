#include "base/printable.hpp"
#include "graph/bodies.hpp"
#include "ops/op.hpp"
#include "plan/estimate/gpu_support.hpp"
#include "plan/show/explain.hpp"
#include "plan/show/print.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

/// How many elements of an attribute's list are shown.
constexpr size_t max_shown = 8;

template <class List>
std::string list_text(const List& list) {
  return fmt::format("[{}{}]", fmt::join(list.begin(), list.begin() + std::min(list.size(), max_shown), ", "),
                     list.size() > max_shown ? fmt::format(", … {} in all", list.size()) : "");
}

std::string attribute_text(const attribute& value) {
  const auto print = [](const auto& v) -> std::string {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, tensor>)
      return fmt::format("{} {}", to_string(v.type()), to_string(std::span<const int64_t>(v.dims())));
    else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>)
      return fmt::format("a graph of {} nodes", v->nodes.size());
    else if constexpr (std::is_arithmetic_v<T>)
      return fmt::format("{}", v);
    else if constexpr (std::is_same_v<T, std::string>)
      return fmt::format("\"{}\"", printable(v));
    else
      return list_text(v);
  };
  return std::visit(print, value);
}

node_id find_node(const plan& p, std::string_view name) {
  std::vector<std::string> names;
  for (const node& n : p.program->nodes) {
    if (n.name == name)
      return static_cast<node_id>(names.size());
    names.push_back(n.name);
  }
  const std::string similar = similar_names(names, name);
  fail(errc::invalid_argument, "the plan has no node '{}'{}; nodes that were fused carry the last one's name", name,
       similar.empty() ? "" : "; similar are " + similar);
}

class node_printer {
public:
  node_printer(const plan& p, const bound_plan* bound, node_id n)
      : p_(p), bound_(bound), n_(n), call_(p.program->nodes[n]) {}

  std::string run() {
    print("{}, since opset {}\n", describe(call_), call_.def ? call_.def->since : 0);
    for (const auto& [name, value] : call_.attrs.all())
      print("  attribute {} = {}\n", printable(name), attribute_text(value));
    for (size_t i = 0; i < call_.inputs.size(); ++i)
      print_operand("input ", i, call_.inputs[i]);
    for (size_t i = 0; i < call_.outputs.size(); ++i)
      print_operand("output", i, call_.outputs[i]);
    print_place();
    print_other_devices();
    return std::move(out_);
  }

private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string origin(value_id v) const {
    const value& info = p_.program->values[v];
    if (const node_id maker = p_.producer[v]; maker >= 0)
      return fmt::format("made by {} on {}", describe(p_.program->nodes[maker]), p_.devices[p_.placement[maker]].name);
    return info.constant ? "a weight" : info.known ? "known on the host" : "a model input";
  }

  void print_operand(const char* title, size_t i, value_id v) {
    if (v == no_value)
      return;
    const value& info = p_.program->values[v];
    const auto bytes = bytes_in(p_, bound_, v);
    print("  {} {}: {} {}{}{}{}", title, i, printable(info.name), to_string(info.type), dims_text(p_, bound_, v),
          info.layout == layout::channels_last ? ", channels last" : "", bytes ? ", " + bytes_text(*bytes) : "");
    if (p_.producer[v] != n_)
      print(", {}", origin(v));
    if (p_.storage[v] != v)
      print(", a {} of {}", is_part(p_, v) ? "part" : "view", printable(p_.program->values[p_.storage[v]].name));
    out_ += '\n';
  }

  void print_place() {
    const chunk_id id = p_.chunk_of_node[n_];
    const chunk& c = p_.chunks[id];
    print("  on {}: {}\n", p_.devices[p_.placement[n_]].name, placement_reasons(p_)[n_].text);
    const auto at = static_cast<size_t>(std::find(c.nodes.begin(), c.nodes.end(), n_) - c.nodes.begin());
    print("  in chunk {}, segment {}, ", id, c.segment);
    if (c.wave_begin.empty())
      print("node {} of {}\n", at + 1, c.nodes.size());
    else
      print("wave {} of {}\n", std::upper_bound(c.wave_begin.begin(), c.wave_begin.end(), at) - c.wave_begin.begin(),
            c.wave_count());
  }

  void print_other_devices() {
    gpu_support support(*p_.program);
    for (device_index d = 0; d < p_.devices.size(); ++d) {
      if (d == p_.placement[n_] || has_body(call_) || p_.devices[d].kind == device_kind::control)
        continue;
      const auto& gpu = p_.devices[d].gpu;
      const gpu_obstacle obstacle = gpu ? support.obstacle(n_, *gpu) : gpu_obstacle::none;
      print("  {} {}\n", p_.devices[d].name,
            obstacle == gpu_obstacle::none ? "could run it too" : "cannot run it: " + describe(obstacle, call_));
    }
  }

  const plan& p_;
  const bound_plan* bound_;
  const node_id n_;
  const node& call_;
  std::string out_;
};

} // namespace

std::string describe_node(const plan& p, std::string_view name, const bound_plan* bound) {
  return node_printer(p, bound, find_node(p, name)).run();
}

} // namespace troupe
