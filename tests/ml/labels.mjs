import { floats, integers, tensor, real, reals, texts, tensorValue } from '../contrib/tensors.mjs';

const strings = (dims, x) => tensor('string', dims, x);
const mapped = (what, x, attrs, version = 4) => () => ({ what, version, attrs, inputs: [x] });
const letters = strings([2, 3], ['a', 'c', 'b', 'z', '', 'a']);
const whole = tensor('int64', [5], [1, 2, 3, 9, -1]);
const numbers = tensor('float32', [5], [1.5, NaN, 0, -0, 7]);
const wide = tensor('float64', [4], [1.5, 2.5, NaN, 4]);

export const cases = {
  CategoryMapper: [
    mapped('to integers', letters, { cats_strings: texts(['a', 'b', 'c']), cats_int64s: [10, 20, 30], default_int64: -5 }, 1), mapped('to strings', whole, { cats_strings: texts(['a', 'b', 'c']), cats_int64s: [1, 2, 3], default_string: 'none' }, 1),
    mapped('usual integer', letters, { cats_strings: texts(['a']), cats_int64s: [4] }, 1), mapped('usual string', whole, { cats_strings: texts(['a']), cats_int64s: [3] }, 1), mapped('a matrix', tensor('int64', [2, 2], [1, 2, 3, 4]), { cats_strings: texts(['x', 'y']), cats_int64s: [4, 1] }, 1),
  ],
  LabelEncoder: [
    mapped('strings to integers', letters, { keys_strings: texts(['a', 'b', 'c']), values_int64s: [5, 6, 7], default_int64: 42 }), mapped('no default', letters, { keys_strings: texts(['a', 'b', 'c']), values_int64s: [5, 6, 7] }),
    mapped('integers to strings', whole, { keys_int64s: [1, 2, 3], values_strings: texts(['x', 'y', 'z']), default_string: 'w' }), mapped('usual string', whole, { keys_int64s: [1, 2], values_strings: texts(['x', 'y']) }),
    mapped('floats to strings', numbers, { keys_floats: reals([1.5, NaN, 0]), values_strings: texts(['a', 'b', 'c']) }), mapped('strings to floats', letters, { keys_strings: texts(['a', 'b', 'c']), values_floats: reals([1, 2, 3]), default_float: real(-1) }),
    mapped('integers to floats', whole, { keys_int64s: [3, 2, 1], values_floats: reals([0.5, 1.5, 2.5]) }), mapped('floats to integers', numbers, { keys_floats: reals([7, 1.5]), values_int64s: [70, 15] }), mapped('integers to integers', whole, { keys_int64s: [1, 2], values_int64s: [20, 30], default_int64: 0 }),
    mapped('floats to floats', numbers, { keys_floats: reals([7, NaN]), values_floats: reals([70, 15]), default_float: real(3) }), mapped('strings to strings', letters, { keys_strings: texts(['a', 'z']), values_strings: texts(['A', 'Z']), default_string: '?' }),
    mapped('opset 2', letters, { keys_strings: texts(['a', 'b', 'c']), values_int64s: [5, 6, 7], default_int64: 42 }, 2), mapped('opset 1', letters, { classes_strings: texts(['a', 'b', 'c']) }, 1), mapped('opset 1, to strings', whole, { classes_strings: texts(['a', 'b', 'c']), default_string: 'none' }, 1),
    mapped('tensors of float64', wide, { keys_tensor: tensorValue(tensor('float64', [3], [1.5, 4, NaN])), values_tensor: tensorValue(tensor('float64', [3], [1, 2, 3])), default_tensor: tensorValue(tensor('float64', [1], [-9])) }),
    mapped('tensors of strings and int16', letters, { keys_tensor: tensorValue(strings([2], ['a', 'b'])), values_tensor: tensorValue(tensor('int16', [2], [1, 2])), default_tensor: tensorValue(tensor('int16', [1], [9])) }),
    mapped('tensors of int64 and strings', whole, { keys_tensor: tensorValue(tensor('int64', [2], [9, 1])), values_tensor: tensorValue(strings([2], ['p', 'q'])), default_tensor: tensorValue(strings([1], ['r'])) }),
    mapped('a key twice, opset 2', letters, { keys_strings: texts(['a', 'b', 'a']), values_int64s: [5, 6, 7], default_int64: 42 }, 2),
  ],
};
