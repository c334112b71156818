import { floats, integers, tensor, uniform, real, constant } from './tensors.mjs';

const size = 16; // ONNX Runtime takes multiples of 16
const ints = (dims, numbers) => tensor('int32', dims, numbers);

// A cache [B, kv, P, size] of real numbers or codes, whatever is in it.
const stale = (dims, type, bits) => (bits === 8 ? integers('int8', dims, -128, 127) : bits === 4 ? integers('uint8', [...dims.slice(0, 3), dims[3] / 2], 0, 255) : floats(dims, type));
// One with `taken` rows of each batch element; the rows after them mean nothing, and are 0 here.
function cache(dims, taken, type) {
  const t = floats(dims, type), [B, kv, P] = dims;
  for (let b = 0; b < B; b++)
    for (let h = 0; h < kv; h++)
      t.data.fill(0, ((b * kv + h) * P + taken[b]) * size, (b * kv + h + 1) * P * size);
  return t;
}

// GroupQueryAttention: batch B, new tokens S, a cache of P places, of which `lengths` minus S are taken.
const grouped = (what, { B = 1, S = 3, P = 0, heads = 4, kv = 2, lengths = Array(B).fill(P + S), total = Math.max(...lengths), type = 'float32', attrs = {}, rotary = false, columns = 8,
  positions = false, packed = false, bias = null, sink = false, old = false, bits = 0, by = 'PER_TENSOR', L = S } = {}) => () => ({
  what, attrs: { num_heads: heads, kv_num_heads: kv, ...(rotary ? { do_rotary: 1 } : {}), ...(bits ? { k_quant_type: by, v_quant_type: by, kv_cache_bit_width: bits } : {}), ...attrs }, outputs: ['y', 'key', 'value', ...(attrs.qk_output ? ['scores'] : [])],
  inputs: [floats([B, S, (packed ? heads + 2 * kv : heads) * size], type), packed ? null : floats([B, L, kv * size], type), packed ? null : floats([B, L, kv * size], type),
    ...(P ? [1, 2].map(() => (old || bits ? stale([B, kv, P, size], type, bits) : cache([B, kv, P, size], lengths.map(n => n - S), type))) : [null, null]), ints([B], lengths.map(n => n - 1)), constant(ints([], [total])),
    rotary ? constant(uniform(type, [16, columns], -1, 1)) : null, rotary ? constant(uniform(type, [16, columns], -1, 1)) : null,
    positions ? tensor('int64', [B, S], lengths.flatMap(n => Array.from({ length: S }, (_, i) => n - S + i))) : null, bias && floats(bias, type), sink ? constant(floats([heads], type)) : null,
    ...(bits ? [1, 2].map(() => constant(uniform('float32', by === 'PER_TENSOR' ? [1] : [1, kv, 1, size], 0.16 / bits, 1.6 / bits / bits))) : [])],
});
// A cache of a window's size. ONNX Runtime leaves the places after the rows that are kept as they were: such presents are not compared.
const slides = (what, w, { attrs = {}, ...rest }) => () => {
  const c = grouped(what, { old: true, attrs: { sliding_window_cache: 1, local_window_size: w, ...attrs }, ...rest })(), C = rest.P;
  const full = c.inputs[5].data.every(n => n + 1 === C || (n + 1 > C && w + ((n - C) % (C - w + 1)) === C));
  return full ? c : { ...c, outputs: ['y', null, null], instead: { outputs: c.outputs } };
};

// SparseAttention (ONNX Runtime finds its softmax only if all elements of a batch have as many keys): blocks of `block` places; `layouts` lists for each layout the columns of each row. The caches are filled where they are.
const sparse = (what, layouts, { B = 1, S = 3, P = 8, heads = 4, kv = 2, block = 2, lengths = Array(B).fill(S), type = 'float32', attrs = {}, rotary = false, columns = 8, packed = false } = {}) => () => {
  const most = Math.max(...layouts.map(rows => rows.flat().length));
  const padded = layouts.flatMap(rows => [...rows.flat(), ...Array(most - rows.flat().length).fill(-1)]);
  const ends = layouts.flatMap(rows => rows.reduce((sums, row) => [...sums, sums.at(-1) + row.length], [0]));
  return {
    what, attrs: { num_heads: heads, kv_num_heads: kv, sparse_block_size: block, ...(rotary ? { do_rotary: 1 } : {}), ...attrs }, outputs: ['y', 'key', 'value'], shared: { key: 3, value: 4 },
    inputs: [floats([B, S, (packed ? heads + 2 * kv : heads) * size], type), packed ? null : floats([B, S, kv * size], type), packed ? null : floats([B, S, kv * size], type),
      ...[1, 2].map(() => cache([B, kv, P, size], lengths.map(n => n - S), type)), constant(ints([layouts.length, layouts[0].length + 1], ends)), constant(ints([layouts.length, most], padded)),
      constant(ints([1], [Math.max(...lengths)])), ints([B], lengths), ...(rotary ? [1, 2].map(() => constant(uniform(type, [16, columns], -1, 1))) : [])],
  };
};
const dense = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]], near = [[0], [0, 1], [1, 2], [2, 3]], far = [[0], [1], [0, 2], [0, 3]], without = [[0], [0], [2], [1]];

export const cases = {
  GroupQueryAttention: [
    grouped('a prompt'), grouped('a prompt of a batch', { B: 2 }), grouped('one group', { kv: 1, S: 4 }), grouped('a head each', { kv: 4 }), grouped('packed', { packed: true, S: 2 }),
    grouped('a scale and a cap', { attrs: { scale: real(0.3), softcap: real(1.5) } }), grouped('rotary', { rotary: true }), grouped('rotary, interleaved', { rotary: true, attrs: { rotary_interleaved: 1 }, packed: true }),
    grouped('rotary, given positions', { rotary: true, positions: true, S: 1, P: 5 }), grouped('a step', { S: 1, P: 5 }), grouped('a step with rotary', { S: 1, P: 5, rotary: true }),
    grouped('a step into a larger cache', { S: 1, P: 8, lengths: [5], rotary: true }), grouped('a batch of different lengths', { B: 2, S: 1, P: 8, lengths: [5, 8], rotary: true }),
    grouped('a batch that grows', { B: 2, S: 1, P: 4, lengths: [5, 3], rotary: true }), grouped('several steps at once', { S: 3, P: 4, rotary: true }), grouped('a window', { S: 5, attrs: { local_window_size: 2 } }),
    grouped('a window and a past', { S: 1, P: 6, attrs: { local_window_size: 3 }, rotary: true }), grouped('added scores', { bias: [1, 4, 3, 3] }), grouped('added scores and a past', { S: 1, P: 4, bias: [1, 1, 1, 5] }),
    grouped('smooth', { attrs: { smooth_softmax: 1 } }), grouped('sinks', { sink: true, S: 1, P: 4 }), grouped('sinks of a batch', { sink: true, S: 1, P: 8, B: 2, lengths: [5, 7], attrs: { softcap: real(2) } }),
    grouped('scores', { attrs: { qk_output: 1 } }), grouped('softmax of scores', { attrs: { qk_output: 2, softcap: real(1.5) }, B: 2 }), grouped('capped scores and a past', { S: 1, P: 5, rotary: true, attrs: { qk_output: 1, softcap: real(0.5) } }), grouped('scores in a larger cache', { S: 1, P: 8, lengths: [5], attrs: { qk_output: 1 } }),
    grouped('softmax of scores with sinks', { sink: true, S: 1, P: 4, attrs: { qk_output: 2 } }), grouped('scores and a bias', { bias: [1, 4, 3, 3], attrs: { qk_output: 1 } }), grouped('scores in a window', { S: 5, attrs: { local_window_size: 2, qk_output: 1 } }), grouped('not causal', { attrs: { causal: 0 } }), grouped('not causal, a batch', { B: 2, attrs: { causal: 0, qk_output: 2 }, lengths: [3, 3] }),
    grouped('float16', { type: 'float16', rotary: true }), grouped('float16, a step', { type: 'float16', rotary: true, S: 1, P: 5, packed: true }),
    grouped('a padded prompt', { B: 2, S: 5, lengths: [5, 3], total: 5 }), grouped('a padded prompt alone', { S: 5, lengths: [2], total: 5, bias: [1, 1, 5, 5] }), grouped('a padded prompt in a window', { B: 2, S: 6, lengths: [4, 6], attrs: { local_window_size: 4, softcap: real(1.5) }, rotary: true }), grouped('a padded prompt in a window, plain', { B: 2, S: 6, lengths: [4, 6], attrs: { local_window_size: 3 } }), grouped('a padded prompt with sinks', { B: 2, S: 4, lengths: [4, 1], sink: true }),
    grouped('a padded prompt and old rows', { B: 2, S: 3, P: 8, lengths: [3, 2], total: 3, old: true }), grouped('old rows', { B: 2, S: 1, P: 8, lengths: [5, 3], old: true }), grouped('old rows of one', { S: 2, P: 8, lengths: [5], old: true, rotary: true }), grouped('old rows of a batch that grows', { B: 2, S: 1, P: 4, lengths: [5, 3], old: true, type: 'float16' }),
    grouped('8 bits', { S: 2, P: 6, lengths: [5], bits: 8 }), grouped('8 bits by channel, a batch', { B: 2, S: 1, P: 6, lengths: [5, 7], bits: 8, by: 'PER_CHANNEL', rotary: true }), grouped('4 bits', { S: 1, P: 5, bits: 4 }), grouped('4 bits by channel, old rows', { B: 3, S: 1, P: 7, lengths: [5, 2, 8], bits: 4, by: 'PER_CHANNEL' }),
    grouped('8 bits of float16', { S: 1, P: 5, bits: 8, type: 'float16', attrs: { local_window_size: 3 } }), grouped('a prompt of 4 bits', { S: 4, P: 6, lengths: [4], bits: 4, sink: true }),
    slides('a cache of a window that fills', 3, { S: 1, P: 4, lengths: [3] }), slides('one that is full', 4, { S: 1, P: 4, lengths: [9] }), slides('one that is cut', 3, { S: 1, P: 6, lengths: [11], rotary: true }), slides('one that was cut', 3, { S: 1, P: 4, lengths: [6], rotary: true }), slides('a batch of such', 2, { B: 3, S: 1, P: 5, lengths: [9, 2, 14] }),
    slides('a prompt longer than its window', 3, { S: 10, P: 4, lengths: [10] }), slides('several steps', 3, { S: 3, P: 4, lengths: [12] }), slides('several steps that cut', 3, { S: 2, P: 4, lengths: [10], attrs: { smooth_softmax: 1 } }), slides('one of 8 bits', 4, { S: 1, P: 5, lengths: [9], bits: 8 }),
    grouped('a shared cache', { B: 2, S: 1, P: 6, L: 0, lengths: [4, 2], old: true, rotary: true }), grouped('several steps of a shared cache', { S: 3, P: 6, L: 0, lengths: [5], old: true, attrs: { local_window_size: 2 } }),
  ],
  SparseAttention: [
    sparse('a prompt', [near], { S: 7, lengths: [7] }), sparse('all blocks', [dense], { S: 7, lengths: [7] }), sparse('two layouts', [near, far], { S: 8, lengths: [8] }), sparse('four layouts of four heads', [dense, near, far, without], { S: 6, lengths: [6] }),
    sparse('packed', [far], { S: 5, lengths: [5], packed: true }), sparse('a scale', [near, far], { S: 5, lengths: [5], attrs: { scale: real(0.3) } }), sparse('a batch', [near, far], { B: 2, S: 8, lengths: [8, 8] }),
    sparse('a step', [near, far], { S: 1, lengths: [6] }), sparse('a step of a batch', [near, without], { B: 2, S: 1, lengths: [6, 6] }), sparse('several steps', [far], { S: 3, lengths: [7] }),
    sparse('rotary', [near, far], { S: 7, lengths: [7], rotary: true }), sparse('rotary, interleaved', [near], { S: 4, lengths: [4], rotary: true, packed: true, attrs: { rotary_interleaved: 1 } }), sparse('a step with rotary', [far], { B: 2, S: 1, lengths: [7, 7], rotary: true }),
    sparse('several steps with rotary', [near, far], { B: 2, S: 2, lengths: [8, 8], rotary: true }), sparse('a larger cache', [near], { S: 3, lengths: [3], P: 16 }), sparse('blocks of three', [far], { S: 10, lengths: [10], P: 12, block: 3 }),
    sparse('a query without keys', [[[0], [], [2], [3]]], { S: 6, lengths: [6] }), sparse('float16', [near, far], { S: 7, lengths: [7], type: 'float16' }),
  ],
};
