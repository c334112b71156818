import { floats, integers, tensor, uniform, real, constant } from './tensors.mjs';

const scalar = (type, x) => constant(tensor(type, [], [x]));
const bytes = (type, dims) => (type === 'uint8' ? integers(type, dims, 0, 255) : integers(type, dims, -128, 127));
const middle = type => (type === 'uint8' ? 128 : 3);
const zero = (type, there, offset = 0) => (there ? scalar(type, middle(type) + offset) : null);
const scale = x => scalar('float32', x * (1 + Math.sin(97 * x) / 20)); // ratios of round numbers would put results at ties

// ONNX Runtime does not infer the type of these operators without zero points; zeros are the same.
const zeroed = (c, type, places) => (c.inputs.some(t => !t) ? { ...c, instead: { inputs: c.inputs.map((t, i) => (places.includes(i) ? t ?? scalar(type, 0) : t)) } } : c);

const binary = (what, a, b, { type = 'uint8', zeros = true, fixed = false } = {}) => () => zeroed({
  what, inputs: [bytes(type, a), scale(0.05), zero(type, zeros), fixed ? constant(bytes(type, b)) : bytes(type, b), scale(0.03), zero(type, zeros, -5), scale(0.2), zero(type, zeros, 9)],
}, type, [2, 5, 7]);
const binaries = [
  binary('equal dims', [3, 7], [3, 7]), binary('broadcast', [2, 3, 5], [5]), binary('both broadcast', [2, 1, 5], [3, 1]), binary('int8', [4, 9], [4, 9], { type: 'int8' }),
  binary('no zero points', [3, 5], [3, 5], { zeros: false }), binary('int8, no zero points', [17], [17], { type: 'int8', zeros: false }), binary('a constant', [2, 9], [9], { fixed: true }), binary('a single element', [3, 3], [1]),
];
// Products beside halves; an odd zero point makes other results even.
const ties = (type, out) => () => ({
  what: `${type} at ties, ${out}`, inputs: [bytes(type, [9, 30]), scalar('float32', 0.05), scalar(type, 3), bytes(type, [9, 30]), scalar('float32', 0.1), scalar(type, 0), scalar('float32', 0.32), scalar(type, out)],
});
// Halves exactly: whether they are rounded before or after the zero point is added shows if that is odd.
const halves = (out, scales) => () => ({
  what: `halves, ${out}`, inputs: [integers('uint8', [9, 30], 90, 110), scalar('float32', scales[0]), scalar('uint8', 100), integers('uint8', [9, 30], 90, 110), scalar('float32', scales[1]), scalar('uint8', 99), scalar('float32', scales[2]), scalar('uint8', out)],
});
const unary = (what, dims, { type = 'uint8', zeros = [true, true], attrs = {}, out = 0.01 } = {}) => () => ({
  what, attrs, inputs: [bytes(type, dims), scale(0.05), zero(type, zeros[0]), scale(out), zero(type, zeros[1], -8)],
});
const unaries = out => [
  unary('a matrix', [3, 7], { out }), unary('int8', [2, 3, 5], { type: 'int8', out }), unary('no zero points', [19], { zeros: [false, false], out }), unary('no zero point in', [4, 5], { zeros: [false, true], out }),
  unary('no zero point out', [4, 5], { type: 'int8', zeros: [true, false], out }),
];
const pool = (what, dims, attrs, { type = 'uint8', zeros = true } = {}) => () => zeroed({ what, attrs, inputs: [bytes(type, dims), scale(0.05), zero(type, zeros), scale(0.04), zero(type, zeros, -4)] }, type, [2, 4]);
const concat = (what, axis, dims, type = 'uint8') => () => ({
  what, attrs: { axis }, inputs: [scale(0.1), scalar(type, middle(type)), ...dims.flatMap((d, i) => [bytes(type, d), scale(0.03 * (i + 1)), scalar(type, middle(type) + i)])],
});
const where = (what, c, x, y, type = 'uint8') => () => ({
  what, inputs: [integers('bool', c, 0, 1), bytes(type, x), scale(0.05), scalar(type, middle(type)), bytes(type, y), scale(0.02), scalar(type, 7), scale(0.06), scalar(type, 90)],
});
const gemm = (what, { a = 'uint8', b = 'int8', attrs = {}, column = false, c = null, y = 'uint8', dims = [[3, 9], [9, 5]] } = {}) => () => ({
  what, attrs,
  inputs: [bytes(a, dims[0]), scale(0.02), scalar(a, middle(a)), constant(bytes(b, dims[1])), column ? constant(uniform('float32', [5], 0.005, 0.03)) : scale(0.01),
    column ? constant(integers(b, [5], 0, 20)) : scalar(b, 4), c && constant(integers('int32', c, -900, 900)), y ? scale(0.3) : null, y ? scalar(y, middle(y)) : null],
});
const dynamic = (what, { b = 'uint8', dims = [[3, 9], [9, 5]], column = false, zeros = true, bias = false } = {}) => () => ({
  what, inputs: [floats(dims[0]), constant(bytes(b, dims[1])), column ? constant(uniform('float32', [5], 0.005, 0.03)) : scale(0.01), zeros ? (column ? constant(integers(b, [5], 0, 20)) : scalar(b, 4)) : null,
    bias ? constant(floats([5])) : null],
});
const toFloat = (what, { a = 'uint8', b = 'uint8', dims = [[3, 9], [9, 5]], column = false, zeros = [true, true], bias = false } = {}) => () => ({
  what, inputs: [bytes(a, dims[0]), constant(bytes(b, dims[1])), scale(0.02), column ? constant(uniform('float32', [5], 0.005, 0.03)) : scale(0.01), zeros[0] ? scalar(a, middle(a)) : null,
    zeros[1] ? (column ? constant(integers(b, [5], 0, 20)) : scalar(b, 4)) : null, bias ? constant(floats([5])) : null],
});

const qconv = (what, attrs, { group = 1, type = 'uint8', byChannel = false, bias = false } = {}) => () => {
  const zero = t => constant(tensor(t, [], [t === 'uint8' ? 120 : -3])), x = attrs.channels_last ? [2, 6, 5, 4] : [2, 4, 6, 5];
  return { what, attrs: { kernel_shape: [3, 3], ...attrs }, inputs: [bytes(type, x), scale(0.02), zero(type), constant(integers('int8', [6, 4 / group, 3, 3], -50, 50)), byChannel ? constant(uniform('float32', [6], 0.005, 0.02)) : scale(0.01), byChannel ? constant(tensor('int8', [6], Array(6).fill(0))) : scalar('int8', 0), scale(0.05), zero(type), ...(bias ? [constant(integers('int32', [6], -900, 900))] : [])] };
};
// A code of the state may be a step off.
const lstm = (what, { S = 5, B = 2, I = 3, H = 4, directions = 1, type = 'int8', byGate = false, bias = true, lengths = null, states = false, peepholes = false, large = 2, attrs = {} } = {}) => () => {
  const codes = dims => constant(type === 'int8' ? integers(type, dims, -100, 100) : integers(type, dims, 20, 230)), of = byGate ? [directions, 4 * H] : [directions], zeros = () => constant(tensor(type, of, Array(of.reduce((a, b) => a * b, 1)).fill(type === 'int8' ? 0 : 125)));
  const scales = () => constant(uniform('float32', of, 0.005, 0.01)), state = () => (states ? floats([directions, B, H]) : null);
  return { what, loose: 0.004, attrs: { hidden_size: H, ...attrs }, outputs: ['y', 'h', 'c'], inputs: [uniform('float32', [S, B, I], -large, large), codes([directions, I, 4 * H]), codes([directions, H, 4 * H]), bias ? constant(floats([directions, 8 * H])) : null, lengths && tensor('int32', [B], lengths), state(), state(), peepholes ? constant(floats([directions, 3 * H])) : null, scales(), zeros(), scales(), zeros()] };
};

export const cases = {
  QLinearAdd: [...binaries, halves(77, [0.5, 0.25, 1])], QLinearMul: [...binaries, ties('uint8', 77), ties('int8', -3), ties('uint8', 20), halves(77, [0.5, 0.5, 1])], QLinearSigmoid: unaries(0.004),
  QLinearLeakyRelu: [...unaries(0.06), unary('a slope', [3, 7], { attrs: { alpha: real(0.3) }, out: 0.06 })],
  QLinearSoftmax: [
    unary('the last axis', [3, 7], { attrs: { opset: 13 }, out: 0.004 }), unary('an axis', [2, 5, 3], { attrs: { opset: 13, axis: 1 }, out: 0.004 }), unary('axes joined', [2, 3, 4], { attrs: { opset: 12, axis: 1 }, out: 0.004 }),
    unary('int8', [2, 9], { type: 'int8', attrs: { opset: 13, axis: -1 }, out: 0.004 }), unary('no zero point in', [2, 9], { zeros: [false, true], attrs: { opset: 13 }, out: 0.004 }),
    ...['uint8', 'int8'].flatMap(type => [0.3, 0.0123, 1 / 256].map(out => () => ({ what: `${type}, steps of ${out}`, attrs: { opset: 13 }, inputs: [bytes(type, [4, 5]), scalar('float32', 0.02), scalar(type, 3), scalar('float32', out), scalar(type, type === 'uint8' ? 0 : -128)] }))),
    unary('the usual axis of early opsets', [2, 3, 4], { attrs: { opset: 12 }, out: 0.004 }),
    () => ({ what: 'int8 at its end', attrs: { opset: 12, axis: 1 }, inputs: [tensor('int8', [2, 3], [127, -128, -100, 90, 90, -128]), scalar('float32', 0.2), scalar('int8', 0), scalar('float32', 1 / 256), scalar('int8', 0)] }),
  ],
  QLinearConcat: [
    concat('two', 1, [[2, 3], [2, 4]]), concat('one', 0, [[2, 3]]), concat('three', 0, [[1, 3], [2, 3], [4, 3]]), concat('int8', -1, [[2, 1, 3], [2, 1, 5]], 'int8'), concat('the middle', 1, [[2, 1, 3], [2, 2, 3]]),
  ],
  QLinearAveragePool: [
    pool('plain', [1, 2, 5, 6], { kernel_shape: [2, 3] }), pool('strides and pads', [2, 3, 7, 5], { kernel_shape: [3, 3], strides: [2, 1], pads: [1, 1, 1, 1] }),
    pool('pads counted', [1, 3, 5, 5], { kernel_shape: [3, 3], pads: [1, 0, 1, 2], count_include_pad: 1 }), pool('channels last', [1, 5, 6, 3], { kernel_shape: [2, 2], channels_last: 1 }),
    pool('int8, no zero points', [1, 2, 4, 4], { kernel_shape: [2, 2] }, { type: 'int8', zeros: false }), pool('ceiling', [1, 1, 5, 5], { kernel_shape: [2, 2], strides: [2, 2], ceil_mode: 1 }),
    pool('ceiling, pads counted', [1, 2, 5, 6], { kernel_shape: [3, 3], strides: [3, 2], pads: [1, 0, 1, 1], ceil_mode: 1, count_include_pad: 1 }),
    pool('padded alike', [1, 1, 5, 6], { kernel_shape: [2, 3], auto_pad: 'SAME_UPPER' }), pool('one axis', [2, 3, 9], { kernel_shape: [3] }),
    () => ({ what: 'halves', attrs: { kernel_shape: [2, 2] }, inputs: [bytes('uint8', [1, 2, 8, 9]), scalar('float32', 0.5), scalar('uint8', 128), scalar('float32', 1), scalar('uint8', 127)] }),
  ],
  QLinearGlobalAveragePool: [
    pool('plain', [1, 3, 5, 6], {}), pool('int8', [2, 3, 4, 4], {}, { type: 'int8' }), pool('channels last', [2, 5, 6, 3], { channels_last: 1 }), pool('one axis', [2, 3, 7], {}), pool('channels first stated', [1, 2, 3, 3], { channels_last: 0 }),
  ],
  QLinearConv: [
    qconv('plain', {}), qconv('channels last', { channels_last: 1 }), qconv('channels last, strides and pads', { channels_last: 1, strides: [2, 1], pads: [1, 1, 0, 2] }, { bias: true }), qconv('int8 by channel', { channels_last: 1 }, { byChannel: true, type: 'int8', bias: true }), qconv('groups', { channels_last: 1, group: 2 }, { group: 2 }),
  ],
  DynamicQuantizeLSTM: [
    lstm('plain'), lstm('backwards', { attrs: { direction: 'reverse' } }), lstm('both ways, states', { directions: 2, states: true, attrs: { direction: 'bidirectional' } }), lstm('uint8', { type: 'uint8' }), lstm('scales by gate', { byGate: true }), lstm('lengths, no bias', { lengths: [3, 5], bias: false }), lstm('peepholes and a clip', { peepholes: true, attrs: { clip: real(0.5) } }),
    lstm('coarse operands', { S: 7, I: 8, B: 3, large: 40 }), lstm('coarse operands both ways, lengths', { S: 6, B: 3, large: 40, directions: 2, lengths: [2, 4, 1], attrs: { direction: 'bidirectional' } }),
  ],
  QLinearWhere: [
    where('equal dims', [3, 5], [3, 5], [3, 5]), where('a scalar condition', [1], [3, 5], [3, 5]), where('broadcast', [3, 1], [5], [3, 5]), where('int8', [2, 4], [2, 4], [1, 4], 'int8'), where('a scalar', [2, 3], [2, 3], []),
  ],
  QGemm: [
    gemm('plain'), gemm('a factor', { attrs: { alpha: real(0.5) } }), gemm('transposed', { attrs: { transA: 1, transB: 1 }, dims: [[9, 3], [5, 9]] }), gemm('a sum', { c: [5] }), gemm('scales by column', { column: true, c: [5] }),
    gemm('real numbers', { y: null }), gemm('real numbers by column', { y: null, column: true, b: 'uint8' }), gemm('int8', { a: 'int8', y: 'int8' }), gemm('a whole sum', { c: [3, 5], b: 'uint8' }),
    () => ({ what: 'at ties', attrs: { alpha: real(0.7) }, inputs: [bytes('uint8', [30, 1]), scalar('float32', 0.1), scalar('uint8', 100), constant(bytes('int8', [1, 20])), scalar('float32', 0.1), scalar('int8', 0), null, scalar('float32', 0.7), scalar('uint8', 128)] }),
    // 0.1 · 0.5 / 0.3 is just below a sixth; times one over 0.3 it is above. A twelfth of the results would be others.
    () => ({ what: 'sixths', inputs: [integers('uint8', [8, 4], 92, 108), scalar('float32', 0.1), scalar('uint8', 100), constant(integers('int8', [4, 8], -8, 8)), scalar('float32', 0.5), scalar('int8', 0), null, scalar('float32', 0.3), scalar('uint8', 128)] }),
  ],
  DynamicQuantizeMatMul: [
    dynamic('plain'), dynamic('a bias', { bias: true }), dynamic('by column', { column: true }), dynamic('int8, no zero point', { b: 'int8', zeros: false, bias: true }), dynamic('batches', { dims: [[2, 3, 9], [9, 5]] }), dynamic('int8 by column', { b: 'int8', column: true, bias: true }),
  ],
  MatMulIntegerToFloat: [
    toFloat('plain'), toFloat('a bias', { bias: true }), toFloat('by column', { column: true, b: 'int8' }), toFloat('no zero points', { zeros: [false, false], a: 'int8', b: 'int8' }), toFloat('one zero point', { zeros: [true, false] }),
    toFloat('batches', { dims: [[2, 3, 9], [2, 9, 5]] }),
  ],
  QuantizeLinear: [
    () => ({ what: 'plain', inputs: [floats([3, 7]), scale(0.02), scalar('uint8', 120)] }), () => ({ what: 'int8', inputs: [floats([3, 7]), scale(0.02), scalar('int8', -3)] }),
    () => ({ what: 'by axis', attrs: { axis: 1 }, inputs: [floats([2, 3, 4]), constant(uniform('float32', [3], 0.01, 0.1)), constant(integers('uint8', [3], 50, 150))] }),
    () => ({ what: 'uint16', inputs: [floats([9]), scale(0.0001), scalar('uint16', 32768)] }), () => ({ what: 'int16', inputs: [floats([9]), scale(0.0001), scalar('int16', 5)] }),
    () => ({ what: 'no zero point', inputs: [uniform('float32', [4, 5], 0, 3), scale(0.02)] }),
    ...['int16', 'uint16'].map(type => () => ({ what: `float16 to ${type}`, inputs: [uniform('float16', [5, 20], -8, 8), constant(uniform('float16', [], 0.002, 0.004)), scalar(type, 10000)] })),
  ],
  DequantizeLinear: [
    () => ({ what: 'plain', inputs: [bytes('uint8', [3, 7]), scale(0.02), scalar('uint8', 120)] }), () => ({ what: 'int8', inputs: [bytes('int8', [3, 7]), scale(0.02), scalar('int8', -3)] }),
    () => ({ what: 'by axis', attrs: { axis: 1 }, inputs: [bytes('uint8', [2, 3, 4]), constant(uniform('float32', [3], 0.01, 0.1)), constant(integers('uint8', [3], 50, 150))] }),
    () => ({ what: 'uint16', inputs: [integers('uint16', [9], 0, 65535), scale(0.0001), scalar('uint16', 32768)] }), () => ({ what: 'int32', inputs: [integers('int32', [9], -5000, 5000), scale(0.01)] }),
    () => ({ what: 'no zero point', inputs: [bytes('int8', [4, 5]), scale(0.02)] }),
  ],
  NhwcMaxPool: [
    ['plain', [1, 5, 6, 3], { kernel_shape: [2, 2] }], ['strides and pads', [2, 7, 5, 4], { kernel_shape: [3, 3], strides: [2, 1], pads: [1, 1, 1, 1] }], ['dilations', [1, 7, 7, 2], { kernel_shape: [2, 2], dilations: [2, 3] }],
    ['ceiling', [1, 5, 5, 1], { kernel_shape: [2, 2], strides: [2, 2], ceil_mode: 1 }], ['padded alike', [1, 5, 6, 3], { kernel_shape: [2, 3], auto_pad: 'SAME_LOWER' }],
  ].map(([what, dims, attrs], i) => () => ({ what, attrs, inputs: [bytes(i % 2 ? 'int8' : 'uint8', dims)] })),
};
