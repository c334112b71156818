import { floats, integers, tensor, uniform, real, constant } from './tensors.mjs';

const bifurcation = (what, source, current, place, predicted, attrs = {}, dims = []) => () => ({
  what, attrs, outputs: ['y', 'at'], inputs: [source, current].map(x => tensor('int64', [x.length], x)).concat(tensor('int64', dims, [place]), predicted ? tensor('int64', [predicted.length], predicted) : []),
});

const crop = (what, size, rois, images, { x = [2, 3, 5, 7], attrs = {} } = {}) => () => ({
  what, attrs, inputs: [floats(x), rois ? tensor('float32', [rois.length, 4], rois.flat()) : uniform('float32', [images.length, 4], -0.2, 1.2), tensor('int32', [images.length], images), constant(tensor('int32', [2], size))],
});

const warp = (what, dims, make = floats) => () => ({ what, inputs: [make(dims)] });

const masked = (what, x, kernel, { attrs = {}, mask = [1, 1, ...x.slice(2)], zeros = 0.2 } = {}) => () => ({
  what, attrs: { kernel_shape: kernel, ...attrs }, inputs: [floats(x), tensor('int32', mask, Array.from(uniform('float32', mask, 0, 1).data, p => (p < zeros ? 0 : 1)))],
});

// B [K, N] of random codes, scales and zero points.
const fpq4 = (what, a, N, { type = null, zeros = type !== 0 } = {}) => () => {
  const K = a.at(-1), blocks = Math.ceil(K / 32) * N, size = 20 + (zeros ? 1 : 0), bytes = integers('uint8', [blocks * size], 0, 255), scales = uniform('float32', [blocks], 0.01, 0.1);
  for (let i = 0; i < blocks; i++) {
    bytes.data.set(new Uint8Array(scales.data.buffer, 4 * i, 4), i * size);
    if (zeros)
      bytes.data[i * size + 4] &= 15;
  }
  return { what, attrs: type === null ? {} : { blk_quant_type: type }, inputs: [floats(a), constant(bytes), constant(tensor('int64', [2], [K, N]))] };
};

// Words of at least one character each.
const words = (what, rows, { places = rows[0].length, filters = 4, window = 2, width = 3, characters = 9, attrs = {} } = {}) => () => ({
  what, attrs, inputs: [tensor('int32', [rows.length, places], rows.flat()), floats([filters, 1, window, width]), floats([filters]), floats([characters, width])],
});

export const cases = {
  BifurcationDetector: [
    bifurcation('no prediction', [1, 2, 3, 4], [2, 3], 0, null), bifurcation('all of them', [1, 5, 3, 4], [2], 0, [1, 5, 3, 4, 2]), bifurcation('a part', [1, 5, 3, 4], [2], 0, [1, 5, 9, 4, 2]), bifurcation('from a place on', [7, 1, 5, 3, 4], [2, 8], 2, [5, 3, 9, 2], {}, [1]),
    bifurcation('found once', [6, 7, 8, 9], [1, 7], 0, null), bifurcation('found twice', [7, 8, 7, 9], [1, 7], 0, null), bifurcation('a longer one decides', [7, 8, 1, 7, 9], [1, 7], 0, null), bifurcation('the end of the source', [1, 2], [1], 2, [2]),
    bifurcation('sizes', [1, 2, 3, 1, 2, 4], [3, 1, 2], 0, null, { min_ngram_size: 2, max_ngram_size: 2 }), bifurcation('larger sizes', [1, 2, 3, 1, 2, 4], [3, 1, 2], 0, null, { min_ngram_size: 2, max_ngram_size: 7 }), bifurcation('no source', [], [3], 0, [4]),
  ],
  CropAndResize: [
    crop('the whole image', [3, 4], [[0, 0, 1, 1]], [1]), crop('any regions', [3, 2], null, [0, 1, 1, 0]), crop('the nearest', [4, 3], null, [0, 1, 0], { attrs: { mode: 'nearest' } }), crop('a value outside', [2, 5], [[-0.5, 0.1, 0.9, 1.5]], [0], { attrs: { extrapolation_value: real(-3) } }),
    crop('upside down', [3, 3], [[0.9, 0.8, 0.1, 0.2]], [1], { attrs: { mode: 'bilinear' } }), crop('single elements', [1, 1], [[0.2, 0.3, 0.8, 0.4], [0, 0, 1.7, 0]], [0, 1]), crop('one row', [1, 4], null, [1]), crop('one element each', [2, 2], null, [0], { x: [1, 2, 1, 1] }),
    crop('larger', [9, 11], [[0.1, 0, 0.7, 0.9]], [0], { x: [1, 1, 4, 3] }), crop('the nearest, a value', [5, 6], null, [1, 0], { attrs: { mode: 'nearest', extrapolation_value: real(0.5) } }),
  ],
  DynamicTimeWarping: [warp('a matrix', [5, 7]), warp('as a batch of one', [1, 6, 4]), warp('one row', [1, 5]), warp('one column', [6, 1]), warp('one element', [1, 1]), warp('equal costs', [4, 6], dims => integers('float32', dims, 1, 1)), warp('many ties', [9, 8], dims => integers('float32', dims, 0, 2)),
    warp('large', [40, 63], dims => uniform('float32', dims, 0, 1))],
  MatMulFpQ4: [
    fpq4('zero points', [3, 64], 5), fpq4('zero points, by name', [2, 32], 3, { type: 1 }), fpq4('symmetric', [3, 64], 5, { type: 0 }), fpq4('a part of a block', [4, 52], 7, { type: 0 }), fpq4('a part of a block, zero points', [1, 33], 2), fpq4('less than a block', [2, 5], 3),
    fpq4('a batch', [2, 3, 40], 4), fpq4('a vector', [64], 6, { type: 0 }), fpq4('large', [5, 288], 40),
  ],
  MaxpoolWithMask: [
    masked('one axis', [2, 3, 9], [3]), masked('two axes', [2, 2, 5, 6], [2, 3]), masked('three axes', [1, 2, 4, 3, 5], [2, 2, 2]), masked('steps', [1, 3, 8, 7], [3, 2], { attrs: { strides: [2, 3] } }), masked('pads', [1, 2, 5, 5], [3, 3], { attrs: { pads: [1, 0, 2, 1], strides: [2, 1] } }),
    masked('padded to the same size', [1, 2, 5, 6], [3, 2], { attrs: { auto_pad: 'SAME_UPPER', strides: [2, 2] } }), masked('padded in front', [1, 2, 7], [4], { attrs: { auto_pad: 'SAME_LOWER' } }), masked('mostly masked', [1, 2, 4, 5], [2, 2], { zeros: 0.8 }),
    masked('all masked', [1, 1, 6], [2], { zeros: 2 }), masked('all masked but the first', [1, 1, 3, 4], [2, 2], { zeros: 2 }), masked('an order of storage', [1, 1, 3, 4], [2, 2], { attrs: { storage_order: 1 } }),
    masked('masks of all planes', [2, 3, 5, 6], [2, 2], { mask: [2, 3, 5, 6] }), masked('masks of one image', [3, 4, 7], [3], { mask: [1, 4, 7], attrs: { strides: [2] } }), masked('masks of three axes', [2, 2, 3, 4, 3], [2, 2, 1], { mask: [2, 2, 3, 4, 3] }),
  ],
  WordConvEmbedding: [
    words('full words', [[1, 2, 3], [4, 5, 6]]), words('shorter ones', [[1, 2, 0, 0], [3, 4, 5, 0], [8, 8, 8, 8]]), words('shorter than the window', [[1, 0, 0], [2, 3, 0]], { window: 3 }), words('a window of one', [[7, 0], [1, 2]], { window: 1 }), words('a gap', [[1, 0, 2, 0], [3, 4, 0, 5]]),
    words('sizes by name', [[1, 2, 3], [4, 5, 6]], { attrs: { embedding_size: 4, conv_window_size: 2, char_embedding_size: 3 } }), words('one of everything', [[1]], { filters: 1, window: 1, width: 1, characters: 2 }), words('many filters', [[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]], { filters: 17, window: 4, width: 5 }),
  ],
};
