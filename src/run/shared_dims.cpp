#include "run/shared_dims.hpp"

#include "graph/element_symbols.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

int64_t size_at(const shared_dims::dims_of& dims, size_t input, size_t axis) {
  const shape* const given = dims(input);
  return given && axis < given->size() ? (*given)[axis] : -1;
}

} // namespace

shared_dims::shared_dims(const std::vector<value_info>& inputs, const bindings& stated) : inputs_(inputs) {
  std::map<std::string, name> all;
  std::set<std::string> in_expressions;
  for (size_t i = 0; i < inputs_.size(); ++i)
    for (size_t axis = 0; inputs_[i].dims && axis < inputs_[i].dims->size(); ++axis) {
      const dim& d = (*inputs_[i].dims)[axis];
      std::vector<std::string> mentioned;
      d.collect_symbols(mentioned);
      if (const std::string symbol = d.symbol_name(); symbol.empty())
        in_expressions.insert(mentioned.begin(), mentioned.end());
      else
        all[symbol].places.push_back({i, axis});
    }
  for (auto& [text, found] : all)
    if (found.places.size() > 1 && !stated.contains(text) && !in_expressions.contains(text))
      names_.push_back({text, std::move(found.places)});
}

std::vector<shared_dims::difference> shared_dims::differences(const dims_of& dims) const {
  std::vector<difference> found;
  for (const name& n : names_) {
    const place* first = nullptr;
    for (const place& p : n.places) {
      const int64_t size = size_at(dims, p.input, p.axis);
      if (size < 0)
        continue;
      if (!first) {
        first = &p;
      } else if (size != size_at(dims, first->input, first->axis)) {
        found.push_back({&n, *first, p});
        break;
      }
    }
  }
  return found;
}

std::vector<std::string> shared_dims::contradicted(const dims_of& dims) const {
  std::vector<std::string> names;
  for (const difference& d : differences(dims))
    names.push_back(d.of->text);
  return names;
}

std::string shared_dims::describe(const dims_of& dims) const {
  const std::vector<difference> found = differences(dims);
  if (found.empty())
    return "";
  const auto& [of, first, second] = found.front();
  return fmt::format("'{}' is {} in input '{}', axis {}, and {} in input '{}', axis {}", of->text,
                     size_at(dims, first.input, first.axis), inputs_[first.input].name, first.axis,
                     size_at(dims, second.input, second.axis), inputs_[second.input].name, second.axis);
}

bool shared_dims::contradict(const named_tensors& inputs) const {
  return !differences([&](size_t i) {
            const auto given = inputs.find(inputs_[i].name);
            return given == inputs.end() ? nullptr : &given->second.dims();
          }).empty();
}

symbolic_shape shared_dims::split(size_t i, const std::vector<std::string>& names) const {
  symbolic_shape dims = inputs_[i].dims.value_or(symbolic_shape{});
  for (size_t axis = 0; axis < dims.size(); ++axis)
    if (std::ranges::find(names, dims[axis].symbol_name()) != names.end())
      dims[axis] = stated_symbol(fmt::format("{}.{}", inputs_[i].name, axis));
  return dims;
}

} // namespace troupe
