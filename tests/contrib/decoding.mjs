import { floats, tensor, uniform, real, reals, texts, constant } from './tensors.mjs';

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
};
