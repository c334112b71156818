import { floats, tensor, uniform, real, reals, texts, constant } from './tensors.mjs';

const heads = 2, size = 4, hidden = heads * size;
const ints = (dims, numbers) => tensor('int32', dims, numbers);
const all = ['y', 'present_key', 'present_value'];

// Self attention after P keys in buffers of M places.
const own = (what, { B = 2, P = 3, M = 6, mask = null, added = null, bias = false, attrs = {}, qk = false, known = false, beams = null, indirection = null } = {}) => () => ({
  what, attrs: { num_heads: heads, past_present_share_buffer: 1, ...(qk ? { output_qk: 1 } : {}), ...attrs }, outputs: qk ? [...all, 'qk'] : all, types: { qk: 'float32' },
  inputs: [floats([B, 1, hidden]), floats([B, 1, hidden]), floats([B, 1, hidden]), mask, added && floats(added), floats([B, heads, M, size]), floats([B, heads, M, size]), known ? constant(ints([1], [P])) : ints([1], [P]), beams && ints([1], [beams]),
    indirection && ints([B / (beams ?? 1), beams ?? 1, M], indirection), bias ? constant(floats([3 * hidden])) : null],
});
// ONNX Runtime's CPU writes the new keys of beams elsewhere, and its result for query, key and value in one operand has the wrong size.
const beams = make => () => { const c = make(); return { ...c, outputs: ['y'], instead: { outputs: all } }; };
const packed = make => () => {
  const c = make(), [q, k, v] = c.inputs, B = q.dims[0], joined = new Float32Array(3 * B * hidden);
  for (let b = 0; b < B; b++)
    [q, k, v].forEach((t, i) => joined.set(t.data.subarray(b * hidden, (b + 1) * hidden), (3 * b + i) * hidden));
  return { ...c, inputs: [tensor('float32', [B, 1, 3 * hidden], joined), null, null, ...c.inputs.slice(3)], instead: { inputs: c.inputs } };
};
// Past keys that are not a buffer are treated as one that has a place left.
const grown = make => () => {
  const c = make(), larger = t => {
    const [B, N, P, S] = t.dims, wide = new Float32Array(B * N * (P + 1) * S);
    for (let i = 0; i < B * N; i++)
      wide.set(t.data.subarray(i * P * S, (i + 1) * P * S), i * (P + 1) * S);
    return tensor('float32', [B, N, P + 1, S], wide);
  };
  const inputs = c.inputs.map((t, i) => (i === 5 || i === 6 ? larger(t) : t));
  return { ...c, attrs: { ...c.attrs, past_present_share_buffer: 0 }, inputs: c.inputs.map((t, i) => (i === 7 ? null : t)), instead: { inputs, attrs: c.attrs } };
};
const across = (what, { B = 2, L = 3, mask = null, bias = false, attrs = {}, qk = false } = {}) => () => ({
  what, attrs: { num_heads: heads, ...(qk ? { output_qk: 1 } : {}), ...attrs }, outputs: qk ? ['y', null, null, 'qk'] : ['y'], types: { qk: 'float32' },
  inputs: [floats([B, 1, hidden]), floats([B, heads, L, size]), floats([B, heads, L, size]), mask, null, null, null, null, null, null, bias ? constant(floats([3 * hidden])) : null],
});

const H = 3;
// B batch elements of `steps` steps, a memory of `rows` rows of `depth` elements, scored in `scores` dims; `found` is the width of the attention layer, if any.
const attnLstm = (what, { direction = 'forward', B = 2, steps = 4, inputs = 2, rows = 5, depth = 3, scores = 4, found = 0, bias = false, lengths = null, memory = null, h = false, c = false, peep = false,
  attrs = {}, outputs = ['y', 'y_h', 'y_c'] } = {}) => () => {
  const D = direction === 'bidirectional' ? 2 : 1, w = dims => constant(uniform('float32', dims, -0.7, 0.7));
  return { what, outputs, attrs: { hidden_size: H, direction, ...attrs }, inputs: [
    floats([steps, B, inputs]), w([D, 4 * H, inputs + (found || depth)]), w([D, 4 * H, H]), bias ? w([D, 8 * H]) : null, lengths && tensor('int32', [B], lengths),
    h ? floats([D, B, H]) : null, c ? floats([D, B, H]) : null, peep ? w([D, 3 * H]) : null, w([D, H, scores]), w([D, depth, scores]), w([D, scores]), floats([B, rows, depth]),
    memory && tensor('int32', [B], memory), ...(found ? [w([D, depth + H, found])] : [])] };
};
// ONNX Runtime reads Y where it is not asked for, too.
const withoutY = make => () => { const c = make(); return { ...c, outputs: [null, ...c.outputs.slice(1)], instead: { outputs: c.outputs } }; };

export const cases = {
  AttnLSTM: [
    attnLstm('plain'), attnLstm('an attention layer', { found: 5 }), attnLstm('reverse, a bias', { direction: 'reverse', bias: true, found: 2 }), attnLstm('both directions', { direction: 'bidirectional', bias: true, h: true, c: true, peep: true, found: 4 }),
    attnLstm('both directions, no layer', { direction: 'bidirectional' }), attnLstm('lengths', { lengths: [2, 4], memory: [5, 1], bias: true }), attnLstm('lengths in reverse', { direction: 'reverse', lengths: [3, 2], memory: [2, 4], found: 3, steps: 5 }),
    attnLstm('lengths in both directions', { direction: 'bidirectional', lengths: [1, 4, 3], B: 3, h: true }), attnLstm('initial states', { h: true, c: true, B: 1 }), attnLstm('peepholes', { peep: true, bias: true }), attnLstm('a clip', { bias: true, attrs: { clip: real(0.3) } }),
    attnLstm('coupled gates', { attrs: { input_forget: 1 }, peep: true }), attnLstm('activations', { attrs: { activations: texts(['HardSigmoid', 'Relu', 'Softsign']), activation_alpha: reals([0.3]), activation_beta: reals([0.4]) } }),
    attnLstm('one of everything', { B: 1, steps: 1, inputs: 1, rows: 1, depth: 1, scores: 1 }), withoutY(attnLstm('states alone', { found: 2, lengths: [4, 3] })), attnLstm('the sequence alone', { outputs: ['y'] }),
  ],
  DecoderMaskedMultiHeadAttention: [
    own('plain'), own('one past', { P: 1 }), own('the last place', { P: 5 }), own('a mask', { mask: ints([2, 4], [0, 1, 1, 1, 1, 0, 0, 1]) }), own('another filter', { mask: ints([2, 4], [0, 1, 1, 1, 1, 0, 0, 1]), attrs: { mask_filter_value: real(-2) } }),
    own('added to the scores', { added: [1, heads, 1, 4] }), own('added by batch element', { added: [2, 1, 1, 4], attrs: { scale: real(0.3) } }), own('a bias', { bias: true }), own('scores', { qk: true, mask: ints([2, 4], [1, 1, 0, 1, 1, 0, 0, 1]), attrs: { mask_filter_value: real(-5) } }), own('one row', { B: 1, P: 2, M: 3 }), own('a known place', { known: true }), own('a known place, scores', { known: true, qk: true, bias: true }),
    own('a single beam', { beams: 1 }), beams(own('beams', { B: 4, beams: 2, indirection: [0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0] })), beams(own('beams at a known place', { B: 2, P: 1, known: true, beams: 2, indirection: [1, 9, 9, 9, 9, 9, 0, 9, 9, 9, 9, 9] })), beams(own('beams, a mask', { B: 3, P: 2, M: 4, beams: 3, indirection: [2, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0], mask: ints([3, 3], [1, 1, 1, 0, 1, 1, 1, 1, 0]) })),
    packed(own('packed', { bias: true })), grown(own('no buffer', { M: 3 })), grown(own('no buffer, a mask', { M: 2, P: 2, mask: ints([2, 3], [1, 1, 1, 0, 1, 1]) })),
    across('across'), across('across, a mask', { mask: ints([2, 3], [1, 0, 1, 1, 1, 0]) }), across('across, a bias', { bias: true, L: 1 }), across('across, scores and a scale', { qk: true, attrs: { scale: real(0.7) }, L: 5 }),
  ],
};
