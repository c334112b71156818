import { floats, integers, tensor, uniform, reals, texts, tensorValue, random } from '../contrib/tensors.mjs';

const BRANCHES = ['BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', 'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ'];
const pick = n => Math.floor(random() * n);
const value = () => Math.round(32 * (4 * random() - 2)) / 32;

// Trees of a given depth as lists of nodes; inner nodes come before their children, as exporters write them.
function trees(count, depth, features, modes) {
  const all = [];
  for (let tree = 0; tree < count; tree++) {
    let next = 0;
    const grow = left => {
      const node = { tree, id: next++, feature: pick(features), value: value(), mode: left ? modes[pick(modes.length)] : 'LEAF', yes: 0, no: 0, tracks: pick(2) };
      all.push(node);
      if (left) {
        node.yes = grow(left - 1);
        node.no = grow(random() < 0.3 ? 0 : left - 1);
      }
      return node.id;
    };
    grow(depth);
  }
  return all;
}

const field = (nodes, key) => nodes.map(n => n[key]);
function votes(nodes, prefix, targets, low, high, wide) {
  const leaves = nodes.filter(n => n.mode === 'LEAF'), rows = leaves.flatMap(n => targets.map(t => ({ ...n, target: t, weight: low + (high - low) * random() })));
  const weights = field(rows, 'weight');
  return { [`${prefix}_ids`]: field(rows, 'target'), [`${prefix}_nodeids`]: field(rows, 'id'), [`${prefix}_treeids`]: field(rows, 'tree'),
    ...(wide ? { [`${prefix}_weights_as_tensor`]: tensorValue(tensor('float64', [weights.length], weights)) } : { [`${prefix}_weights`]: reals(weights) }) };
}
const nodeFields = (nodes, tracks, wide) => ({
  nodes_treeids: field(nodes, 'tree'), nodes_nodeids: field(nodes, 'id'), nodes_featureids: field(nodes, 'feature'), nodes_modes: texts(field(nodes, 'mode')), nodes_truenodeids: field(nodes, 'yes'), nodes_falsenodeids: field(nodes, 'no'),
  ...(wide ? { nodes_values_as_tensor: tensorValue(tensor('float64', [nodes.length], field(nodes, 'value'))) } : { nodes_values: reals(field(nodes, 'value')) }), ...(tracks ? { nodes_missing_value_tracks_true: field(nodes, 'tracks') } : {}),
});
// Multiples of 1/32 meet thresholds.
const points = (dims, hole) => { const t = floats(dims); t.data.forEach((x, i) => { t.data[i] = hole && i % 4 === 1 ? NaN : Math.round(x * 32) / 32; }); return t; };

const regressor = (what, { count = 3, depth = 3, targets = [0], n = targets.length, modes = ['BRANCH_LEQ'], tracks = false, wide = false, low = -1, high = 1, x = () => points([6, 4]), attrs = {}, version = 3 } = {}) => () => {
  const nodes = trees(count, depth, 4, modes);
  return { what, version, attrs: { n_targets: n, ...nodeFields(nodes, tracks, wide), ...votes(nodes, 'target', targets, low, high, wide), ...attrs }, inputs: [x()] };
};
const classifier = (what, { count = 3, depth = 3, classes = 3, voted = Array.from({ length: classes }, (_, i) => i), strings = false, modes = ['BRANCH_LEQ'], tracks = false, wide = false, low = -1, high = 1, x = () => points([6, 4]), attrs = {}, version = 3 } = {}) => () => {
  const nodes = trees(count, depth, 4, modes);
  return { what, version, outputs: ['y', 'z'], inputs: [x()], attrs: { ...nodeFields(nodes, tracks, wide), ...votes(nodes, 'class', voted, low, high, wide),
    ...(strings ? { classlabels_strings: texts(['a', 'b', 'c', 'd'].slice(0, classes)) } : { classlabels_int64s: [7, 3, 5, 9].slice(0, classes) }), ...attrs } };
};

// TreeEnsemble: nodes and leaves are counted apart.
const ensemble = (what, { count = 3, depth = 3, targets = 1, modes = [0], tracks = false, type = 'float32', x = () => points([6, 4]), attrs = {}, aggregate = 1 } = {}) => () => {
  const nodes = [], leaves = [], roots = [], sets = [];
  const place = left => {
    if (!left) {
      leaves.push({ target: pick(targets), weight: value() });
      return [leaves.length - 1, 1];
    }
    const node = { feature: pick(4), mode: modes[pick(modes.length)], split: value(), tracks: pick(2) }, at = nodes.push(node) - 1;
    if (node.mode === 6)
      sets.push(1 + pick(2), 3 + pick(2), 6, NaN); // whole numbers: ONNX Runtime takes no others
    [node.yes, node.yesLeaf] = place(left - 1);
    [node.no, node.noLeaf] = place(random() < 0.3 ? 0 : left - 1);
    return [at, 0];
  };
  for (let tree = 0; tree < count; tree++)
    roots.push(place(depth)[0]);
  const of = numbers => tensorValue(tensor(type, [numbers.length], numbers));
  return { what, version: 5, inputs: [x()], attrs: { n_targets: targets, aggregate_function: aggregate, tree_roots: roots, nodes_featureids: field(nodes, 'feature'), nodes_modes: tensorValue(tensor('uint8', [nodes.length], field(nodes, 'mode'))), nodes_splits: of(field(nodes, 'split')),
    nodes_truenodeids: field(nodes, 'yes'), nodes_trueleafs: field(nodes, 'yesLeaf'), nodes_falsenodeids: field(nodes, 'no'), nodes_falseleafs: field(nodes, 'noLeaf'), leaf_targetids: field(leaves, 'target'), leaf_weights: of(field(leaves, 'weight')),
    ...(tracks ? { nodes_missing_value_tracks_true: field(nodes, 'tracks') } : {}), ...(sets.length ? { membership_values: of(sets) } : {}), ...attrs } };
};
// ONNX numbers SOFTMAX 1 and LOGISTIC 2, ONNX Runtime the other way round.
const swapped = (what, number, theirs, options) => () => {
  const c = ensemble(what, { ...options, attrs: { post_transform: number } })();
  return { ...c, instead: { attrs: { ...c.attrs, post_transform: theirs } } };
};
const wideX = () => tensor('float64', [5, 4], Array.from({ length: 20 }, value));

export const cases = {
  TreeEnsembleRegressor: [
    regressor('one target'), regressor('two targets', { targets: [0, 1] }), regressor('all branches', { modes: BRANCHES, depth: 4 }), regressor('missing values', { tracks: true, x: () => points([6, 4], true) }), regressor('missing values, not tracked', { x: () => points([6, 4], true), modes: BRANCHES }),
    regressor('average', { attrs: { aggregate_function: 'AVERAGE' } }), regressor('smallest', { attrs: { aggregate_function: 'MIN' } }), regressor('largest of two targets', { targets: [0, 1], attrs: { aggregate_function: 'MAX' } }), regressor('average of two targets', { targets: [0, 1], attrs: { aggregate_function: 'AVERAGE', base_values: reals([1, 2]) } }),
    regressor('a base value', { attrs: { base_values: reals([0.5]) } }), regressor('base values', { targets: [0, 1], attrs: { base_values: reals([0.5, -2]) } }), regressor('logistic', { targets: [0, 1], attrs: { post_transform: 'LOGISTIC' } }), regressor('logistic of one', { attrs: { post_transform: 'LOGISTIC' } }),
    regressor('softmax', { targets: [0, 1, 2], attrs: { post_transform: 'SOFTMAX' } }), () => ({ loose: 1e-4, ...regressor('probit', { low: 0.1, high: 0.3, attrs: { post_transform: 'PROBIT' } })() }), regressor('a target without votes', { targets: [1], n: 3, attrs: { aggregate_function: 'MIN' } }), regressor('opset 1', { version: 1 }),
    regressor('float64', { x: wideX }), regressor('tensors of float64', { x: wideX, wide: true }), regressor('one leaf', { depth: 0 }), regressor('many trees', { count: 40, depth: 4 }),
  ],
  TreeEnsembleClassifier: [
    classifier('three classes'), classifier('strings', { strings: true }), classifier('softmax', { attrs: { post_transform: 'SOFTMAX' } }), classifier('logistic and base values', { attrs: { post_transform: 'LOGISTIC', base_values: reals([0.1, -0.2, 0.3]) } }), classifier('softmax without zeros', { attrs: { post_transform: 'SOFTMAX_ZERO' }, voted: [0, 2] }),
    classifier('two classes, votes for one', { classes: 2, voted: [0] }), classifier('two classes, positive votes', { classes: 2, voted: [0], low: 0, high: 0.4 }), classifier('two classes, logistic', { classes: 2, voted: [0], attrs: { post_transform: 'LOGISTIC' } }), classifier('two classes, a base value', { classes: 2, voted: [0], attrs: { post_transform: 'LOGISTIC', base_values: reals([0.3]) } }),
    classifier('two classes, votes for the second', { classes: 2, voted: [1] }), classifier('two classes, positive votes for the second', { classes: 2, voted: [1], low: 0, high: 0.4, strings: true }), classifier('two classes, softmax', { classes: 2, voted: [0], attrs: { post_transform: 'SOFTMAX' } }), classifier('two classes, positive, logistic', { classes: 2, voted: [0], low: 0, high: 0.4, attrs: { post_transform: 'LOGISTIC' } }),
    classifier('all branches and missing values', { modes: BRANCHES, depth: 4, tracks: true, x: () => points([6, 4], true) }), classifier('float64', { x: wideX }), classifier('tensors of float64', { x: wideX, wide: true }), classifier('int32', { x: () => integers('int32', [5, 4], -2, 2) }),
    classifier('opset 1', { version: 1, strings: true }), classifier('a class without votes', { classes: 4, voted: [0, 1, 3] }),
  ],
  TreeEnsemble: [
    ensemble('one target'), ensemble('three targets', { targets: 3 }), ensemble('all branches', { modes: [0, 1, 2, 3, 4, 5], depth: 4, targets: 2 }), ensemble('sets', { modes: [0, 6], depth: 4, targets: 2, x: () => integers('float32', [8, 4], 0, 6) }), ensemble('missing values', { tracks: true, x: () => points([6, 4], true) }),
    ensemble('average', { aggregate: 0, targets: 2 }), ensemble('smallest', { aggregate: 2 }), ensemble('largest', { aggregate: 3, targets: 2 }), swapped('softmax', 1, 2, { targets: 3 }), swapped('logistic', 2, 1, { targets: 2 }), ensemble('float64', { type: 'float64', x: wideX, targets: 2 }),
    ensemble('one node each', { depth: 1 }),
  ],
};
