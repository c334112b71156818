#include "run/container_inputs.hpp"

#include "base/error.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool fits(const shape& given, const element_shapes& declared) {
  return !declared.dims ||
         std::ranges::equal(given, *declared.dims, [](int64_t d, int64_t stated) { return stated < 0 || d == stated; });
}

void check_elements(const value& declared, dtype type, const tensor& given) {
  if (is_optional(type) && given.size() > 1)
    fail(errc::invalid_input, "input '{}' is an optional of {} elements", declared.name, given.size());
  for (int64_t i = 0; i < given.size(); ++i) {
    const tensor& element = given.data<tensor>()[i];
    if (element.type() != element_of(type))
      fail(errc::invalid_input, "input '{}': element {} of a {} is {}", declared.name, i, to_string(type),
           to_string(element.type()));
    if (is_container(element.type()))
      check_elements(declared, element.type(), element);
    else if (!fits(element.dims(), declared.elements))
      fail(errc::invalid_input, "input '{}': element {} has shape {}; the model takes {} (-1: any)", declared.name, i,
           to_string(element.dims()), to_string(std::span<const int64_t>(*declared.elements.dims)));
  }
}

} // namespace

void check_container(const value& declared, const tensor& given) {
  check_elements(declared, declared.type, given);
}

element_shapes ranks_in(const tensor& container) {
  element_shapes ranks{.dims = std::nullopt, .empty = true};
  for (const tensor& element : container.values<tensor>())
    ranks = join(ranks, is_container(element.type()) ? ranks_in(element)
                                                     : element_shapes{.dims = shape(element.dims().size(), -1)});
  return ranks;
}

} // namespace troupe
