import { floats, integers, tensor, uniform, real, reals, texts } from '../contrib/tensors.mjs';

const longs = (dims, numbers) => tensor('int64', dims, numbers);
const unary = (what, x, attrs = {}) => () => ({ what, attrs, inputs: [x()] });
const holes = (dims, hole) => { const t = floats(dims); for (let i = 0; i < t.data.length; i += 3) t.data[i] = hole; return t; };
const whole = (type, dims) => () => integers(type, dims, -3, 3);
const norm = (what, x, kind) => unary(what, x, kind ? { norm: kind } : {});
const zeroRow = () => tensor('float32', [3, 2], [0, 0, 3, -4, -1, -2]);
const joined = (what, inputs, sizes) => () => ({ what, attrs: { inputdimensions: sizes }, inputs: inputs.map(make => make()) });

export const cases = {
  ArrayFeatureExtractor: [
    () => ({ what: 'columns', inputs: [floats([3, 5]), longs([2], [4, 0])] }), () => ({ what: 'one column twice', inputs: [floats([2, 3, 4]), longs([1, 3], [1, 1, 2])] }),
    () => ({ what: 'a vector', inputs: [floats([6]), longs([2], [5, 2])] }), () => ({ what: 'int64', inputs: [integers('int64', [4, 3], -9, 9), longs([1], [2])] }),
    () => ({ what: 'float64', inputs: [tensor('float64', [2, 2], [1, 2, 3, 4]), longs([1], [0])] }), () => ({ what: 'int32', inputs: [integers('int32', [2, 5], -9, 9), longs([2], [3, 3])] }),
    () => ({ what: 'strings', inputs: [tensor('string', [2, 3], ['a', 'b', 'c', 'd', 'e', 'f']), longs([2], [2, 0])] }),
  ],
  Binarizer: [
    unary('a threshold', () => floats([3, 4]), { threshold: real(0.5) }), unary('none', () => floats([2, 3, 2])), unary('a vector', () => floats([7]), { threshold: real(-1) }),
    unary('equal to it', () => tensor('float32', [3], [0.25, 0.5, 0.75]), { threshold: real(0.5) }),
  ],
  FeatureVectorizer: [
    joined('two', [() => floats([3, 2]), () => floats([3, 4])], [2, 4]), joined('vectors', [() => floats([2]), () => floats([3])], [2, 3]), joined('one', [() => floats([2, 3])], [3]),
    joined('int64', [whole('int64', [2, 3]), whole('int64', [2, 1])], [3, 1]), joined('float64', [() => tensor('float64', [1, 2], [1, 2]), () => tensor('float64', [1, 1], [3])], [2, 1]),
    joined('int32, three', [whole('int32', [2, 1]), whole('int32', [2, 2]), whole('int32', [2, 1])], [1, 2, 1]),
    joined('more axes', [() => tensor('float32', [2, 2, 2], [0, 1, 2, 3, 4, 5, 6, 7]), () => tensor('float32', [2, 1], [1, 1])], [4, 1]),
  ],
  Imputer: [
    unary('a value', () => holes([3, 4], -1), { imputed_value_floats: reals([7]), replaced_value_float: real(-1) }), unary('a value each', () => holes([3, 4], 0), { imputed_value_floats: reals([1, 2, 3, 4]) }),
    unary('NaN', () => holes([3, 4], NaN), { imputed_value_floats: reals([1, 2, 3, 4]), replaced_value_float: real(NaN) }), unary('int64', whole('int64', [4, 2]), { imputed_value_int64s: [10, 20], replaced_value_int64: 2 }),
    unary('a vector', () => holes([6], 5), { imputed_value_floats: reals([9]), replaced_value_float: real(5) }), unary('int64, zero', whole('int64', [3, 3]), { imputed_value_int64s: [-7] }),
  ],
  Normalizer: [
    norm('largest', () => uniform('float32', [3, 4], 0.1, 2)), norm('largest of signs', () => floats([3, 4]), 'MAX'), norm('L1', () => floats([3, 4]), 'L1'), norm('L2', () => floats([3, 4]), 'L2'),
    norm('L1, a zero row', zeroRow, 'L1'), norm('L2, a zero row', zeroRow, 'L2'), norm('largest, a zero row', zeroRow, 'MAX'), norm('L2, a vector', () => floats([5]), 'L2'), norm('L1, int64', whole('int64', [3, 4]), 'L1'),
    norm('largest, float64', () => tensor('float64', [2, 2], [1, 2, 3, 4]), 'MAX'), norm('L2, int32', whole('int32', [3, 2]), 'L2'),
  ],
  OneHotEncoder: [
    unary('int64', whole('int64', [4]), { cats_int64s: [-1, 0, 2, 3] }), unary('a matrix of floats', () => uniform('float32', [2, 3], -2.9, 2.9), { cats_int64s: [0, 1, 2, -1] }), unary('all there', () => integers('int64', [5], 0, 2), { cats_int64s: [0, 1, 2], zeros: 0 }),
    unary('strings', () => tensor('string', [2, 2], ['a', 'b', 'c', 'z']), { cats_strings: texts(['c', 'b', 'a']) }), unary('float64', () => tensor('float64', [3], [1, 2, 9]), { cats_int64s: [1, 2] }),
    unary('a category twice', () => integers('int64', [4], 0, 2), { cats_int64s: [0, 1, 1] }),
  ],
  Scaler: [
    unary('by feature', () => floats([3, 2]), { offset: reals([0.5, -1]), scale: reals([2, 3]) }), unary('one for all', () => floats([2, 3]), { offset: reals([0.25]), scale: reals([4]) }), unary('int64', whole('int64', [3, 2]), { offset: reals([1, 2]), scale: reals([0.5, 0.1]) }),
    unary('float64', () => tensor('float64', [2, 2], [1, 2, 3, 4]), { offset: reals([1, 2]), scale: reals([0.5, 3]) }), unary('a vector', () => floats([4]), { offset: reals([1, 2, 3, 4]), scale: reals([1, 2, 3, 4]) }), unary('int32', whole('int32', [2, 2]), { offset: reals([1]), scale: reals([3]) }),
  ],
};
