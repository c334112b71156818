// Parameters of pad.comp.
#include "block.h"

PARAMETERS(pad) {
  uint count;
  uint rank;
  uint mode;
  uint fill_given; // 1: in `fill`, 0: in fill_low and fill_high
  uint fill_low, fill_high;
  uint base; // of what cropping leaves, where that is repeated
  uint unused;
  ivec4 axes[14]; // size of the output, elements put in front, size of the input, its step
};

/// What is outside of the input.
CONSTANT pad_constant = 0, pad_reflect = 1, pad_edge = 2, pad_wrap = 3;
