#include "ops/movement.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

/// The operands of a run on indices: data inputs count through their common elements, the others are themselves.
struct index_operands {
  std::vector<tensor> inputs;
  std::vector<dim> elements; // by index: the element
};

std::optional<index_operands> index_operands_of(const infer_context& c, size_t data_inputs) {
  index_operands operands;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) {
      operands.inputs.emplace_back();
      continue;
    }
    const auto known = c.known(i);
    if (!known || !is_constant(c.dims(i)))
      return std::nullopt;
    std::vector<int64_t> numbers(known->size());
    if (i < data_inputs) {
      std::iota(numbers.begin(), numbers.end(), static_cast<int64_t>(operands.elements.size()));
      operands.elements.insert(operands.elements.end(), known->begin(), known->end());
    } else if (is_constant(*known)) {
      numbers = constants(*known);
    } else {
      return std::nullopt;
    }
    operands.inputs.push_back(tensor::of<int64_t>(constants(c.dims(i)), numbers));
  }
  return operands;
}

bool is_small(std::span<const symbolic_shape> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const symbolic_shape& dims) {
    return is_constant(dims) && volume(constants(dims)) <= static_cast<int64_t>(max_known_elements);
  });
}

} // namespace

void set_moved(infer_context& c, std::vector<symbolic_shape> outputs, size_t data_inputs) {
  const dtype type = c.type(0);
  for (size_t i = 0; i < outputs.size(); ++i)
    c.set_output(i, type, outputs[i]);
  if (!(types::integers & set_of(type)) || !is_small(outputs))
    return;
  const auto operands = index_operands_of(c, data_inputs);
  if (!operands)
    return;
  std::vector<const_view> in;
  for (const tensor& input : operands->inputs)
    in.push_back(input.view());
  std::vector<tensor> results;
  results.reserve(outputs.size());
  std::vector<mutable_view> out;
  out.reserve(outputs.size());
  for (const symbolic_shape& dims : outputs)
    results.emplace_back(dtype::int64, constants(dims));
  for (tensor& result : results)
    out.push_back(result.mutable_ref());
  kernel_context kernel(c.attrs(), in, out);
  c.call().def->reference(kernel);
  for (size_t i = 0; i < results.size(); ++i) {
    std::vector<dim> elements;
    for (int64_t index : results[i].values<int64_t>())
      elements.push_back(operands->elements.at(static_cast<size_t>(index)));
    c.set_known(i, std::move(elements));
  }
}

std::optional<std::vector<int64_t>> integers_of(const infer_context& c, size_t i, std::string_view name) {
  if (c.has_input(i))
    return c.require_constants(i);
  if (c.attrs().has(name))
    return c.attrs().integers(name);
  return std::nullopt;
}

std::optional<std::vector<int64_t>> integers_of(const kernel_context& c, size_t i, std::string_view name) {
  if (c.has_input(i))
    return to_int64(c.input(i));
  if (c.attrs().has(name))
    return c.attrs().integers(name);
  return std::nullopt;
}

std::vector<size_t> normalize_axes(std::span<const int64_t> axes, size_t rank) {
  std::vector<size_t> normal;
  for (int64_t axis : axes) {
    const size_t position = normalize_axis(axis, rank);
    if (std::find(normal.begin(), normal.end(), position) != normal.end())
      fail(errc::invalid_model, "axis {} occurs twice", axis);
    normal.push_back(position);
  }
  return normal;
}

mutable_view output_of(kernel_context& c, size_t i, const shape& dims) {
  const mutable_view& planned = c.output(i);
  if (!planned.data)
    return c.allocate(i, dims);
  if (!std::ranges::equal(dims, planned.dims))
    fail(errc::invalid_input, "output {} has shape {}, {} was expected", i, to_string(dims), to_string(planned.dims));
  return planned;
}

int64_t product(std::span<const int64_t> dims, size_t first, size_t last) {
  return volume(dims.subspan(first, last - first));
}

} // namespace troupe
