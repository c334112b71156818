// Indices into an axis, as ONNX counts them.
#ifndef TROUPE_INDICES
#define TROUPE_INDICES

/// Returns the low word of an index counted from the front and clamped to [0, bound): never outside. bound is in [1,
/// 2^31).
uint clamp_index(uint word, uint bound) {
  int index = int(word);
  if (index < 0)
    index += int(bound);
  return uint(clamp(index, 0, int(bound) - 1));
}

#endif
