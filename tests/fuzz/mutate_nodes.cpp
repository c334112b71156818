// Mutations of a graph's structure.
#include "fuzz/mutation.hpp"

namespace troupe::test::mutations {
namespace {

/// Adds a node of one output after `inputs`.
onnx::NodeProto& add(mutation& m, onnx::GraphProto& g, const std::string& op, const std::vector<std::string>& inputs) {
  onnx::NodeProto& n = *g.add_node();
  n.set_op_type(op);
  for (const std::string& name : inputs)
    n.add_input(name);
  n.add_output(m.fresh_name());
  return n;
}

/// Lets one reader of the graph's values read `name` instead.
void give_to_a_reader(mutation& m, onnx::GraphProto& g, const std::string& name) {
  onnx::NodeProto* reader = m.node(g);
  if (std::string* input = reader ? m.any_of(reader->mutable_input()) : nullptr; input && m.once_in(2))
    *input = name;
  else if (onnx::ValueInfoProto* output = m.any_of(g.mutable_output()))
    output->set_name(name);
}

} // namespace

void change_op(mutation& m) {
  if (onnx::NodeProto* n = m.node(m.graph()))
    n->set_op_type(m.op());
}

void rewire(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::NodeProto* n = m.node(g);
  if (std::string* input = n ? m.any_of(n->mutable_input()) : nullptr)
    *input = m.once_in(12) ? "" : m.value_name(g);
}

void insert_node(mutation& m) {
  onnx::GraphProto& g = m.graph();
  std::vector<std::string> inputs;
  for (size_t count = 1 + m.below(3); count > 0; --count)
    inputs.push_back(m.value_name(g));
  const std::string made = add(m, g, m.op(), inputs).output(0);
  give_to_a_reader(m, g, made);
}

void remove_node(mutation& m) {
  onnx::GraphProto& g = m.graph();
  if (g.node_size() == 0)
    return;
  const auto at = static_cast<int>(m.below(static_cast<size_t>(g.node_size())));
  const onnx::NodeProto gone = g.node(at);
  g.mutable_node()->DeleteSubrange(at, 1);
  if (gone.output_size() == 0 || gone.input_size() == 0 || m.once_in(6))
    return;
  for (auto& n : *g.mutable_node())
    for (auto& input : *n.mutable_input())
      if (input == gone.output(0))
        input = gone.input(0);
}

void repeat_node(mutation& m) {
  onnx::GraphProto& g = m.graph();
  const onnx::NodeProto* n = m.node(g);
  if (!n || n->output_size() == 0)
    return;
  // In a chain: a value that doubles in each node doubles again and again.
  onnx::NodeProto copy = *n;
  std::string last = copy.output(0);
  const size_t count = m.once_in(8) ? m.below(40) : 1 + m.below(3);
  for (size_t i = 0; i < count; ++i) {
    for (auto& input : *copy.mutable_input())
      if (m.once_in(2))
        input = last;
    for (auto& output : *copy.mutable_output())
      output = m.fresh_name();
    copy.set_name(m.fresh_name());
    last = copy.output(0);
    *g.add_node() = copy;
  }
  give_to_a_reader(m, g, last);
}

void change_arity(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::NodeProto* n = m.node(g);
  if (!n)
    return;
  switch (m.below(4)) {
    case 0: n->add_input(m.value_name(g)); break;
    case 1: n->add_output(m.fresh_name()); break;
    case 2:
      if (n->input_size() > 0)
        n->mutable_input()->RemoveLast();
      break;
    default:
      if (n->output_size() > 0)
        m.once_in(2) ? n->mutable_output()->RemoveLast() : (void)(*n->mutable_output(n->output_size() - 1) = "");
  }
}

void add_output(mutation& m) {
  onnx::GraphProto& g = m.graph();
  if (g.output_size() > 1 && m.once_in(3))
    g.mutable_output()->RemoveLast();
  else
    g.add_output()->set_name(m.value_name(g));
}

/// Moves a node into the branches of an If, or the body of a Loop or Scan.
void wrap_in_body(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::NodeProto* n = m.node(g);
  if (!n || n->output_size() == 0)
    return;
  onnx::GraphProto body;
  body.set_name("body");
  *body.add_node() = *n;
  const std::string first = n->output(0);
  const std::vector<std::string> outputs(n->output().begin(), n->output().end());
  n->Clear();
  const auto give_body = [&](const char* name) {
    auto& a = *n->add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::GRAPH);
    *a.mutable_g() = body;
  };
  if (m.once_in(2)) {
    for (const std::string& name : outputs)
      body.add_output()->set_name(name);
    n->set_op_type("If");
    n->add_input(m.value_name(g));
    give_body("then_branch");
    give_body("else_branch");
  } else {
    for (const char* name : {"i#", "go#", "v#"})
      body.add_input()->set_name(name);
    body.add_output()->set_name("go#");
    for (int i = 0; i < 2; ++i)
      body.add_output()->set_name(first);
    n->set_op_type("Loop");
    n->add_input(m.value_name(g));
    n->add_input(m.once_in(2) ? "" : m.value_name(g));
    n->add_input(m.value_name(g));
    n->add_output(m.fresh_name());
    give_body("body");
  }
  for (const std::string& name : outputs)
    n->add_output(name);
}

void wrap_in_function(mutation& m) {
  onnx::GraphProto& g = m.graph();
  onnx::NodeProto* n = m.node(g);
  if (!n || n->output_size() == 0)
    return;
  if (m.model().functions_size() > 0 && m.once_in(3)) { // or call one that is there
    n->set_op_type(m.any_of(m.model().mutable_functions())->name());
    n->set_domain("own");
    return;
  }
  auto& f = *m.model().add_functions();
  f.set_name(m.fresh_name());
  f.set_domain("own");
  for (const auto& opset : m.model().opset_import())
    *f.add_opset_import() = opset;
  f.mutable_input()->CopyFrom(n->input());
  f.mutable_output()->CopyFrom(n->output());
  for (const auto& a : n->attribute())
    f.add_attribute(a.name());
  *f.add_node() = *n;
  for (auto& a : *f.mutable_node(0)->mutable_attribute())
    if (m.once_in(2))
      a.set_ref_attr_name(a.name());
  n->set_op_type(f.name());
  n->set_domain("own");
  auto& opset = *m.model().add_opset_import();
  opset.set_domain("own");
  opset.set_version(1);
}

void change_opset(mutation& m) {
  if (auto* opset = m.any_of(m.model().mutable_opset_import()))
    opset->set_version(m.once_in(8) ? m.integer() : 1 + static_cast<int64_t>(m.below(24)));
}

} // namespace troupe::test::mutations
