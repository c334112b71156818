import { floats, integers, tensor, uniform, real, constant } from './tensors.mjs';

const size = 16; // ONNX Runtime takes multiples of 16
const ints = (dims, numbers) => tensor('int32', dims, numbers);

// A cache [B, kv, P, size] with `taken` rows of each batch element; what is behind them means nothing, and is 0 here.
function cache(dims, taken, type) {
  const t = floats(dims, type), [B, kv, P] = dims;
  for (let b = 0; b < B; b++)
    for (let h = 0; h < kv; h++)
      t.data.fill(0, ((b * kv + h) * P + taken[b]) * size, (b * kv + h + 1) * P * size);
  return t;
}

// GroupQueryAttention: batch B, new tokens S, a cache of P places, of which `lengths` minus S are taken.
const grouped = (what, { B = 1, S = 3, P = 0, heads = 4, kv = 2, lengths = Array(B).fill(P + S), total = Math.max(...lengths), type = 'float32', attrs = {}, rotary = false, columns = 8,
  positions = false, packed = false, bias = null, sink = false } = {}) => () => ({
  what, attrs: { num_heads: heads, kv_num_heads: kv, ...(rotary ? { do_rotary: 1 } : {}), ...attrs }, outputs: ['y', 'key', 'value', ...(attrs.qk_output ? ['scores'] : [])],
  inputs: [floats([B, S, (packed ? heads + 2 * kv : heads) * size], type), packed ? null : floats([B, S, kv * size], type), packed ? null : floats([B, S, kv * size], type),
    ...(P ? [1, 2].map(() => cache([B, kv, P, size], lengths.map(n => n - S), type)) : [null, null]), ints([B], lengths.map(n => n - 1)), constant(ints([], [total])),
    rotary ? constant(uniform(type, [16, columns], -1, 1)) : null, rotary ? constant(uniform(type, [16, columns], -1, 1)) : null,
    positions ? tensor('int64', [B, S], lengths.flatMap(n => Array.from({ length: S }, (_, i) => n - S + i))) : null, bias && floats(bias, type), sink ? constant(floats([heads], type)) : null],
});

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
  ],
};
