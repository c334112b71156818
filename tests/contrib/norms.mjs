import { uniform, floats, integers, real, constant } from './tensors.mjs';

const skip = (what, { dims = [2, 3, 8], skipDims = dims, type = 'float32', beta = false, bias = false, attrs = {}, outputs = ['y'] } = {}) => () => ({
  what, attrs, outputs,
  inputs: [floats(dims, type), floats(skipDims, type), constant(floats([dims.at(-1)], type)), beta ? constant(floats([dims.at(-1)], type)) : null,
    bias ? constant(floats([dims.at(-1)], type)) : null],
});
const simple = (what, options = {}) => () => {
  const c = skip(what, options)();
  c.inputs.splice(3, 1);
  return c;
};
const sum = ['y', null, null, 'sum'];
const tables = (type, hidden) => [floats([11, hidden], type), floats([9, hidden], type), floats([3, hidden], type)].map(constant);

const embed = (what, { batch = 2, length = 5, hidden = 6, type = 'float32', segments = true, mask = false, positions = null, attrs = {}, outputs = ['y', 'mask'] } = {}) => () => {
  const [words, places, parts] = tables(type, hidden);
  return {
    what, attrs, outputs,
    inputs: [integers('int32', [batch, length], 0, 10), segments ? integers('int32', [batch, length], 0, 2) : null, words, places, segments ? parts : null,
      constant(floats([hidden], type)), constant(floats([hidden], type)), mask ? integers('int32', [batch, length], 0, 1) : null,
      positions && integers('int32', positions, 0, 8)],
  };
};

// The same of quantised tables: real numbers are (code - zero point) times scale.
const quantisedEmbed = (what, { batch = 2, length = 5, hidden = 6, type = 'uint8', segments = true, mask = false, attrs = {} } = {}) => () => {
  const codes = dims => constant(type === 'uint8' ? integers(type, dims, 60, 200) : integers(type, dims, -70, 70)), zero = () => constant(type === 'uint8' ? integers(type, [1], 110, 140) : integers(type, [1], -5, 5));
  const scale = () => constant(uniform('float32', [1], 0.005, 0.03)), there = t => (segments ? t() : null);
  return { what, attrs, outputs: ['y', 'mask'], inputs: [integers('int32', [batch, length], 0, 10), there(() => integers('int32', [batch, length], 0, 2)), codes([11, hidden]), codes([9, hidden]), there(() => codes([3, hidden])), codes([hidden]), codes([hidden]),
    mask ? integers('int32', [batch, length], 0, 1) : null, scale(), scale(), there(scale), scale(), scale(), zero(), zero(), there(zero), zero(), zero()] };
};

export const cases = {
  QEmbedLayerNormalization: [
    quantisedEmbed('plain'), quantisedEmbed('no segments', { segments: false }), quantisedEmbed('a mask', { mask: true }), quantisedEmbed('int8', { type: 'int8' }), quantisedEmbed('an epsilon', { attrs: { epsilon: real(0.01) }, mask: true, segments: false }),
  ],
  SimplifiedLayerNormalization: [
    ['plain', [3, 8], {}], ['three dims', [2, 3, 5], {}], ['an epsilon', [3, 8], { epsilon: real(0.3) }], ['an axis', [2, 3, 5], { axis: 1 }],
    ['stash type', [2, 7], { stash_type: 1, axis: -1 }],
  ].map(([what, dims, attrs]) => () => ({
    what, attrs, domain: '', inputs: [floats(dims), constant(floats(dims.slice(attrs.axis ?? -1)))],
  })).concat([
    () => ({ what: 'its factor too', domain: '', outputs: ['y', 'factor'], inputs: [floats([2, 3, 5]), floats([5])] }),
    () => ({ what: 'float16', domain: '', inputs: [floats([4, 16], 'float16'), constant(floats([16], 'float16'))] }),
  ]),
  SkipLayerNormalization: [
    skip('no shift'), skip('a shift', { beta: true }), skip('a shift and a bias', { beta: true, bias: true }), skip('a bias alone', { bias: true }),
    skip('the sum too', { beta: true, outputs: sum }), skip('an epsilon', { beta: true, attrs: { epsilon: real(0.2) } }),
    skip('one skip for all of the batch', { skipDims: [1, 3, 8] }), skip('a skip without batch', { skipDims: [3, 8], beta: true, outputs: sum }),
    skip('two dims', { dims: [3, 5] }), skip('float16', { type: 'float16', beta: true, bias: true, outputs: sum }),
    skip('bias and sum', { beta: true, bias: true, outputs: sum, dims: [1, 5, 3] }),
  ],
  SkipSimplifiedLayerNormalization: [
    simple('plain'), simple('a bias', { bias: true }), simple('the sum too', { outputs: sum }), simple('bias and sum', { bias: true, outputs: sum }),
    simple('an epsilon', { attrs: { epsilon: real(0.2) }, dims: [1, 1, 7] }), simple('one skip for all', { skipDims: [1, 3, 8], outputs: sum }),
    simple('float16', { type: 'float16', bias: true, outputs: sum }),
  ],
  EmbedLayerNormalization: [
    embed('segments, no mask'), embed('a mask', { mask: true }), embed('no segments', { segments: false, mask: true }),
    embed('positions for all', { positions: [1, 5] }), embed('positions for each', { positions: [2, 5], mask: true }),
    embed('the sum too', { outputs: ['y', 'mask', 'sum'], mask: true, attrs: { epsilon: real(0.1) } }), embed('no index', { mask: true, attrs: { mask_index_type: 0 } }),
    embed('one token', { batch: 1, length: 1, segments: false }), embed('an epsilon', { attrs: { epsilon: real(0.01) } }),
  ],
};
