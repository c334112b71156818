// Parameters of loss.comp.
#include "block.h"

PARAMETERS(loss) {
  uint count; // of targets
  uint classes, inner;
  uint target_words; // of a target: 1 or 2, the low one first
  uint ignored_low, ignored_high;
  uint parts, per_part; // of the targets, if losses are summed
};

CONSTANT loss_each = 0, loss_parts = 1, loss_merge = 2, loss_whole = 3; // what a launch does: all but the first sum

/// Flags.
CONSTANT loss_weights = 1, loss_ignores = 2, loss_mean = 4;
