// Parameters of fourier.comp. Where numbers are is counted in numbers, each of one element or two.
#include "block.h"

PARAMETERS(fourier) {
  uint count; // of results, or of lines
  uint length, bins;
  uint read; // numbers of a line; after them are zeros
  uint inner, in_outer_step, in_inner_step, in_step; // line i begins at i / inner and i % inner steps
  uint out_outer_step, out_inner_step, out_step;
};

/// Flags.
CONSTANT fourier_complex_in = 1, fourier_complex_out = 2, fourier_inverse = 4, fourier_window = 8;
CONSTANT fourier_mirror = 16; // what is after the middle is the conjugate of what is before it
