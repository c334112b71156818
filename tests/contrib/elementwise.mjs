import { floats, tensor, constant } from './tensors.mjs';

const special = tensor('float32', [7], [0, -0, 1e-8, 30, -30, Infinity, -10]);
const pair = (what, dims, bias, type) => () => ({ what, inputs: [floats(dims, type), bias && constant(floats([dims.at(-1)], type))].filter(x => x) });

export const cases = {
  Gelu: [
    pair('a matrix', [3, 7]), pair('a vector', [19]), pair('four dims', [2, 3, 1, 5]), pair('float16', [4, 9], false, 'float16'),
    () => ({ what: 'ends of the range', inputs: [special] }),
  ],
  BiasGelu: [
    pair('a matrix', [3, 7], true), pair('three dims', [2, 3, 5], true), pair('a vector', [9], true), pair('one column', [5, 1], true),
    () => ({ what: 'a bias that is no constant', inputs: [floats([2, 2, 11]), floats([11])] }),
  ],
  FastGelu: [
    pair('no bias', [3, 7]), pair('a bias', [3, 7], true), pair('three dims and a bias', [2, 3, 5], true),
    pair('float16', [4, 9], false, 'float16'), pair('float16 and a bias', [4, 9], true, 'float16'), pair('a vector', [33]),
  ],
  QuickGelu: [
    pair('the usual factor', [3, 7]), () => ({ what: 'another factor', attrs: { alpha: { real: 0.7 } }, inputs: [floats([2, 3, 5])] }),
    () => ({ what: 'factor 1', attrs: { alpha: { real: 1 } }, inputs: [floats([17])] }), pair('a scalar', []),
    () => ({ what: 'a negative factor', attrs: { alpha: { real: -1.5 } }, inputs: [floats([4, 1, 3])] }),
  ],
};
