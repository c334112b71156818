#include "ops/call_parts.hpp"

#include "ops/registry.hpp"

namespace troupe {

attributes attributes_of_part(const attributes& attrs, std::string_view part) {
  attributes own;
  const std::string end = fmt::format(".{}", part);
  for (const auto& [name, value] : attrs.all())
    if (name.ends_with(end))
      own.set(name.substr(0, name.size() - end.size()), value);
  return own;
}

void add_part(attributes& whole, const attributes& own, std::string_view part) {
  for (const auto& [name, value] : own.all())
    whole.set(fmt::format("{}.{}", name, part), value);
}

void add_call(call_parts& calls, std::string_view domain, std::string_view op, attributes attrs,
              std::vector<part_operand> inputs, part_operand output, uint32_t step) {
  while (inputs.back().from == part_operand::source::absent)
    inputs.pop_back();
  const op_def* def = find_op(domain, op, newest_opset(domain));
  expects(def != nullptr, "a part of a call is an unknown operator");
  calls.parts.push_back({def, std::move(attrs), std::move(inputs), std::move(output), step});
}

operand operand_of(const part_operand& o, const call_parts& calls, std::span<const operand> inputs,
                   std::span<const operand> outputs) {
  const auto find = [&]() -> operand {
    switch (o.from) {
      case part_operand::source::absent: return {};
      case part_operand::source::input: return inputs[o.index];
      case part_operand::source::output: return outputs[o.index];
      case part_operand::source::between: break;
    }
    return calls.between[o.index];
  };
  operand found = find();
  if (o.dims)
    found.dims = *o.dims;
  return found;
}

namespace {

/// Views of the operands of a call's parts.
class part_views {
public:
  explicit part_views(kernel_context& c, const std::vector<operand>& between) : context_(c) {
    for (const operand& o : between)
      between_.emplace_back(o.type, o.dims);
  }

  const_view read(const part_operand& o) const {
    const_view found = find(o);
    if (o.dims)
      found.dims = *o.dims;
    return found;
  }
  mutable_view write(const part_operand& o) {
    mutable_view found =
        o.from == part_operand::source::between ? between_[o.index].mutable_ref() : context_.output(o.index);
    if (o.dims)
      found.dims = *o.dims;
    return found;
  }

private:
  const_view find(const part_operand& o) const {
    switch (o.from) {
      case part_operand::source::absent: return {};
      case part_operand::source::input: return context_.input(o.index);
      case part_operand::source::output: break;
      case part_operand::source::between: return between_[o.index].view();
    }
    const mutable_view& out = context_.output(o.index);
    return {out.type, out.dims, out.data};
  }
  kernel_context& context_;
  std::vector<tensor> between_;
};

} // namespace

namespace {

void infer_part(const call_part& part, const call_parts& calls, std::span<const operand> inputs,
                std::span<const operand> outputs) {
  graph g;
  node call{.name = "part",
            .op_type = std::string(part.def->name),
            .domain = std::string(part.def->domain),
            .attrs = part.attrs};
  call.def = part.def;
  for (const part_operand& o : part.inputs) {
    const operand in = operand_of(o, calls, inputs, outputs);
    call.inputs.push_back(
        in.present()
            ? g.add_value({.name = "operand", .type = in.type, .dims = to_symbolic(in.dims), .constant = in.constant})
            : no_value);
  }
  call.outputs = {g.add_value({.name = "result"})};
  infer_node(g, call);
  const value& result = g.values[call.outputs[0]];
  const operand wanted = operand_of(part.output, calls, inputs, outputs);
  if (result.type != wanted.type || !result.dims || *result.dims != to_symbolic(wanted.dims))
    fail(errc::invalid_model, "{} gives {} {}, not {} {}", part.def->name, to_string(result.type),
         result.dims ? to_string(*result.dims) : "?", to_string(wanted.type), to_string(wanted.dims));
}

} // namespace

void infer_parts(const infer_context& c, dtype type, parts_function parts_of) {
  std::vector<operand> inputs(c.input_count()), outputs(c.output_count());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (c.has_input(i)) {
      if (!is_constant(c.dims(i)))
        return;
      inputs[i] = {.type = c.type(i), .dims = constants(c.dims(i)), .constant = c.input(i).constant};
    }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (c.has_output(i))
      outputs[i] = {.type = type, .dims = constants(c.output_dims(i))};
  const call_parts calls = parts_of(c.attrs(), inputs, outputs);
  for (const call_part& part : calls.parts)
    infer_part(part, calls, inputs, outputs);
}

void run_parts(kernel_context& c, parts_function parts_of) {
  std::vector<operand> inputs, outputs;
  for (size_t i = 0; i < c.input_count(); ++i)
    inputs.push_back({.type = c.input(i).type, .dims = shape(c.input(i).dims.begin(), c.input(i).dims.end())});
  for (size_t i = 0; i < c.output_count(); ++i)
    outputs.push_back({.type = c.output(i).type, .dims = shape(c.output(i).dims.begin(), c.output(i).dims.end())});
  const call_parts calls = parts_of(c.attrs(), inputs, outputs);
  part_views views(c, calls.between);
  for (const call_part& part : calls.parts) {
    std::vector<const_view> in;
    for (const part_operand& o : part.inputs)
      in.push_back(views.read(o));
    mutable_view out = views.write(part.output);
    kernel_context own(part.attrs, in, {&out, 1});
    part.def->reference(own);
  }
}

} // namespace troupe
