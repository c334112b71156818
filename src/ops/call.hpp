// One call of an operator as kernels see it before a run: concrete types, shapes and layouts.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// Where an output is that is a part of a larger tensor, in elements: its rows, one after the other in every other
/// tensor, are parts of that one's rows, the same part of each.
struct row_part {
  int64_t pitch = 0; // from a row to the next; 0: the output is not a part
  int64_t first = 0; // where its part of each row begins
  int64_t size = 0;  // of the larger tensor

  bool operator==(const row_part&) const = default;
};

/// An input or output of a call, as it will be at every run.
struct operand {
  dtype type = dtype::undefined; // undefined if absent
  shape dims;                    // logical, whatever the layout
  troupe::layout layout = troupe::layout::plain;
  weight_ptr constant;  // the constant it is, else null
  tensor known;         // its elements if the host knows them, else undefined
  bool unsized = false; // an output whose dims depend on data: the kernel allocates it
  row_part part;        // of outputs on GPUs

  bool present() const { return type != dtype::undefined; }
  int64_t size() const { return volume(dims); }
  int64_t bytes() const { return bytes_of(type, size()); }
  bool is_part() const { return part.pitch > 0; }
  /// Elements and bytes of the tensor that an output is in: its own, unless it is a part.
  int64_t stored_size() const { return is_part() ? part.size : size(); }
  int64_t stored_bytes() const { return bytes_of(type, stored_size()); }
};

/// Returns whether the elements of a value of these dims are in the same order plain and channels-last.
bool same_in_both_layouts(const shape& dims);

} // namespace troupe
