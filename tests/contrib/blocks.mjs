import { floats, integers, tensor, uniform, constant, volume, toHalf } from './tensors.mjs';

const bytes = dims => constant(integers('uint8', dims, 0, 255));

// MatMulNBits: A [..., K], B [N, blocks, bytes]. Zero points: null, 'packed', or an element type.
const nbits = (what, { a = [3, 40], N = 5, bits = 4, block = 16, zeros = null, groups = false, bias = false, type = 'float32', attrs = {} } = {}) => () => {
  const K = a.at(-1), blocks = Math.ceil(K / block);
  const c = { what, attrs: { K, N, bits, block_size: block, ...attrs }, inputs: [floats(a, type), bytes([N, blocks, block * bits / 8]), constant(uniform(type, [N, blocks], 0.01, 0.1)),
    zeros === 'packed' ? bytes([N, Math.ceil(blocks * bits / 8)]) : zeros ? constant(uniform(zeros, [N, blocks], 0, 2 ** bits - 1)) : null,
    groups ? constant(tensor('int32', [K], Array.from({ length: K }, (_, k) => (k * 7 + 3) % blocks))) : null, bias ? constant(floats([N], type)) : null] };
  if (!groups || zeros !== 'packed')
    return c;
  // ONNX Runtime forgets packed zero points (of 4 bits) where there are groups: real ones are the same.
  const row = Math.ceil(blocks / 2), real = Array.from({ length: N * blocks }, (_, i) => (c.inputs[3].data[Math.floor(i / blocks) * row + (i % blocks >> 1)] >> (i % blocks & 1 ? 4 : 0)) & 15);
  return { ...c, instead: { inputs: c.inputs.map((t, i) => (i === 3 ? constant(tensor('float32', [N, blocks], real)) : t)) } };
};

// GatherBlockQuantized: `data` of real dims; uint8 tables are packed along the last axis.
const gather = (what, { dims = [6, 32], type = 'uint8', bits = 4, block = 16, zeros = false, index = [[0, 5, 3]], scale = 'float32', itype = 'int64', attrs = {}, axis = dims.length - 1 } = {}) => () => {
  const packed = type === 'uint8' ? 8 / bits : 1, scales = dims.map((d, i) => (i === axis ? Math.ceil(d / block) : d));
  const table = d => (type === 'uint8' ? integers('uint8', d, 0, 255) : integers(type, d, type === 'int4' ? -8 : 0, type === 'int4' ? 7 : 15));
  const zeroDims = scales.map((d, i) => (i === dims.length - 1 ? Math.ceil(d / packed) : d));
  return { what, attrs: { block_size: block, ...(type === 'uint8' && bits !== 4 ? { bits } : {}), quantize_axis: axis, ...attrs },
    inputs: [constant(table(dims.map((d, i) => (i === dims.length - 1 ? d / packed : d)))), tensor(itype, [index.length, index[0].length], index.flat()), constant(uniform(scale, scales, 0.01, 0.1)), ...(zeros ? [constant(table(zeroDims))] : [])] };
};

const bnb4 = (what, { a = [3, 32], N = 5, K = a.at(-1), block = 16, type = 'float32', quant = 1, attrs = {} } = {}) => () => ({ what, attrs: { K, N, block_size: block, quant_type: quant, ...attrs }, inputs: [floats(a, type), bytes([Math.ceil(N * K / 2)]), constant(uniform(type, [Math.ceil(N * K / block)], 0.1, 1))] });

export const cases = {
  MatMulBnb4: [
    bnb4('normal'), bnb4('floats', { quant: 0 }), bnb4('blocks across rows', { a: [2, 24], block: 32, N: 7 }), bnb4('three dims', { a: [2, 3, 64], block: 64, quant: 0 }), bnb4('float16', { type: 'float16' }), bnb4('one row', { a: [1, 128], N: 9, block: 32 }),
  ],
  MatMulNBits: [
    nbits('plain'), nbits('packed zero points', { zeros: 'packed' }), nbits('real zero points', { zeros: 'float32' }), nbits('a bias', { bias: true }), nbits('groups', { groups: true }), nbits('groups and packed zero points', { groups: true, zeros: 'packed', bias: true }), nbits('groups and real zero points', { groups: true, zeros: 'float32' }),
    nbits('8 bits', { bits: 8 }), nbits('8 bits, packed zero points', { bits: 8, zeros: 'packed', bias: true }), nbits('real zero points, three dims', { zeros: 'float32', a: [2, 2, 64], block: 32 }), nbits('2 bits', { bits: 2, a: [3, 64] }), nbits('2 bits, packed zero points', { bits: 2, zeros: 'packed', a: [3, 64] }), nbits('2 bits, a bias', { bits: 2, block: 32, bias: true, a: [3, 64] }),
    nbits('a short last block', { a: [2, 50], block: 32, zeros: 'packed' }), nbits('float16', { type: 'float16', zeros: 'packed' }), nbits('float16, real zero points', { type: 'float16', zeros: 'float16', bias: true }), nbits('one row', { a: [1, 128], N: 9, block: 64, zeros: 'packed' }),
  ],
  GatherBlockQuantized: [
    gather('bytes of 4 bits'), gather('bytes of 4 bits, zero points', { zeros: true }), gather('bytes of 8 bits', { bits: 8 }), gather('bytes of 8 bits, zero points', { bits: 8, zeros: true }), gather('bytes of 2 bits', { bits: 2, dims: [6, 64], zeros: true }), gather('uint4', { type: 'uint4' }), gather('int4', { type: 'int4' }),
    gather('int4, zero points', { type: 'int4', zeros: true }), gather('uint4, zero points, int32', { type: 'uint4', zeros: true, itype: 'int32', index: [[1], [-1]] }), gather('float16', { scale: 'float16', zeros: true }), gather('blocks along the first axis', { type: 'int4', dims: [32, 5], axis: 0, index: [[4, 0]], attrs: { gather_axis: 1 } }),
    gather('another axis', { type: 'uint4', dims: [3, 4, 16], axis: 2, index: [[3], [-4]], attrs: { gather_axis: 1 } }), gather('a short last block', { type: 'int4', dims: [4, 20], index: [[3, 1]] }),
  ],
};
