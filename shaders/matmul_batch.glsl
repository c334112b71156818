// Where the matrices of products are whose operands are stored with strides. See gemm.glsl.
#include "parameters/matmul.h"

/// Where this group's matrices start in A and B.
uvec2 batch_start() {
  uvec2 start = uvec2(a_start, b_start);
  if (!IS_BATCHED)
    return start;
  uint rest = batch_index();
  for (uint i = 0; i < batch_rank; ++i) {
    const uint size = batch_axes[i].x, next = rest / size;
    start += (rest - next * size) * batch_axes[i].yz;
    rest = next;
  }
  return start;
}

uint batch_of_b() {
  return batch_start().y;
}
uint column_of_bias(uint n) {
  return product.first_column + n;
}
uint out_at(uint m, uint n) {
  return product.out_first + batch_index() * out_batch + m * product.out_row +
         (product.first_column + n) * product.out_column;
}
