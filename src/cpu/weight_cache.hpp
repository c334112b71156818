// Weights of one CPU device, shared by all its installed plans.
//
// A weight is held as long as a kernel uses it: the cache itself only remembers where it is. Bytes of a leaf stay where
// they are (usually the mapped model file); steps (folded, converted, packed) are computed once, from parts that are
// held if any are. Used by one thread at a time.
#pragma once

#include "base/weak_table.hpp"
#include "graph/weight.hpp"

namespace troupe {

/// See the top of this file.
class weight_cache {
public:
  using handle = std::shared_ptr<const tensor>;

  /// Returns the weight's elements.
  handle get(const weight_ptr& w);

  /// Returns the bytes held: computed weights, and mapped leaves in use.
  int64_t bytes() const;

  /// Returns how many weights the cache knows of, at most twice as many as were ever held at once.
  size_t known() const { return held_.size(); }

private:
  weak_table<hash128, const tensor> held_;
};

} // namespace troupe
