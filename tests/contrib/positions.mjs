import { floats, integers, tensor, real, constant } from './tensors.mjs';

// Positions [3, batch, sequence] of tokens in caches of `rows` rows.
const multiRotary = (what, x, half, section, { type = 'float32', rows = 11, attrs = {}, ids = dims => integers('int64', dims, 0, rows - 1) } = {}) => () => ({
  what, attrs: { mrope_section: section, ...attrs }, inputs: [floats(x, type), ids([3, x[0], x.at(-2)]), constant(floats([rows, half], type)), constant(floats([rows, half], type))],
});

// Tokens beyond the vocabulary, whose products wrap around, too.
const hashed = (what, dims, grams, heads, { type = 'int64', pad = 0, past = false, present = true, most = 2 ** 31 - 1, least = 0 } = {}) => () => ({
  what, attrs: { max_ngram_size: grams, n_head_per_ngram: heads, pad_id: pad }, outputs: present ? ['y', 'present'] : ['y'],
  inputs: [integers(type, dims, least, most), integers(type, [grams], -(2 ** 31), 2 ** 31 - 1), integers(type, [(grams - 1) * heads], 1, 997)].concat(past ? [integers(type, [dims[0], grams - 1], least, most)] : []),
});

export const cases = {
  MRotaryEmbedding: [
    multiRotary('flat', [2, 5, 24], 4, [2, 1, 1], { attrs: { num_heads: 3 } }), multiRotary('four dims', [2, 3, 5, 8], 4, [2, 1, 1]), multiRotary('every third', [1, 2, 4, 20], 10, [4, 3, 3], { attrs: { mrope_layout: 1 } }), multiRotary('neighbours', [2, 3, 4, 12], 6, [1, 3, 2], { attrs: { interleaved: 1 } }),
    multiRotary('every third, neighbours, flat', [1, 7, 28], 7, [3, 2, 2], { attrs: { mrope_layout: 1, interleaved: 1, num_heads: 2 } }), multiRotary('part of a head', [2, 4, 30], 3, [1, 1, 1], { attrs: { rotary_embedding_dim: 6, num_heads: 3 } }),
    multiRotary('part of a head, four dims', [1, 2, 3, 9], 2, [1, 0, 1], { attrs: { rotary_embedding_dim: 4, num_heads: 2 } }), multiRotary('time alone', [2, 2, 3, 8], 4, [4, 0, 0]), multiRotary('width alone', [1, 2, 3, 8], 4, [0, 0, 4]), multiRotary('more height than it has places', [1, 1, 3, 14], 7, [0, 7, 0], { attrs: { mrope_layout: 1 } }),
    multiRotary('a scale', [1, 2, 3, 8], 4, [2, 1, 1], { attrs: { scale: real(0.75) } }), multiRotary('a scale of float16', [1, 2, 3, 8], 4, [2, 1, 1], { type: 'float16', attrs: { scale: real(0.3) } }), multiRotary('float16', [2, 3, 16], 4, [1, 2, 1], { type: 'float16', attrs: { num_heads: 2 } }),
    multiRotary('the same positions', [1, 2, 6, 8], 4, [2, 1, 1], { ids: dims => tensor('int64', dims, [0, 1, 2].flatMap(() => [0, 1, 2, 3, 4, 5])) }), multiRotary('packed', [1, 9, 8], 2, [0, 1, 1], { rows: 4, attrs: { num_heads: 2, is_packed_batching: 1 } }), multiRotary('one token', [1, 1, 2], 1, [1, 0, 0], { attrs: { num_heads: 1 } }),
  ],
  NGramHashMapping: [
    hashed('pairs', [2, 5], 2, 1), hashed('up to three', [2, 5], 3, 4), hashed('int32', [3, 7], 4, 2, { type: 'int32' }), hashed('a past', [2, 4], 3, 2, { past: true }), hashed('a past of int32', [2, 1], 4, 3, { type: 'int32', past: true, pad: 5 }), hashed('hashes alone', [1, 6], 3, 1, { present: false }),
    hashed('a pad', [2, 2], 4, 2, { pad: -7 }), hashed('no tokens', [2, 0], 3, 2, { past: true }), hashed('negative tokens', [2, 6], 3, 3, { least: -(2 ** 40), most: 2 ** 40 }), hashed('longer than its past', [1, 9], 5, 1, { past: true, type: 'int32' }), hashed('shorter than the past it has not', [1, 2], 6, 2),
  ],
};
