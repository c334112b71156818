#include "ops/registry.hpp"

#include "ops/attribute_kinds.hpp"
#include "ops/families.hpp"
#include "ops/node_origin.hpp"
#include "ops/type_rules.hpp"

#include <map>

namespace troupe {
namespace {

using op_key = std::pair<std::string_view, std::string_view>;

using op_index = std::map<op_key, std::vector<const op_def*>>;

/// Rows by domain and name, newest first. Never destroyed: engines in static objects run to the end of the process.
const op_index& index() {
  static const op_index& built = *new op_index([] {
    op_index by_name;
    for (const op_def* def : all_ops())
      by_name[{def->domain, def->name}].push_back(def);
    for (auto& [key, defs] : by_name)
      std::sort(defs.begin(), defs.end(), [](auto* a, auto* b) { return a->since > b->since; });
    return by_name;
  }());
  return built;
}

} // namespace

std::vector<const op_def*> all_ops() {
  std::vector<const op_def*> all;
  for (const op_table* table : op_tables)
    for (const op_def& def : *table)
      all.push_back(&def);
  return all;
}

const op_def* find_op(std::string_view domain, std::string_view name, int64_t opset) {
  const auto it = index().find({domain, name});
  if (it == index().end())
    return nullptr;
  for (const op_def* def : it->second)
    if (def->since <= opset)
      return opset <= def->until ? def : nullptr;
  return nullptr;
}

const op_def& row_of(inserted_op op) {
  // In the order of `inserted_op`.
  static constexpr std::array<std::string_view, 6> names{"Cast", "Concat", "Identity", "Reorder", "Reshape", "Slice"};
  const bool own = op == inserted_op::reorder;
  return *find_op(own ? "troupe" : "", names.at(static_cast<size_t>(op)), own ? 1 : 13);
}

node make_call(inserted_op op, std::string name, std::vector<value_id> inputs, value_id output, attributes attrs) {
  const op_def& def = row_of(op);
  node call{std::move(name),  std::string(def.name), std::string(def.domain),
            std::move(attrs), std::move(inputs),     {output}};
  call.def = &def;
  return call;
}

int64_t newest_opset(std::string_view domain) {
  if (domain.empty())
    return 28;
  if (domain == machine_learning)
    return 5;
  return domain == microsoft || domain == preview || domain == "troupe" ? 1 : 0;
}

namespace {

/// A domain that is used but not imported has its newest version, as in ONNX Runtime.
int64_t opset_of(const std::map<std::string, int64_t>& opsets, const node& n) {
  const auto it = opsets.find(n.domain);
  if (n.domain == "troupe") // our own fused operators need no import
    return 1;
  return it == opsets.end() ? newest_opset(n.domain) : it->second;
}

/// Operators whose operand or result is a map.
bool works_on_maps(std::string_view name) {
  return name == "CastMap" || name == "DictVectorizer";
}

/// Throws if an operand or result is left out that the operator's kernels rely on.
void check_presence(const node& n) {
  const op_def& def = *n.def;
  if (!def.reference && !def.expand) // control flow may leave its first operands out too
    return;
  for (size_t i = 0; i < n.formal_inputs(); ++i)
    if (n.inputs[i] == no_value && (i < def.inputs.min || def.inputs.max == 255))
      fail(errc::invalid_model, "{}: input {} is missing", describe(n), i);
  if (!n.outputs.empty() && n.outputs[0] == no_value && !def.first_output_optional)
    fail(errc::invalid_model, "{}: output 0 is left out; give it a name, even if nothing reads it", describe(n));
}

void check_arity(const node& n) {
  const op_def& def = *n.def;
  size_t present = n.formal_inputs();
  while (present > 0 && n.inputs[present - 1] == no_value)
    --present;
  if (n.formal_inputs() < def.inputs.min || (def.inputs.max != 255 && present > def.inputs.max))
    fail(errc::invalid_model, "{}: {} inputs, but the operator takes {} to {}", describe(n), present, def.inputs.min,
         def.inputs.max);
  if (def.max_outputs != 255 && n.outputs.size() > def.max_outputs)
    fail(errc::invalid_model, "{}: {} outputs, but the operator has at most {}", describe(n), n.outputs.size(),
         def.max_outputs);
  check_presence(n);
}

} // namespace

void resolve_node(node& n, const std::map<std::string, int64_t>& opsets) {
  if (!n.def) {
    if (newest_opset(n.domain) == 0)
      fail(errc::unsupported, "{}: the operator domain '{}' is not supported", describe(n), n.domain);
    const int64_t opset = opset_of(opsets, n);
    if (opset < 1 || opset > newest_opset(n.domain))
      fail(errc::unsupported, "opset {} of domain '{}' is not supported; troupe knows 1 to {}", opset, n.domain,
           newest_opset(n.domain));
    n.def = find_op(n.domain, n.op_type, opset);
    if (!n.def && n.domain == machine_learning && works_on_maps(n.op_type))
      fail(errc::unsupported, "{}: maps are not supported; export the model without them", describe(n));
    if (!n.def)
      fail(errc::unsupported, "{}: operator {} of opset {} is not supported", describe(n), n.op_type, opset);
  }
  check_arity(n);
  check_attribute_kinds(n);
}

void resolve(graph& g) {
  for (node& n : g.nodes)
    resolve_node(n, g.opsets);
}

void work_on(const graph& g, const node& n, const std::function<void()>& work) {
  expects(n.def != nullptr, "an unresolved node");
  const bool has_first = !n.inputs.empty() && n.inputs[0] != no_value;
  if (has_first && !(n.def->types & set_of(g.values[n.inputs[0]].type)))
    fail(errc::unsupported, "{}: element type {} is not supported", describe(n), to_string(g.values[n.inputs[0]].type));
  for (size_t i = 1; i < n.inputs.size() && n.def->reference; ++i) // control flow hands on what it is given
    if (n.inputs[i] != no_value && is_container(g.values[n.inputs[i]].type))
      fail(errc::invalid_model, "{}: input {} is {}, but must be a tensor", describe(n), i,
           to_string(g.values[n.inputs[i]].type));
  try {
    work();
  } catch (const error& e) {
    fail(e.code(), "{}: {}", describe_origin(n), e.what());
  }
  check_operand_types(g, n); // last: what an operator itself says against its operands says more
}

void infer_node(graph& g, node& n) {
  work_on(g, n, [&] {
    infer_context context(g, n);
    n.def->infer(context);
  });
}

} // namespace troupe
