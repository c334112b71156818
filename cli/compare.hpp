// Compares outputs with expectations, as ONNX's own test runner does.
#pragma once

#include "tensor/elements.hpp"

#include <optional>
#include <string>

namespace troupe::cli {

struct tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
  /// If set, float outputs pass by |got − want| / |want| of the whole tensor (L2) instead: for half precision.
  std::optional<double> l2 = std::nullopt;
};

/// Returns the tolerance for an output's elements on its scale: the absolute one is in parts of the largest magnitude
/// in `want`, and none is less than a step of a 16-bit type, which any other order of the same sums may cost.
tolerance on_scale_of(const tensor& want, const tolerance& allowed);

/// How far an output is from what was expected.
struct comparison {
  /// Largest |got − want| / (absolute + relative·|want|), or the L2 distance in tolerances; at most 1 passes, infinity
  /// if they cannot be compared.
  double worst = 0;
  /// Largest |got − want|, and that divided by |want|, over elements where both are finite.
  double largest_absolute = 0, largest_relative = 0;
  /// What differs, empty if the output passes.
  std::string difference;
};

/// Compares element by element: type and dims must be equal, NaN equals NaN, infinities equal themselves; integers,
/// 8-bit floats, strings and booleans must be equal.
comparison compare(const tensor& got, const tensor& want, const tolerance& allowed);

} // namespace troupe::cli
