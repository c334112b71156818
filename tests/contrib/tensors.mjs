// Operands of cases: deterministic numbers, element types, float16.

const ARRAYS = { float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, bool: Uint8Array, float16: Uint16Array, float64: Float64Array, int4: Uint8Array, uint4: Uint8Array };

// Numbers of the same seed are the same everywhere (mulberry32).
let state = 1;
export const seed = n => { state = n; };
export function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

export const volume = dims => dims.reduce((a, b) => a * b, 1);

const word = new DataView(new ArrayBuffer(4));
export function toHalf(x) { // to nearest, ties to even
  word.setFloat32(0, x);
  const bits = word.getUint32(0), sign = (bits >>> 16) & 0x8000, exponent = ((bits >>> 23) & 255) - 112;
  if (exponent >= 31)
    return sign | 0x7c00;
  const shift = exponent > 0 ? 13 : Math.min(14 - exponent, 31);
  const mantissa = exponent > 0 ? bits & 0x7fffff : (bits & 0x7fffff) | 0x800000;
  const kept = shift > 24 ? 0 : mantissa >>> shift, rest = shift > 24 ? 0 : mantissa & ((1 << shift) - 1), middle = 1 << (shift - 1);
  return sign | ((Math.max(exponent, 0) << 10) + kept + (rest > middle || (rest === middle && kept & 1) ? 1 : 0));
}

// A tensor of given numbers or texts; 4-bit numbers are packed, the first in the low half.
export function tensor(type, dims, numbers) {
  if (type === 'string')
    return { type, dims, data: [...numbers] };
  let data;
  if (type === 'float16')
    data = Uint16Array.from(numbers, toHalf);
  else if (type === 'int64')
    data = BigInt64Array.from(numbers, BigInt);
  else if (type === 'int4' || type === 'uint4')
    data = Uint8Array.from({ length: Math.ceil(numbers.length / 2) }, (_, i) => (numbers[2 * i] & 15) | (((numbers[2 * i + 1] ?? 0) & 15) << 4));
  else
    data = ARRAYS[type].from(numbers);
  return { type, dims, data };
}

const filled = (type, dims, f) => tensor(type, dims, Array.from({ length: volume(dims) }, (_, i) => f(i)));
export const uniform = (type, dims, low, high) => filled(type, dims, () => low + (high - low) * random());
export const floats = (dims, type = 'float32') => uniform(type, dims, -2, 2);
export const integers = (type, dims, low, high) => filled(type, dims, () => Math.floor(low + (high - low + 1) * random()));
export const constant = t => ({ ...t, constant: true });

// Attributes that are not integers, texts or lists of integers.
export const texts = x => ({ texts: x });
export const tensorValue = t => ({ tensor: t });
export const real = x => ({ real: x });
export const reals = x => ({ reals: x });
