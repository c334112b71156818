import { floats, integers, tensor, uniform, real, constant } from './tensors.mjs';

const heads = 2, size = 4, hidden = heads * size;
const ints = (dims, numbers) => tensor('int32', dims, numbers);

// MultiHeadAttention: batch B, queries S, keys L, past P.
const multi = (what, { B = 2, S = 3, L = S, P = 0, type = 'float32', attrs = {}, bias = false, mask = null, added = null, kept = false, vsize = size,
  outputs = ['y'] } = {}) => () => {
  const q = kept ? [floats([B, S, hidden], type), floats([B, heads, L, size], type), floats([B, heads, L, vsize], type)]
    : [floats([B, S, hidden], type), floats([B, L, hidden], type), floats([B, L, heads * vsize], type)];
  return {
    what, attrs: { num_heads: heads, ...attrs }, outputs, types: { qk: type },
    inputs: [...q, bias ? constant(floats([2 * hidden + heads * vsize], type)) : null, mask, added && floats(added, type),
      P ? floats([B, heads, P, size], type) : null, P ? floats([B, heads, P, vsize], type) : null],
  };
};

// Q, K and V in one operand, or K and V: ONNX Runtime's CPU kernel takes them apart only.
const packed = (what, count) => () => {
  const [B, L] = [2, 3], parts = Array.from({ length: count }, () => floats([B, L, hidden]));
  const joined = { type: 'float32', dims: [B, L, heads, count, size], data: new Float32Array(B * L * hidden * count) };
  for (let row = 0; row < B * L * heads; row++)
    parts.forEach((p, i) => joined.data.set(p.data.subarray(row * size, (row + 1) * size), (row * count + i) * size));
  const q = floats([B, 2, hidden]);
  return count === 3 ? { what, attrs: { num_heads: heads }, inputs: [joined, null, null], instead: { inputs: parts } }
    : { what, attrs: { num_heads: heads }, inputs: [q, joined, null], instead: { inputs: [q, ...parts] } };
};

const attention = (what, { B = 2, S = 3, P = 0, inner = 6, type = 'float32', attrs = {}, bias = true, mask = null, added = null, sizes = [hidden, hidden, hidden],
  outputs = ['y'] } = {}) => () => ({
  what, attrs: { num_heads: heads, ...attrs }, outputs,
  inputs: [floats([B, S, inner], type), constant(floats([inner, sizes[0] + sizes[1] + sizes[2]], type)), bias ? constant(floats([sizes[0] + sizes[1] + sizes[2]], type)) : null, mask,
    P ? floats([2, B, heads, P, size], type) : null, added && floats(added, type)],
});

// ONNX Runtime's CPU kernel crashes without a bias: a bias of zeros is the same.
const noBias = () => {
  const c = attention('no bias', { bias: false })(), zeros = constant(tensor('float32', [3 * hidden], Array(3 * hidden).fill(0)));
  return { ...c, instead: { inputs: c.inputs.map((t, i) => (i === 2 ? zeros : t)) } };
};

// A mask of 8 places for S new ones after P, which ONNX Runtime's CPU kernel does not take: it is that of the queries and keys there are.
const manyPlaces = (what, S, P) => () => {
  const all = Array.from({ length: 128 }, (_, i) => (i % 8 <= Math.floor(i / 8) % 8 && i % 5 !== 2 ? 1 : 0)), total = P + S;
  const there = Array.from({ length: 2 * S * total }, (_, i) => all[Math.floor(i / (S * total)) * 64 + (P + Math.floor(i / total) % S) * 8 + i % total]);
  const c = attention(what, { P, S, outputs: ['y', 'present'], mask: ints([2, 1, 8, 8], all) })();
  return { ...c, instead: { inputs: c.inputs.map((t, i) => (i === 3 ? ints([2, S, total], there) : t)) } };
};

const quantised = (what, { P = 0, mask = null, perColumn = false, zeros = true, wtype = 'uint8', attrs = {}, outputs = ['y'] } = {}) => () => ({
  what, attrs: { num_heads: heads, ...attrs }, outputs,
  inputs: [integers('uint8', [2, 3, 6], 90, 160), constant(wtype === 'uint8' ? integers(wtype, [6, 3 * hidden], 100, 150) : integers(wtype, [6, 3 * hidden], -20, 30)),
    constant(floats([3 * hidden])), constant(tensor('float32', [], [0.02])), constant(perColumn ? uniform('float32', [3 * hidden], 0.01, 0.03) : tensor('float32', [], [0.015])),
    mask, zeros ? constant(tensor('uint8', [], [125])) : null, zeros ? constant(perColumn ? integers(wtype, [3 * hidden], 1, 20) : tensor(wtype, [], [3])) : null,
    P ? floats([2, 2, heads, P, size]) : null],
});

const rotary = (what, { dims = [2, 3, 8], positions = [2, 3], attrs = {}, columns = 2, type = 'float32', first = null } = {}) => () => ({
  what, attrs, inputs: [floats(dims, type), first === null ? integers('int64', positions, 0, 9) : tensor('int64', [1], [first]), constant(uniform(type, [12, columns], -1, 1)), constant(uniform(type, [12, columns], -1, 1))],
});

const kv = ['y', 'key', 'value'];

export const cases = {
  RotaryEmbedding: [
    rotary('flat'), rotary('interleaved', { attrs: { interleaved: 1 } }), rotary('four dims', { dims: [2, 2, 3, 4] }), rotary('one offset', { first: 4 }),
    rotary('one offset, interleaved', { first: 2, dims: [1, 5, 12], attrs: { interleaved: 1, num_heads: 3 } }), rotary('part of a head', { attrs: { num_heads: 2, rotary_embedding_dim: 2 }, columns: 1 }),
    rotary('float16', { type: 'float16' }), rotary('four dims, interleaved', { dims: [2, 2, 3, 4], attrs: { interleaved: 1 } }),
  ],
  MultiHeadAttention: [
    multi('plain'), multi('a bias', { bias: true }), multi('other keys', { L: 5 }), multi('a scale', { attrs: { scale: real(0.3) } }), multi('unidirectional', { attrs: { unidirectional: 1 }, S: 5 }),
    multi('a mask by key', { L: 5, mask: ints([2, 5], [1, 1, 1, 0, 1, 1, 0, 0, 0, 1]) }), multi('lengths of keys', { L: 5, mask: ints([2], [3, 5]) }),
    multi('a mask by query and key', { mask: ints([2, 3, 3], [1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0]) }),
    multi('a filter value', { L: 4, mask: ints([2, 4], [1, 0, 1, 0, 1, 1, 0, 0]), attrs: { mask_filter_value: real(-1.5) } }),
    multi('all masked', { L: 4, mask: ints([2, 4], [0, 0, 0, 0, 1, 1, 0, 0]), attrs: { mask_filter_value: real(-20) } }), multi('added scores', { added: [2, 2, 3, 3] }), multi('added scores, broadcast', { added: [1, 1, 3, 3], bias: true }),
    multi('added scores and a mask', { added: [1, 2, 3, 5], L: 5, mask: ints([2, 5], [1, 1, 1, 0, 1, 1, 0, 0, 0, 1]) }), multi('present values', { outputs: kv, bias: true }),
    multi('a past', { P: 4, S: 1, outputs: kv }), multi('a past and a bias', { P: 2, S: 3, bias: true, outputs: kv, attrs: { unidirectional: 1 } }),
    multi('a past and a mask', { P: 2, S: 2, mask: ints([2, 4], [1, 1, 0, 1, 1, 0, 1, 1]), outputs: kv }), multi('kept keys', { kept: true, L: 5 }), multi('kept keys and a bias', { kept: true, L: 5, bias: true }),
    packed('all packed', 3), packed('keys and values packed', 2), multi('wider values', { vsize: 6, bias: true }), multi('float16', { type: 'float16', bias: true, outputs: kv, P: 3, S: 1 }),
    multi('float16, plain', { type: 'float16', attrs: { unidirectional: 1 } }), multi('scores too', { L: 4, outputs: [...kv, 'qk'] }),
    multi('scores too, masked', { L: 4, outputs: [...kv, 'qk'], mask: ints([2, 4], [1, 1, 0, 1, 1, 0, 1, 1]) }),
    multi('lengths before sums', { L: 5, mask: ints([8], [5, 2, 0, 3, 6, 0, 5, 10]) }),
    multi('unidirectional, more keys', { L: 6, S: 4, attrs: { unidirectional: 1 } }), multi('unidirectional, fewer keys', { L: 3, S: 5, attrs: { unidirectional: 1 }, bias: true }),
    multi('unidirectional, one query', { L: 4, S: 1, attrs: { unidirectional: 1 }, mask: ints([2], [3, 4]) }), multi('unidirectional, a past and more keys', { P: 2, L: 5, S: 3, attrs: { unidirectional: 1 }, outputs: kv }),
  ],
  Attention: [
    attention('plain'), noBias, attention('unidirectional', { attrs: { unidirectional: 1 }, S: 5 }), attention('a scale', { attrs: { scale: real(0.2) } }),
    attention('a mask by key', { mask: ints([2, 3], [1, 1, 0, 1, 0, 1]) }), attention('lengths', { mask: ints([2], [2, 3]) }), attention('ends and firsts', { mask: ints([4], [3, 2, 1, 0]) }),
    attention('a mask by query and key', { mask: ints([2, 3, 3], [1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0]) }), manyPlaces('a mask of more places', 3, 0), manyPlaces('a mask of more places and a past', 2, 3), attention('a filter value', { mask: ints([2, 3], [1, 1, 0, 1, 0, 1]), attrs: { mask_filter_value: real(-0.5) } }),
    attention('a past', { P: 4, S: 2, outputs: ['y', 'present'], attrs: { unidirectional: 1 } }), attention('a past and a mask', { P: 2, S: 1, outputs: ['y', 'present'], mask: ints([2, 3], [1, 1, 1, 0, 1, 1]) }),
    attention('a present value alone', { outputs: ['y', 'present'] }), attention('added scores', { added: [2, 2, 3, 3] }), attention('added scores, broadcast', { added: [1, 1, 3, 3], mask: ints([2], [2, 3]) }),
    attention('wider values', { sizes: [8, 8, 12], attrs: { qkv_hidden_sizes: [8, 8, 12] } }), attention('float16', { type: 'float16' }),
    attention('lengths before sums', { mask: ints([8], [2, 3, 0, 3, 6, 0, 3, 6]) }),
  ],
  QAttention: [
    quantised('plain'), quantised('no zero points', { zeros: false, wtype: 'int8' }), quantised('unidirectional', { attrs: { unidirectional: 1 }, wtype: 'int8' }),
    quantised('scales by column', { perColumn: true }), quantised('lengths', { mask: ints([2], [2, 3]) }), quantised('a past', { P: 2, outputs: ['y', 'present'], attrs: { unidirectional: 1 } }),
  ],
};
