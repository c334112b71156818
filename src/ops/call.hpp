// One call of an operator as kernels see it before a run: concrete types, shapes and layouts.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// An input or output of a call, as it will be at every run.
struct operand {
  dtype type = dtype::undefined; // undefined if absent
  shape dims;                    // logical, whatever the layout
  troupe::layout layout = troupe::layout::plain;
  weight_ptr constant;  // the constant it is, else null
  tensor known;         // its elements if the host knows them, else undefined
  bool unsized = false; // an output whose dims depend on data: the kernel allocates it

  bool present() const { return type != dtype::undefined; }
  int64_t size() const { return volume(dims); }
  int64_t bytes() const { return bytes_of(type, size()); }
};

/// Returns whether the elements of a value of these dims are in the same order plain and channels-last.
bool same_in_both_layouts(const shape& dims);

} // namespace troupe
