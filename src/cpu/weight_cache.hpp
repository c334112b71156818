// Weights of one CPU device, shared by all its installed plans.
//
// A weight is held as long as a kernel uses it: the cache itself only remembers where it is. Plain bytes of a leaf stay
// where they are (usually the mapped model file); recipes are computed on demand; packed forms are made once per format.
// Packing releases the mapped pages it has read, so that memory does not double. Used by one thread at a time.
#pragma once

#include "base/weak_table.hpp"
#include "graph/weight.hpp"

#include <functional>

namespace troupe {

/// See the top of this file.
class weight_cache {
public:
  using handle = std::shared_ptr<const tensor>;

  /// Returns the weight's elements, row-major.
  handle plain(const weight_ptr& w);

  /// Returns the weight in a packed format, named so that equal names mean equal bytes. `pack` makes it from the plain
  /// elements where it is not there yet.
  handle packed(const weight_ptr& w, const std::string& format, const std::function<tensor(const tensor&)>& pack);

  /// Returns the bytes held: computed and packed weights, and mapped leaves in use.
  int64_t bytes() const;

  /// Returns how many weights the cache knows of, at most twice as many as were ever held at once.
  size_t known() const { return held_.size(); }

private:
  using key = std::pair<hash128, std::string>;
  struct key_hash {
    size_t operator()(const key& k) const noexcept {
      return std::hash<hash128>()(k.first) ^ std::hash<std::string>()(k.second);
    }
  };

  handle hold(key k, tensor bytes);

  weak_table<key, const tensor, key_hash> held_;
};

} // namespace troupe
