// Of ai.onnx up to opset 9.
import { floats, integers, tensor, real, reals, constant } from './tensors.mjs';

const old = (what, attrs, inputs) => () => ({ domain: '', version: 9, what, attrs, inputs: inputs() });
const unary = (what, attrs = {}, dims = [2, 3, 5]) => old(what, attrs, () => [floats(dims)]);
const image = (what, attrs, dims = [2, 3, 5, 7]) => unary(what, attrs, dims);
const bounds = (type, x) => constant(tensor(type, [x.length], x));
const slice = (what, starts, ends, axes, { x = () => floats([3, 4, 5]), type = 'int64' } = {}) => old(what, {}, () => [x(), bounds(type, starts), bounds(type, ends), ...(axes ? [bounds(type, axes)] : [])]);

export const cases = {
  Affine: [unary('as it is'), unary('both', { alpha: real(1.5), beta: real(-0.25) }), unary('alpha', { alpha: real(-2) }, [7]), unary('beta', { beta: real(3) }, [1, 9]), unary('one element', { alpha: real(0.5), beta: real(1) }, [1]), unary('no elements', { alpha: real(2) }, [0, 3])],
  Crop: [
    image('borders', { border: [1, 2, 3, 1] }), image('no borders', { border: [0, 0, 0, 0] }), image('left and top', { border: [2, 1, 0, 0] }), image('a size', { border: [1, 2, 0, 0], scale: [2, 4] }), image('a size beside borders', { border: [1, 1, 2, 2], scale: [4, 6] }), image('nothing left', { border: [3, 0, 4, 0] }),
  ],
  DynamicSlice: [
    slice('axes', [1, 0], [3, 2], [0, 2]), slice('all axes', [0, 1, 2], [2, 3, 5]), slice('the first axes', [1, 2], [3, 4]), slice('from the end', [-2], [1000], [2]), slice('axes from the end', [1], [-1], [-1], { type: 'int32' }), slice('int32', [0, 1], [2, 4], [1, 0], { type: 'int32' }), slice('integers', [1], [2], [0], { x: () => integers('int64', [3, 2], -9, 9) }), slice('nothing', [2], [1], [1]),
  ],
  ImageScaler: [image('both', { scale: real(0.5), bias: reals([1, -2, 0.25]) }), image('bias', { bias: reals([1, 2, 3]) }), image('one channel', { scale: real(-3), bias: reals([0.125]) }, [4, 1, 2, 3]), image('one element a channel', { scale: real(2), bias: reals([1, 0]) }, [1, 2, 1, 1]), image('no images', { scale: real(2), bias: reals([1, 0]) }, [0, 2, 3, 3])],
  ParametricSoftplus: [['usual', 1, 1], ['both', 1.5, 0.5], ['negative', -2, -1], ['steep', 1, 40], ['flat', 3, 0]].map(([what, alpha, beta]) => unary(what, { alpha: real(alpha), beta: real(beta) })),
  Scale: [unary('as it is'), unary('more', { scale: real(2.5) }), unary('negative', { scale: real(-1) }, [11]), unary('nothing', { scale: real(0) }, [2, 2]), unary('one element', { scale: real(0.1) }, [1])],
  ScaledTanh: [['usual', 1, 1], ['both', 1.7159, 0.6667], ['negative', -2, -1], ['steep', 1, 40], ['flat', 3, 0]].map(([what, alpha, beta]) => unary(what, { alpha: real(alpha), beta: real(beta) })),
  ThresholdedRelu: [unary('usual'), unary('alpha', { alpha: real(0.5) }), unary('negative', { alpha: real(-1) }), unary('one axis', { alpha: real(0) }, [13]), old('at the threshold', { alpha: real(1) }, () => [tensor('float32', [3], [0.5, 1, 1.5])])],
};
