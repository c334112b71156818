#include "compat/onnxruntime/empty_inputs.hpp"

#include <algorithm>
#include <map>

namespace troupe::ort {
namespace {

bool is_array(const tensor& t) {
  return t.defined() && !is_container(t.type());
}

bool is_empty(const tensor& t) {
  return is_array(t) && t.size() == 0;
}

/// Returns the name of a dim that an input declares; empty if it has none, or the input is not of that rank.
std::string name_at(const value_info& input, const tensor& t, size_t axis) {
  return input.dims && input.dims->size() == t.dims().size() ? (*input.dims)[axis].symbol_name() : "";
}

/// Returns the sizes of names in inputs with elements; 0 for a name with several.
std::map<std::string, int64_t> sizes_in(const named_tensors& inputs, const std::vector<value_info>& declared) {
  std::map<std::string, int64_t> sizes;
  for (const value_info& input : declared) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end() || !is_array(given->second) || is_empty(given->second))
      continue;
    const tensor& t = given->second;
    for (size_t axis = 0; axis < t.dims().size(); ++axis)
      if (const std::string name = name_at(input, t, axis); !name.empty())
        if (const auto [at, added] = sizes.emplace(name, t.dims()[axis]); !added && at->second != t.dims()[axis])
          at->second = 0;
  }
  return sizes;
}

} // namespace

void settle_empty(named_tensors& inputs, const std::vector<value_info>& declared) {
  if (std::ranges::none_of(inputs, [](const auto& input) { return is_empty(input.second); }))
    return;
  const std::map<std::string, int64_t> sizes = sizes_in(inputs, declared);
  for (const value_info& input : declared) {
    const auto given = inputs.find(input.name);
    if (given == inputs.end() || !is_empty(given->second))
      continue;
    shape dims = given->second.dims();
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (const auto size = sizes.find(name_at(input, given->second, axis)); dims[axis] == 0 && size != sizes.end())
        dims[axis] = size->second;
    if (dims != given->second.dims() && std::ranges::find(dims, 0) != dims.end())
      given->second = tensor(given->second.type(), dims);
  }
}

} // namespace troupe::ort
