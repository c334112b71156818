// troupe diff: what two models differ in: opsets, inputs, outputs, operators, nodes, weights.
//
// Everything is compared by name, as a text that says all of it but a weight's elements. A node has the name of its
// first output, since a file may leave its own name empty. Bodies of control flow are compared as their model is.
#include "cli/command.hpp"
#include "cli/compare.hpp"

#include "base/printable.hpp"
#include "loader/onnx_loader.hpp"
#include "ops/evaluate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

namespace troupe::cli {
namespace {

struct diff_arguments {
  std::vector<std::filesystem::path> models;
  size_t top = 20;
  bool json = false;
};

enum section : size_t { opsets, inputs, outputs, operators, nodes, weights, sections };
constexpr std::array<const char*, sections> names{"opset", "input", "output", "operator", "node", "weight"};

/// The parts of a model by name: what each one is.
struct model_parts {
  std::array<std::map<std::string, std::string>, sections> texts;
  std::map<std::string, tensor> weights;
};

/// A part that differs; empty where one model does not have it.
struct difference {
  std::string name, first, second;
};

std::string tensor_text(dtype type, const shape& dims) {
  return fmt::format("{} {}", to_string(type), to_string(dims));
}

std::string list_text(const graph& g, const std::vector<value_id>& values) {
  std::vector<std::string> listed;
  listed.reserve(values.size());
  for (const value_id v : values)
    listed.push_back(v == no_value ? "" : g.values[v].name);
  return fmt::format("({})", fmt::join(listed, ", "));
}

/// Returns an attribute's value; of a long one the beginning and a hash.
std::string attribute_text(const attribute& a) {
  constexpr size_t longest = 80;
  std::string text = std::visit(
      []<class T>(const T& value) -> std::string {
        if constexpr (std::is_same_v<T, tensor>)
          return fmt::format("{} {}", tensor_text(value.type(), value.dims()), to_hex(content_hash(value)));
        else if constexpr (std::is_same_v<T, std::shared_ptr<const graph>>)
          return fmt::format("body {} -> {}", list_text(*value, value->inputs), list_text(*value, value->outputs));
        else
          return fmt::format("{}", value);
      },
      a);
  if (text.size() <= longest)
    return text;
  hasher rest;
  rest.add(text);
  return fmt::format("{}… {}", text.substr(0, longest), to_hex(rest.digest()));
}

/// Returns e.g. "Conv(x, w), group = 1, pads = [1, 1, 1, 1]".
std::string node_text(const graph& g, const node& n) {
  std::string text = operator_name(n) + list_text(g, n.inputs);
  for (const auto& [name, value] : n.attrs.all())
    text += fmt::format(", {} = {}", name, attribute_text(value));
  return n.outputs.size() > 1 ? fmt::format("{} -> {}", text, list_text(g, n.outputs)) : text;
}

class part_reader {
public:
  explicit part_reader(const graph& g) {
    for (const auto& [domain, version] : g.opsets)
      parts.texts[opsets].emplace(domain.empty() ? "ai.onnx" : domain, std::to_string(version));
    for (const auto& [kind, values] : {std::pair{inputs, &g.inputs}, {outputs, &g.outputs}})
      for (const value_id v : *values) {
        const value& info = g.values[v];
        const std::string dims = info.dims ? to_string(std::span<const dim>(*info.dims)) : "of any shape";
        parts.texts[kind].emplace(info.name, fmt::format("{} {}", to_string(info.type), dims));
      }
    add(g, "");
    for (const auto& [name, count] : counts_)
      parts.texts[operators].emplace(name, std::to_string(count));
  }

  model_parts parts;

private:
  /// Adds the nodes and weights of the model or of a body, whose names begin with `where`.
  void add(const graph& g, const std::string& where) {
    for (const value& v : g.values)
      if (v.constant)
        add_weight(where + v.name, materialise(*v.constant));
    for (const node& n : g.nodes) {
      const auto named = std::find_if(n.outputs.begin(), n.outputs.end(), [](value_id v) { return v != no_value; });
      const std::string name = where + (named == n.outputs.end() ? n.name : g.values[*named].name);
      if (const tensor* literal = literal_of(n)) {
        add_weight(name, *literal);
        continue;
      }
      ++counts_[operator_name(n)];
      parts.texts[nodes].emplace(name, node_text(g, n));
      for (const auto& [attribute, value] : n.attrs.all())
        if (const auto* body = std::get_if<std::shared_ptr<const graph>>(&value))
          add(**body, fmt::format("{}/{}/", name, attribute));
    }
  }

  void add_weight(const std::string& name, const tensor& elements) {
    parts.texts[weights].emplace(name, tensor_text(elements.type(), elements.dims()));
    parts.weights.emplace(name, elements);
  }

  std::map<std::string, size_t> counts_;
};

/// Returns how the elements of two tensors of a type and dims differ; empty if they do not.
std::string elements_difference(const tensor& first, const tensor& second) {
  if (content_hash(first) == content_hash(second))
    return {};
  const comparison c = compare(second, first, {.relative = 0, .absolute = 0});
  return c.difference.empty()     ? ""
         : c.largest_absolute > 0 ? fmt::format("elements differ by {:.3g} at most", c.largest_absolute)
                                  : "elements differ";
}

std::vector<difference> differences_of(const model_parts& a, const model_parts& b, section s) {
  std::vector<difference> found;
  for (const auto& [name, text] : a.texts[s]) {
    const auto other = b.texts[s].find(name);
    if (other == b.texts[s].end() || other->second != text)
      found.push_back({name, text, other == b.texts[s].end() ? "" : other->second});
    else if (s == weights)
      if (const std::string how = elements_difference(a.weights.at(name), b.weights.at(name)); !how.empty())
        found.push_back({name, text, how});
  }
  for (const auto& [name, text] : b.texts[s])
    if (!a.texts[s].contains(name))
      found.push_back({name, "", text});
  return found;
}

void print(section s, const std::vector<difference>& found, size_t top) {
  const auto side = [](const std::string& text) { return text.empty() ? "none" : printable(text); };
  for (size_t i = 0; i < std::min(top, found.size()); ++i)
    fmt::print("{:8} {}: {} -> {}\n", names[s], printable(found[i].name), side(found[i].first), side(found[i].second));
  if (found.size() > top)
    fmt::print("{:8} and {} more (--top)\n", names[s], found.size() - top);
}

void run_diff(const diff_arguments& args) {
  const auto parts_of = [](const std::filesystem::path& file) {
    return part_reader(load_model(model_file(file))).parts;
  };
  const model_parts a = parts_of(args.models[0]), b = parts_of(args.models[1]);
  nlohmann::ordered_json all;
  size_t count = 0;
  for (size_t s = 0; s < sections; ++s) {
    const std::vector<difference> found = differences_of(a, b, static_cast<section>(s));
    count += found.size();
    all[names[s]] = nlohmann::json::array();
    for (const auto& [name, first, second] : found)
      all[names[s]].push_back({{"name", name}, {"first", first}, {"second", second}});
    if (!args.json)
      print(static_cast<section>(s), found, args.top);
  }
  if (args.json)
    write_json(all);
  else if (count == 0)
    fmt::print("no difference\n");
  if (count > 0)
    throw CLI::RuntimeError(1);
}

} // namespace

void add_diff(CLI::App& app) {
  const auto args = std::make_shared<diff_arguments>();
  CLI::App* command = app.add_subcommand(
      "diff", "Compare two models: opsets, inputs, outputs, operators, nodes, weights; exit with 1 if they differ");
  command->add_option("models", args->models, "Two .onnx files, or folders that hold model.onnx")
      ->type_name("FILE")
      ->expected(2)
      ->required();
  command->add_option("--top", args->top, "Differences of each kind that are printed")->capture_default_str();
  command->add_flag("--json", args->json, "Print JSON, with all differences");
  command->callback([args] { run_diff(*args); });
}

} // namespace troupe::cli
