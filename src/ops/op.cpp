#include "ops/op.hpp"

#include "base/limits.hpp"
#include "graph/dim_budget.hpp"
#include "ops/evaluate.hpp"
#include "ops/infer.hpp"
#include "ops/strided_copy.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe {

std::string word_of(const attributes& attrs, std::string_view name, std::string_view otherwise,
                    std::initializer_list<std::string_view> known) {
  std::string word = attrs.text(name, std::string(otherwise));
  if (std::ranges::find(known, word) != known.end())
    return word;
  const std::span<const std::string_view> all(known);
  fail(errc::invalid_model, "attribute '{}' is '{}', not {} or {}", name, word,
       fmt::join(all.first(all.size() - 1), ", "), all.back());
}

const value& infer_context::input(size_t i) const {
  if (!has_input(i))
    fail(errc::invalid_model, "input {} is missing", i);
  return graph_.values[node_.inputs[i]];
}

dtype infer_context::type(size_t i) const {
  return input(i).type;
}

const symbolic_shape& infer_context::dims(size_t i) const {
  const value& v = input(i);
  if (!v.dims)
    fail(errc::unsupported, "the rank of input {} ('{}') is not known", i, v.name);
  return *v.dims;
}

std::optional<std::vector<dim>> infer_context::known(size_t i) const {
  const value& v = input(i);
  if (v.known)
    return v.known;
  const bool integral = (types::integers | types::boolean) & set_of(v.type);
  if (!v.constant || !integral || volume(v.constant->dims) > static_cast<int64_t>(max_known_elements))
    return std::nullopt;
  const std::vector<int64_t> elements = to_int64(materialise(*v.constant).view());
  return std::vector<dim>(elements.begin(), elements.end());
}

std::vector<dim> infer_context::require_known(size_t i) const {
  if (auto elements = known(i))
    return *std::move(elements);
  fail(errc::unsupported, "input {} ('{}') must be known before the run, but it is computed from data", i,
       input(i).name);
}

std::vector<int64_t> infer_context::require_constants(size_t i) const {
  const std::vector<dim> elements = require_known(i);
  if (!is_constant(elements))
    fail(errc::unsupported, "input {} ('{}') must be constant, but it depends on a symbolic dim", i, input(i).name);
  return constants(elements);
}

tensor infer_context::constant(size_t i) const {
  const value& v = input(i);
  if (!v.constant || volume(v.constant->dims) > static_cast<int64_t>(max_known_elements))
    return {};
  return materialise(*v.constant);
}

bool infer_context::is_filled(size_t i, double wanted) const {
  return has_input(i) && all_equal(input(i), wanted);
}

bool all_equal(const value& v, double wanted) {
  if (!v.constant)
    return false;
  const weight& w = *v.constant;
  if (!(types::fixed_size & set_of(w.type)) || volume(w.dims) > static_cast<int64_t>(max_known_elements))
    return false;
  const auto all = [&](const auto& elements) {
    return std::all_of(elements.begin(), elements.end(), [&](auto x) { return static_cast<double>(x) == wanted; });
  };
  const tensor elements = materialise(w);
  return w.type == dtype::boolean ? all(to_int64(elements.view())) : all(to_double(elements.view()));
}

void infer_context::set_output(size_t i, dtype type, symbolic_shape dims, element_shapes elements) {
  if (!has_output(i))
    return;
  if (dims.size() > limits::max_rank)
    fail(errc::unsupported, "output {} has a rank of {}; at most {} is supported", i, dims.size(), limits::max_rank);
  if (is_sequence(type) && dims[0].is_constant() && dims[0].constant() > limits::max_sequence_length)
    fail(errc::unsupported, "output {} would be a sequence of {} tensors; at most {} are supported", i,
         dims[0].constant(), limits::max_sequence_length);
  value& v = graph_.values[node_.outputs[i]];
  v.type = type;
  v.dims = std::move(dims);
  v.elements = std::move(elements);
}

void infer_context::set_element(size_t i, dtype type, const element_shapes& elements) {
  if (is_sequence(type))
    return set_output(i, type, {data_dependent(i, 0)}, elements);
  if (!elements.dims)
    return set_output_of_any_rank(i, type);
  symbolic_shape dims;
  for (size_t axis = 0; axis < elements.dims->size(); ++axis)
    dims.push_back((*elements.dims)[axis] < 0 ? data_dependent(i, axis) : dim((*elements.dims)[axis]));
  set_output(i, type, std::move(dims));
}

void infer_context::set_output_of_any_rank(size_t i, dtype type) {
  if (!has_output(i))
    return;
  value& v = graph_.values[node_.outputs[i]];
  v.type = type;
  v.dims.reset();
}

void infer_context::set_known(size_t i, std::vector<dim> elements) {
  if (!has_output(i) || elements.size() > max_known_elements)
    return;
  if (!is_constant(elements)) // else a constant takes their place
    dim_budget::spend(static_cast<int64_t>(elements.size() * sizeof(dim)));
  graph_.values[node_.outputs[i]].known = std::move(elements);
}

dim infer_context::data_dependent(size_t i, size_t axis) const {
  // Value names are unique within a graph; '#' keeps the symbol apart from the file's own dim names.
  const std::string name = has_output(i) ? graph_.values[node_.outputs[i]].name : node_.name;
  return dim::symbol("#" + name + "." + std::to_string(axis));
}

size_t infer_context::axis(std::string_view name, int64_t otherwise, size_t rank) const {
  return normalize_axis(attrs().integer(name, otherwise), rank);
}

size_t normalize_axis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    fail(errc::invalid_model, "axis {} is out of range for rank {}", axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

mutable_view& kernel_context::allocate(size_t i, shape dims) {
  tensor t(outputs_[i].type, std::move(dims));
  allocated_.at(i) = std::move(t);
  outputs_[i] = allocated_[i].mutable_ref();
  return outputs_[i];
}

void kernel_context::give(size_t i, const tensor& value) {
  const mutable_view& out = outputs_[i];
  if (out.type != value.type())
    fail(errc::invalid_input, "output {} would be {}, but {} was stated", i, to_string(value.type()),
         to_string(out.type));
  if (!out.data) {
    allocated_.at(i) = value;
    outputs_[i] = allocated_[i].mutable_ref();
    return;
  }
  if (!std::ranges::equal(value.dims(), out.dims))
    fail(errc::invalid_input, "output {} has shape {}, but {} was stated", i, to_string(value.dims()),
         to_string(out.dims));
  copy_all(value.view(), out);
}

} // namespace troupe
