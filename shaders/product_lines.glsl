// Which depths a group sums, and where the columns of operand B are. See gemm.glsl.
uint batch_index() {
  return gl_WorkGroupID.z / product.splits;
}
uint split_begin() {
  return gl_WorkGroupID.z % product.splits * product.split_depth;
}
uint split_end() {
  return min(product.k, split_begin() + product.split_depth);
}

/// A row of A or a column of B: where it starts, and whether it is one.
struct line {
  uint start;
  bool inside;
};

line b_line(uint n) {
  return line(batch_of_b() + n * product.b_column, n < product.n);
}
