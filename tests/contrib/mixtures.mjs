import { floats, integers, uniform, real, constant } from './tensors.mjs';

// Experts of `inner` numbers between their layers, for tokens of `hidden`.
const sizes = (attrs, experts, hidden, inner) => { const width = attrs.swiglu_fusion ? 2 : 1; return [[experts, width * inner, hidden], [experts, hidden, inner]]; };
const experts_of = (what, { x = [5, 8], experts = 4, inner = 6, attrs = {}, biases = true, type = 'float32' } = {}) => () => {
  const [one, two] = sizes(attrs, experts, x.at(-1), inner), tokens = x.slice(0, -1).reduce((a, b) => a * b, 1);
  return { what, attrs, inputs: [floats(x, type), floats([tokens, experts], type), constant(uniform(type, one, -0.6, 0.6)), biases ? constant(floats(one.slice(0, 2), type)) : null, constant(uniform(type, two, -0.6, 0.6)), biases ? constant(floats(two.slice(0, 2), type)) : null] };
};
const codes = (what, { x = [5, 32], experts = 3, inner = 32, bits = 4, block = 0, attrs = {}, biases = true, zeros = false, weights = null, type = 'float32' } = {}) => () => {
  const [one, two] = sizes(attrs, experts, x.at(-1), inner), tokens = x.slice(0, -1).reduce((a, b) => a * b, 1);
  const layer = d => [constant(integers('uint8', [d[0], d[1], d[2] * bits / 8], 0, 255)), constant(uniform(type, block ? [d[0], d[1], d[2] / block] : [d[0], d[1]], 0.005, 0.02)), biases ? constant(floats([d[0], d[1]], type)) : null];
  const zero = d => constant(integers('uint8', block && block < d[2] ? [d[0], d[1], d[2] / block * bits / 8] : [d[0], d[1] * bits / 8], 0, 255));
  // ONNX Runtime's CPU kernel always divides by the sum, unless there are other weights than the router's.
  return { what, attrs: { normalize_routing_weights: 1, expert_weight_bits: bits, ...(block ? { block_size: block } : {}), weights_prepacked: 0, ...attrs }, inputs: [floats(x, type), floats([tokens, experts], type), ...layer(one), ...layer(two), ...(zeros || weights ? [null, null, null, zeros ? zero(one) : null, zeros ? zero(two) : null, null, weights && uniform(type, [tokens, experts], ...weights)] : [])] };
};

export const cases = {
  MoE: [
    experts_of('plain'), experts_of('two experts', { attrs: { k: 2 } }), experts_of('weights of sum 1', { attrs: { k: 2, normalize_routing_weights: 1 } }), experts_of('gelu', { attrs: { k: 2, activation_type: 'gelu' } }), experts_of('silu, no biases', { biases: false, attrs: { activation_type: 'silu' } }),
    experts_of('identity, three dims', { x: [2, 3, 8], attrs: { activation_type: 'identity', k: 3 } }), experts_of('swiglu', { attrs: { activation_type: 'swiglu', swiglu_fusion: 1, k: 2 } }), experts_of('swiglu with numbers', { attrs: { activation_type: 'swiglu', swiglu_fusion: 1, k: 2, activation_alpha: real(1.702), activation_beta: real(1), swiglu_limit: real(0.7), normalize_routing_weights: 1 } }),
    experts_of('all experts', { attrs: { k: 4, normalize_routing_weights: 1 } }), experts_of('one token', { x: [1, 8], attrs: { k: 2 } }), experts_of('float16', { type: 'float16', attrs: { k: 2, activation_type: 'silu', normalize_routing_weights: 1 } }),
  ],
  QMoE: [
    codes('plain'), codes('two experts, gelu', { attrs: { k: 2, activation_type: 'gelu' } }), codes('8 bits', { bits: 8, attrs: { k: 2, normalize_routing_weights: 1, activation_type: 'silu' } }), codes('swiglu', { attrs: { activation_type: 'swiglu', swiglu_fusion: 1, k: 2, normalize_routing_weights: 1, activation_alpha: real(1.702), activation_beta: real(1), swiglu_limit: real(7) } }),
    codes('blocks', { block: 16, attrs: { k: 2, activation_type: 'silu' } }), codes('8 bits, swiglu', { bits: 8, attrs: { activation_type: 'swiglu', swiglu_fusion: 1, k: 1 } }), codes('zero points', { zeros: true, attrs: { k: 2 } }), codes('blocks and zero points', { block: 16, zeros: true, attrs: { k: 2, activation_type: 'identity' } }),
    codes('no biases', { biases: false }), codes('float16', { type: 'float16', attrs: { k: 2, activation_type: 'silu', normalize_routing_weights: 1 } }), codes('2 bits', { bits: 2, attrs: { k: 2 } }),
    codes('weights of sum 1 that nobody asks for', { attrs: { k: 2, normalize_routing_weights: 0 } }), codes('other weights', { weights: [0.1, 2], attrs: { k: 2, normalize_routing_weights: 0 } }), codes('other weights of sum 1', { weights: [0.1, 2], attrs: { k: 2 } }), codes('weights that are negative', { weights: [-1, 1], attrs: { k: 3, normalize_routing_weights: 0 } }),
    codes('a block as long as a row, zero points', { block: 32, zeros: true, attrs: { k: 2 } }), codes('a sparse mixer', { attrs: { k: 2, use_sparse_mixer: 1 } }),
  ],
};
