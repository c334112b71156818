// Elements of a body's input that decide shapes inside the body, as symbols: bound from the bytes before each
// execution.
//
// Symbols are counts, so an element that may be negative is the difference of two of them, of which one is 0.
// Their names begin with '@', which no symbol of a file does.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Returns the symbol of a name that a file gives; in quotes, lest it be one of ours, if it begins with '@', or with
/// '#' as those of data-dependent dims do.
dim stated_symbol(const std::string& name);

/// Returns whether some of these mention a symbol that only a run binds, or an execution of a body: one of '#' or '@'.
bool depend_on_run(std::span<const dim> dims);

/// Returns whether the value is provably ≥ 1 in every run in which no dim of an input, of the graph or of a body, is
/// empty. Symbols of elements, and of dims that data decide, may be 0 in any run.
bool is_positive_unless_empty(const dim& d);

/// Returns a fresh symbol for dim `axis` of the body input called `input`.
dim body_dim(const std::string& input, size_t axis);

/// Returns dims for the `count` elements of the body input called `input`; if `counts`, they are never negative.
std::vector<dim> element_symbols(const std::string& input, size_t count, bool counts);

/// Adds the symbols of `input`'s elements, if it has any, to `values`. Throws `errc::invalid_input` for a
/// negative element that was said to be none.
void bind_elements(const value& input, const tensor& bytes, bindings& values);

} // namespace troupe
