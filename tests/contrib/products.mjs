import { tensor, floats, integers, real, reals, constant } from './tensors.mjs';

const product = (what, a, b, attrs = {}, type = 'float32') => () => ({ what, attrs, inputs: [floats(a, type), constant(floats(b, type))] });
const gemm = (what, attrs, c = null, a = [3, 4], b = [4, 5]) => () => ({ what, attrs, inputs: [floats(a), constant(floats(b)), c && floats(c)].filter(x => x) });
const conv = (what, attrs, { x = [2, 4, 7, 6], w = [6, 4, 3, 3], bias = true, sum = false, y = [2, 6, 5, 4] } = {}) => () => ({
  what, attrs, inputs: [floats(x), constant(floats(w)), bias ? constant(floats([w[0]])) : null, sum ? floats(y) : null],
});

const transposed = (what, attrs, { x = [1, 2, 3, 4], w = [2, 3, 3, 3], pads = [0, 0, 0, 0], bias = true } = {}) => () => ({ what, attrs, inputs: [floats(x), constant(floats(w)), pads && constant(tensor('int64', [pads.length], pads)), ...(bias ? [constant(floats([w[1]]))] : [])] });

export const cases = {
  ConvTransposeWithDynamicPads: [
    transposed('plain', { kernel_shape: [3, 3] }), transposed('pads', { kernel_shape: [3, 3] }, { pads: [1, 0, 1, 2] }), transposed('strides, no bias', { kernel_shape: [3, 3], strides: [2, 2] }, { pads: [1, 1, 1, 1], bias: false }),
    transposed('output padding', { kernel_shape: [3, 3], strides: [2, 3], output_padding: [1, 0] }), transposed('groups', { kernel_shape: [2, 2], group: 2 }, { x: [2, 4, 3, 3], w: [4, 1, 2, 2], bias: false }),
  ],
  FusedMatMul: [
    product('plain', [3, 4], [4, 5]), product('a factor', [3, 4], [4, 5], { alpha: real(0.5) }), product('left transposed', [4, 3], [4, 5], { transA: 1 }),
    product('right transposed', [3, 4], [5, 4], { transB: 1, alpha: real(-2) }), product('both transposed', [2, 4, 3], [2, 5, 4], { transA: 1, transB: 1 }),
    product('batches broadcast', [2, 1, 3, 4], [3, 4, 5]), product('left batch behind', [3, 2, 4], [2, 4, 5], { transBatchA: 1 }),
    product('right batch behind', [2, 3, 4], [4, 2, 5], { transBatchB: 1 }), product('left behind and transposed', [4, 2, 3], [2, 4, 5], { transBatchA: 1, transA: 1 }),
    product('both behind', [3, 2, 2, 4], [5, 2, 2, 4], { transBatchA: 1, transBatchB: 1, transB: 1 }), product('a vector', [4], [4, 5], { alpha: real(3) }),
    product('float16', [3, 8], [8, 5], { alpha: real(0.25) }, 'float16'),
  ],
  FusedGemm: [
    gemm('Relu', { activation: 'Relu' }, [5]), gemm('LeakyRelu', { activation: 'LeakyRelu', activation_alpha: real(0.3) }),
    gemm('HardSigmoid', { activation: 'HardSigmoid', activation_alpha: real(0.1), activation_beta: real(0.4) }, [3, 5]),
    gemm('transposed and scaled', { activation: 'Tanh', transA: 1, transB: 1, alpha: real(0.5), beta: real(2) }, [3, 1], [4, 3], [5, 4]),
    gemm('Sigmoid', { activation: 'Sigmoid' }, []), gemm('Elu', { activation: 'Elu', activation_alpha: real(0.7) }),
    gemm('Selu', { activation: 'Selu', activation_alpha: real(1.2), activation_gamma: real(0.9) }, [1, 5]), gemm('Softsign', { activation: 'Softsign' }, [5]),
  ],
  FusedConv: [
    conv('Relu', { activation: 'Relu', kernel_shape: [3, 3] }), conv('no activation, no bias', {}, { bias: false }),
    conv('LeakyRelu', { activation: 'LeakyRelu', activation_params: reals([0.2]) }), conv('Clip', { activation: 'Clip', activation_params: reals([-0.5, 1.5]) }),
    conv('HardSigmoid', { activation: 'HardSigmoid', activation_params: reals([0.1, 0.6]) }), conv('a sum', { activation: 'Relu' }, { sum: true }),
    conv('a sum without activation', {}, { sum: true, bias: false }),
    conv('pads, strides, groups', { activation: 'Tanh', group: 2, pads: [1, 0, 1, 2], strides: [2, 1] }, { w: [6, 2, 3, 3] }),
    conv('padded alike', { activation: 'Sigmoid', auto_pad: 'SAME_UPPER' }),
  ],
};
