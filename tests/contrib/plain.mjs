import { floats, integers, tensor, uniform, real, constant } from './tensors.mjs';

const longs = (dims, numbers) => constant(tensor('int64', dims, numbers));
const unary = (what, x, attrs = {}) => () => ({ what, attrs, inputs: [x()] });
const binary = (what, a, b, attrs = {}) => () => ({ what, attrs, inputs: [a(), b()] });
const expand = (what, dims, axis, type = 'float32') => () => ({ what, inputs: [floats(dims, type), constant(tensor('int32', [], [axis]))] });
const pad = (what, dims, pads, { mode = null, value = null, flat = true, type = 'float32' } = {}) => () => ({
  what, attrs: mode ? { mode } : {}, inputs: [floats(dims, type), longs(flat ? [pads.length] : [1, pads.length], pads), value !== null ? constant(tensor(type, [1], [value])) : null].filter(x => x),
});
const range = (what, type, numbers) => () => ({ what, inputs: numbers.map(n => constant(tensor(type, [], [n]))) });
const sample = (what, attrs, type = 'float32') => () => ({ what, attrs, inputs: [floats([2, 3, 4, 5], type), uniform(type, [2, 3, 2, 2], -1.3, 1.3)] });
const product = (what, a, b, attrs = {}, type = 'float32') => () => ({ what, attrs, inputs: [floats(a, type), floats(b, type)] });
const short = (what, a, b) => () => ({ what, inputs: [integers('int16', a, -300, 300), integers('int16', b, -300, 300)] });
const trilu = (what, dims, attrs, k = null) => () => ({ what, attrs, inputs: [floats(dims), ...(k === null ? [] : [longs([], [k])])] });
const gathered = (what, dims, at, type = 'int64') => () => ({ what, inputs: [floats(dims), tensor(type, [at.length, at[0].length], at.flat())] });
const unique = (what, numbers) => () => ({ what, outputs: ['y', 'at', 'count'], inputs: [tensor('float32', [numbers.length], numbers)] });
// Far from singular: the diagonal is the largest.
const regular = (dims, type = 'float32') => { const n = dims.at(-1), t = uniform('float32', dims, -1, 1); for (let i = 0; i < t.data.length; i++) if (Math.floor(i / n) % n === i % n) t.data[i] += 4; return tensor(type, dims, t.data); };
const grams = (what, ids, size, words = 6) => () => ({ what, attrs: { ngram_size: size }, inputs: [tensor('int64', [ids.length, ids[0].length], ids.flat()), floats([ids.length, words])] });

const linear = (what, rule, { T = 3, q = 2, kv = 2, size = 4, wide = size, past = false, rows = false, shared = false, attrs = {} } = {}) => () => {
  const decays = rule.startsWith('gated'), corrects = rule.endsWith('delta');
  return { what, attrs: { q_num_heads: q, kv_num_heads: kv, update_rule: rule, ...attrs }, outputs: ['y', 'state'], inputs: [floats([2, T, q * size]), uniform('float32', [2, T, kv * size], -0.5, 0.5), floats([2, T, kv * wide]), past ? floats([2, kv, size, wide]) : null,
    decays ? uniform('float32', [2, T, rows ? kv * size : kv], -1, 0) : null, corrects ? uniform('float32', [2, T, shared ? 1 : kv], 0, 1) : null] };
};
const causal = (what, { x = [2, 4, 6], k = 3, bias = false, past = false, attrs = {} } = {}) => () => ({ what, attrs, outputs: ['y', 'state'], inputs: [floats(x), constant(floats([x[1], 1, k])), bias ? constant(floats([x[1]])) : null, past ? floats([x[0], x[1], k - 1]) : null] });

export const cases = {
  CausalConvWithState: [causal('plain'), causal('a bias', { bias: true }), causal('a past', { past: true, x: [1, 4, 1] }), causal('silu', { bias: true, past: true, attrs: { activation: 'silu' } }), causal('longer than x', { k: 4, x: [2, 3, 2] })],
  LinearAttention: [
    linear('linear', 'linear'), linear('gated', 'gated'), linear('delta', 'delta'), linear('gated delta', 'gated_delta', { past: true }), linear('a decay by row', 'gated_delta', { rows: true, past: true }), linear('a scale, wider values', 'gated', { wide: 6, attrs: { scale: real(0.5) } }), linear('one step', 'gated_delta', { T: 1, past: true }),
  ],
  QuickGelu: [
    unary('plain', () => floats([3, 7])), unary('alpha', () => floats([3, 7]), { alpha: real(1) }), unary('negative alpha', () => floats([5]), { alpha: real(-0.5) }), unary('four dims', () => floats([1, 2, 3, 4])), unary('large numbers', () => uniform('float32', [9], -60, 60)), unary('float16', () => floats([4, 9], 'float16')),
  ],
  ExpandDims: [expand('first', [3, 4], 0), expand('middle', [3, 4], 1), expand('last', [3, 4], -1), expand('before the last', [2, 3], -2), () => ({ what: 'int64', inputs: [integers('int64', [2, 3], -9, 9), constant(tensor('int32', [], [2]))] })],
  GatherND: [
    gathered('elements', [3, 4], [[0, 1], [2, 3]]), gathered('rows', [3, 4], [[2], [0], [2]]), gathered('int32', [2, 3, 4], [[1, 2]], 'int32'), gathered('whole elements', [2, 3, 4], [[1, 2, 3], [0, 0, 0]]), gathered('slices', [4, 2, 2], [[3], [1]]),
  ],
  GridSample: [sample('plain', {}), sample('nearest', { mode: 'nearest' }), sample('bicubic', { mode: 'bicubic' }), sample('border', { padding_mode: 'border' }), sample('reflection, corners', { padding_mode: 'reflection', align_corners: 1 }), sample('bicubic, corners', { mode: 'bicubic', align_corners: 1 }), sample('bicubic, border', { mode: 'bicubic', padding_mode: 'border' }), sample('float16', { padding_mode: 'border' }, 'float16')],
  Inverse: [
    unary('a matrix', () => regular([4, 4])), unary('a batch', () => regular([2, 3, 3, 3])), unary('one number', () => regular([1, 1])), unary('float64', () => regular([5, 5], 'float64')), unary('float16', () => regular([2, 3, 3], 'float16')), unary('rows to swap', () => tensor('float32', [2, 2], [0, 2, 1, 3])),
  ],
  CDist: [
    product('squares', [4, 3], [5, 3]), product('roots', [4, 3], [5, 3], { metric: 'euclidean' }), product('squares by name', [2, 6], [3, 6], { metric: 'sqeuclidean' }), product('float64', [3, 2], [4, 2], { metric: 'euclidean' }, 'float64'), product('one dimension', [3, 1], [2, 1]),
  ],
  MatMulInteger16: [short('plain', [3, 4], [4, 5]), short('a batch', [2, 3, 4], [2, 4, 2]), short('broadcast', [2, 3, 4], [4, 2]), short('a row', [1, 7], [7, 1]), short('large', [2, 40], [40, 3])],
  Pad: [
    pad('columns', [3, 2], [0, 2, 0, 0]), pad('a value', [3, 2], [1, 2, 0, 1], { value: 1.5 }), pad('edges', [3, 4], [1, 2, 2, 1], { mode: 'edge' }), pad('reflected', [3, 4], [1, 2, 2, 1], { mode: 'reflect' }), pad('pads of two dims', [3, 2], [0, 1, 1, 0], { flat: false }), pad('less', [4, 5], [-1, 0, 0, -2]), pad('float16', [3, 2], [1, 2, 0, 1], { value: 1.5, type: 'float16' }),
  ],
  Range: [range('whole', 'int64', [2, 11, 3]), range('usual step', 'int32', [-2, 4]), range('reals', 'float32', [0.5, 3, 0.75]), range('backwards', 'int64', [5, -4, -2]), range('float64', 'float64', [0, 1, 0.25]), range('int16', 'int16', [0, 5, 2])],
  SampleOp: [unary('plain', () => floats([3, 7])), unary('a vector', () => floats([4])), unary('nothing', () => floats([0, 3])), unary('a scalar', () => floats([])), unary('four dims', () => floats([1, 2, 3, 4]))],
  TransposeMatMul: [
    product('plain', [3, 4], [4, 5]), product('left', [4, 3], [4, 5], { transA: 1 }), product('right', [3, 4], [5, 4], { transB: 1, alpha: real(0.5) }), product('both, a batch', [2, 4, 3], [2, 5, 4], { transA: 1, transB: 1 }), product('broadcast', [2, 3, 4], [4, 5], { alpha: real(-1) }), product('float16', [4, 3], [4, 5], { transA: 1 }, 'float16'),
  ],
  Trilu: [trilu('upper', [4, 5], {}), trilu('lower', [4, 5], { upper: 0 }), trilu('above', [2, 4, 4], { upper: 1 }, 1), trilu('below', [4, 4], { upper: 0 }, -2), trilu('lower with more', [3, 5], { upper: 0 }, 2)],
  UnfoldTensor: [
    unary('last axis', () => floats([2, 7]), { size: 3 }), unary('steps', () => floats([2, 7]), { size: 3, step: 2 }), unary('first axis', () => floats([6, 2, 3]), { dim: 0, size: 2, step: 2 }), unary('middle', () => integers('int64', [2, 5, 3], -9, 9), { dim: 1, size: 4 }), unary('one window', () => floats([4]), { size: 4, step: 9 }),
  ],
  Unique: [unique('several', [2, 1, 1, 3, 4, 3]), unique('one', [5]), unique('all alike', [7, 7, 7]), unique('signs', [-1, 1, -1, 0]), unique('all different', [3, 2, 1, 0.5])],
  MurmurHash3: [
    unary('strings', () => tensor('string', [6], ['', 'a', 'ab', 'abc', 'abcd', 'a longer text'])), unary('a seed', () => tensor('string', [2, 1], ['x', 'yz']), { seed: 42 }), unary('int32', () => integers('int32', [5], -9, 9)), unary('int64, signed', () => integers('int64', [5], -9, 9), { positive: 0 }),
    unary('float32', () => floats([2, 3])), unary('float64, a seed', () => tensor('float64', [3], [1, -2.5, 0]), { seed: 7, positive: 0 }),
  ],
  NGramRepeatBlock: [
    grams('pairs', [[0, 1, 2, 0, 1], [3, 3, 3, 3, 3]], 2), grams('triples', [[0, 1, 2, 4, 0, 1], [1, 2, 3, 4, 5, 0]], 3), grams('single tokens', [[0, 1, 5]], 1), grams('longer than the row', [[0, 1, 2]], 5), grams('as long as the row', [[0, 1, 2]], 3),
  ],
};
