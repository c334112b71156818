import { floats, real, tensor } from './tensors.mjs';

const engramGate = (what, dims, { type = 'float32', attrs = {}, key = floats } = {}) => () => ({
  what, attrs, inputs: [key(dims, type), floats(dims, type), floats([dims[0], dims[1], dims[3]], type), floats(dims.slice(2), type), floats(dims.slice(2), type)],
});
const gatedAdd = (what, dims, type = 'float32') => () => ({ what, inputs: [floats(dims, type), floats(dims, type), floats([...dims.slice(0, -1), 1], type)] });
const gatedNorm = (what, dims, size, { type = 'float32', attrs = {} } = {}) => () => ({ what, attrs, inputs: [floats(dims, type), floats([size], type), floats(dims, type)] });
const linearGate = (what, dims, { type = 'float32', beta = true } = {}) => () => ({
  what, outputs: beta ? ['decay', 'beta'] : ['decay'], inputs: [floats(dims, type), floats([dims.at(-1)]), floats([dims.at(-1)]), ...(beta ? [floats(dims, type)] : [])],
});

export const cases = {
  EngramGate: [
    engramGate('branches', [2, 3, 4, 5]), engramGate('one branch', [1, 4, 1, 7]), engramGate('an epsilon', [2, 2, 3, 6], { attrs: { epsilon: real(0.5) } }), engramGate('keys of zeros', [1, 2, 2, 3], { key: (dims, type) => tensor(type, dims, Array(dims.reduce((a, b) => a * b)).fill(0)) }),
    engramGate('one of everything', [1, 1, 1, 1]), engramGate('float16', [2, 3, 2, 8], { type: 'float16' }), engramGate('long rows', [1, 2, 2, 129]),
  ],
  GatedAdd: [gatedAdd('rows', [2, 3, 5]), gatedAdd('a matrix', [4, 7]), gatedAdd('one row', [6]), gatedAdd('rows of one', [2, 3, 1]), gatedAdd('float16', [2, 9], 'float16')],
  GatedRMSNorm: [
    gatedNorm('whole rows', [2, 3, 6], 6), gatedNorm('parts of rows', [2, 3, 12], 4), gatedNorm('an epsilon', [3, 5], 5, { attrs: { epsilon: real(0.5) } }), gatedNorm('one row', [8], 2), gatedNorm('parts of one', [2, 4], 1), gatedNorm('float16', [3, 8], 8, { type: 'float16' }),
  ],
  LinearAttentionGate: [linearGate('decay and beta', [2, 3, 4]), linearGate('decay alone', [2, 3, 4], { beta: false }), linearGate('one head', [5, 1]), linearGate('a vector', [7]), linearGate('float16', [2, 2, 6], { type: 'float16' })],
};
