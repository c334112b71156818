// Rows of elements that are reduced together, whatever axes they span: the parameter block of reduce.comp and local_norm.comp,
// and where elements lie.
layout(set = 0, binding = 0, std140) uniform parameters {
  uint rows;      // results, or parts of results: result + part · results
  uint count;     // elements of a result
  uint kept_rank; // at least 1, like reduced_rank
  uint reduced_rank;
  uint parts;    // of a result
  uint per_part; // elements
  float epsilon;
  uint results;
  uvec4 axes[8]; // innermost first: size and step of a kept axis, size and step of a reduced one
};

/// The first element of result `row`.
uint row_at(uint row) {
  uint at = 0;
  for (uint i = 0; i + 1 < kept_rank; ++i) {
    const uint next = row / axes[i].x;
    at += (row - next * axes[i].x) * axes[i].y;
    row = next;
  }
  return at + row * axes[kept_rank - 1].y;
}

/// How far element k of a row is from its first one.
uint element_at(uint k) {
  uint at = 0;
  for (uint i = 0; i + 1 < reduced_rank; ++i) {
    const uint next = k / axes[i].z;
    at += (k - next * axes[i].z) * axes[i].w;
    k = next;
  }
  return at + k * axes[reduced_rank - 1].w;
}
