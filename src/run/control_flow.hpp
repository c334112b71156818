// One execution of an If, Loop or Scan: which body comes next, with which inputs, and what comes out in the end.
//
// Pure: the session machine executes the bodies. `next` names a body until there is none left; `take` has the outputs
// of each; `results` are the node's. Carried values are handed on as they are; scan outputs are kept and joined at the
// end. Not thread-safe.
#pragma once

#include "ops/onnx/control.hpp"

namespace troupe {

class control_flow {
public:
  /// One execution of a body.
  struct body_call {
    size_t body = 0; // position in `bodies_of(node)`
    std::vector<tensor> inputs;
  };

  /// `inputs` are the node's, captured ones included; undefined if absent. Throws `errc::invalid_input` for a condition
  /// or a trip count that is not one element, and for scan inputs, or sequences, of different lengths.
  control_flow(const node& n, std::vector<tensor> inputs);

  /// Returns the body to execute now; nullopt if the results are complete. Throws `errc::invalid_input` for a branch
  /// that cannot be executed (`control_call::refusals`).
  std::optional<body_call> next();

  /// Takes the outputs of the body that `next` named. Throws `errc::invalid_input` for a condition that is not one
  /// element and for scan outputs that change their shape.
  void take(std::vector<tensor> outputs);

  /// Returns the node's outputs. `empty` has the dims of scan outputs without elements, by scan output.
  std::vector<tensor> results(std::span<const shape> empty) const;

  size_t carried() const { return call_.carried; }
  size_t scan_outputs() const { return call_.scan_outputs.size(); }
  /// Bodies that were executed.
  int64_t executed() const { return executed_; }
  /// Returns what `next` named last: "then_branch", "iteration 3".
  std::string position() const;

private:
  body_call make_call(size_t body, std::vector<tensor> formal) const;
  tensor scanned(size_t i) const;
  /// Of a SequenceMap with `formal` formal inputs.
  void check_lengths(size_t formal);

  const control_call call_;
  std::vector<tensor> inputs_;
  std::vector<tensor> carried_;              // an If's results, once its branch is done
  std::vector<std::vector<tensor>> scanned_; // by scan output and iteration
  int64_t trips_ = 0;                        // at most
  bool condition_ = true;
  size_t branch_ = 0;
  int64_t executed_ = 0;
};

/// Returns element `index` of `whole` along `axis`; along axis 0 it shares the bytes.
tensor slice_element(const tensor& whole, size_t axis, int64_t index);

/// Returns `elements`, at least one and all of one shape, joined along a new axis.
tensor stack_elements(std::span<const tensor> elements, size_t axis);

} // namespace troupe
