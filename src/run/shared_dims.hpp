// Names that several dims of a model's inputs have in common.
//
// A name says that sizes are equal, and plans rely on it. Exporters write one name ("?", "N", "None") for sizes that
// differ as well; ONNX Runtime compares none. So a run whose sizes contradict a name gets a program in which each dim
// of that name has a symbol of its own: what needs them to be equal says so then.
#pragma once

#include "troupe/options.hpp"
#include "troupe/results.hpp"

#include <functional>

namespace troupe {

class shared_dims {
public:
  shared_dims() = default;
  /// For inputs in this order. Values that the caller states (`stated`) hold for all dims of a name: it counts as no
  /// shared one, nor does one that is part of an expression.
  shared_dims(const std::vector<value_info>& inputs, const bindings& stated);

  /// Returns the dims of input `i`; null if it is not given.
  using dims_of = std::function<const shape*(size_t i)>;

  /// Returns the names of which two dims differ.
  std::vector<std::string> contradicted(const dims_of& dims) const;
  /// Returns e.g. "'N' is 2 in input 'a', axis 0, and 3 in input 'b', axis 1" of the first such name; empty if there is
  /// none.
  std::string describe(const dims_of& dims) const;
  /// Returns whether two dims of one name differ in these inputs.
  bool contradict(const named_tensors& inputs) const;
  /// Returns the dims of input `i`, each dim of one of those names with a symbol of its own.
  symbolic_shape split(size_t i, const std::vector<std::string>& names) const;

private:
  struct place {
    size_t input = 0, axis = 0;
  };
  struct name {
    std::string text;
    std::vector<place> places; // two or more
  };
  /// A place of a name whose size differs from that of the first place that is given.
  struct difference {
    const name* of = nullptr;
    place first, second;
  };
  std::vector<difference> differences(const dims_of& dims) const;

  std::vector<value_info> inputs_;
  std::vector<name> names_;
};

} // namespace troupe
