// Optionals: a tensor or a sequence, or nothing. Like a sequence (sequence.cpp), of one element or none: whether it
// holds one is its dim.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/strided_copy.hpp"

namespace troupe {
namespace {

void infer_optional(infer_context& c) {
  if (!c.has_input(0)) {
    // As `dtype` numbers types: the loader has read the TypeProto.
    const int64_t type_number = c.attrs().integer("type");
    if (type_number < 0 || type_number >= optional_bit)
      fail(errc::invalid_model, "attribute 'type' is neither a tensor's type nor a sequence's");
    dtype_from_onnx(static_cast<int>(type_number & ~sequence_bit)); // throws for what is none
    const auto type = static_cast<dtype>(type_number);
    return c.set_output(0, optional_of(type), {0}, {.dims = std::nullopt, .empty = true});
  }
  const value& held = c.input(0);
  c.set_output(0, optional_of(held.type), {1}, is_container(held.type) ? held.elements : shapes_of_elements(c.dims(0)));
}

void optional_kernel(kernel_context& c) {
  if (!c.has_input(0))
    return;
  const const_view& held = c.input(0);
  tensor copy(held.type, {held.dims.begin(), held.dims.end()});
  copy_all(held, copy.mutable_ref());
  *c.output(0).as<tensor>() = std::move(copy);
}

/// From opset 18 on a tensor or a sequence is an optional that holds it, and an absent input an empty one.
void infer_has_element(infer_context& c) {
  c.set_output(0, dtype::boolean, {});
  if (!c.has_input(0))
    c.set_known(0, {0});
  else if (!is_optional(c.type(0)))
    c.set_known(0, {1});
  else if (c.dims(0)[0].is_constant())
    c.set_known(0, {c.dims(0)[0]});
}

void has_element_kernel(kernel_context& c) {
  *c.output(0).as<bool>() = c.has_input(0) && (!is_optional(c.input(0).type) || c.input(0).size() > 0);
}

void infer_get_element(infer_context& c) {
  const value& from = c.input(0);
  if (is_optional(from.type))
    return c.set_element(0, element_of(from.type), from.elements);
  c.set_output(0, from.type, c.dims(0), from.elements);
}

void get_element_kernel(kernel_context& c) {
  const const_view& from = c.input(0);
  if (!is_optional(from.type))
    return copy_all(from, c.output(0));
  if (from.size() == 0)
    fail(errc::invalid_input, "the optional is empty");
  c.give(0, *from.as<tensor>());
}

constexpr op_def optional_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                              void (*reference)(kernel_context&), operand_range inputs, dtype_set types,
                              std::optional<size_t> (*repeats)(const infer_context&) = nullptr) {
  return op_row(name, since, infer, reference,
                {.inputs = inputs,
                 .types = types,
                 .hides_elements = true,
                 .needs_float32 = true,
                 .repeats = repeats,
                 .axes = repeats ? axes::elements : nullptr,
                 .mixes = in_containers});
}

constexpr dtype_set anything = types::any | types::containers;

constexpr auto optional_rows = std::to_array<op_def>({
    optional_row("Optional", 15, infer_optional, optional_kernel, {0, 1}, types::any | types::sequence),
    optional_row("OptionalHasElement", 15, infer_has_element, has_element_kernel, {1, 1}, types::optional),
    optional_row("OptionalHasElement", 18, infer_has_element, has_element_kernel, {0, 1}, anything),
    optional_row("OptionalGetElement", 15, infer_get_element, get_element_kernel, {1, 1}, types::optional),
    optional_row("OptionalGetElement", 18, infer_get_element, get_element_kernel, {1, 1}, anything, repeats_first),
});

} // namespace

extern constinit const op_table onnx_optional_ops = optional_rows;

} // namespace troupe
