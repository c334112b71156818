// Which depths a group sums, and where the columns of operand B are. See gemm.glsl.
// Includers may define PRODUCT_DEPTH, which is product.k.
// A division takes a quarter of a microsecond, for which a group that need not divide does not wait.
#ifndef PRODUCT_DEPTH
#define PRODUCT_DEPTH product.k
#endif

uint batch_index() {
  return !IS_BATCHED ? 0 : IS_SPLIT ? gl_WorkGroupID.z / product.splits : gl_WorkGroupID.z;
}
uint split_index() {
  return !IS_SPLIT ? 0 : IS_BATCHED ? gl_WorkGroupID.z % product.splits : gl_WorkGroupID.z;
}
uint split_begin() {
  return split_index() * product.split_depth;
}
uint split_end() {
  return IS_SPLIT ? min(PRODUCT_DEPTH, split_begin() + product.split_depth) : PRODUCT_DEPTH;
}

/// A row of A or a column of B: where it starts, and whether it is one.
struct line {
  uint start;
  bool inside;
};

line b_line(uint n) {
  return line(batch_of_b() + n * product.b_column, n < product.n);
}
