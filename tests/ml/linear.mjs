import { floats, integers, tensor, uniform, real, reals, texts } from '../contrib/tensors.mjs';

const list = (count, low = -2, high = 2) => reals([...uniform('float32', [count], low, high).data]);
const whole = (type, dims) => integers(type, dims, -3, 3);

const regressor = (what, { x = () => floats([4, 3]), features = 3, targets = 1, attrs = {}, intercepts = true } = {}) => () => ({
  what, attrs: { coefficients: list(features * targets, -1, 1), targets, ...(intercepts ? { intercepts: list(targets) } : {}), ...attrs }, inputs: [x()],
});
const both = ['y', 'z'];
// Its formula loses digits where the score is near 1/2.
const loosely = make => () => ({ ...make(), loose: 1e-4 });
// Scores that PROBIT is given are in (0, 1).
const small = () => uniform('float32', [4, 3], 0.1, 0.2);
const classifier = (what, { x = () => floats([5, 3]), features = 3, scores = 3, classes = scores, strings = false, attrs = {}, range = [-1, 1], intercepts = list(scores, ...range) } = {}) => () => ({
  what, outputs: both, inputs: [x()],
  attrs: { coefficients: list(features * scores, ...range), intercepts, ...(strings ? { classlabels_strings: texts(['a', 'b', 'c', 'd'].slice(0, classes)) } : { classlabels_ints: [7, 3, 5, 9].slice(0, classes) }), ...attrs },
});

const svm = (what, { kernel = 'RBF', params = [0.3, 0.5, 2], n = 5, features = 3, attrs = {}, x = () => floats([4, features]) } = {}) => () => ({
  what, inputs: [x()], attrs: { kernel_type: kernel, kernel_params: reals(params), n_supports: n, rho: reals([0.25]), coefficients: list(n || features), ...(n ? { support_vectors: list(n * features) } : {}), ...attrs },
});
const svc = (what, { kernel = 'RBF', params = [0.3, 0.5, 2], per = [2, 3, 2], features = 3, prob = false, strings = false, attrs = {}, x = () => floats([6, features]), range = [-2, 2] } = {}) => () => {
  const n = per.reduce((a, b) => a + b, 0), pairs = per.length * (per.length - 1) / 2;
  return { what, outputs: both, inputs: [x()], attrs: { kernel_type: kernel, kernel_params: reals(params), vectors_per_class: per, support_vectors: list(n * features), coefficients: list(n * (per.length - 1), ...range), rho: list(pairs, -0.5, 0.5),
    ...(prob ? { prob_a: list(pairs, -2, -1), prob_b: list(pairs, -0.5, 0.5) } : {}), ...(strings ? { classlabels_strings: texts(['a', 'b', 'c', 'd'].slice(0, per.length)) } : { classlabels_ints: [4, 2, 8, 6].slice(0, per.length) }), ...attrs } };
};
const liblinear = (what, classes, attrs = {}) => () => ({ what, outputs: both, inputs: [floats([5, 3])],
  attrs: { kernel_type: 'LINEAR', kernel_params: reals([0, 0, 0]), coefficients: list(3 * classes), rho: reals([0.25]), classlabels_ints: [4, 2, 8, 6].slice(0, classes), ...attrs } });

export const cases = {
  LinearRegressor: [
    regressor('one target'), regressor('two targets', { targets: 2 }), regressor('no intercepts', { intercepts: false, targets: 3 }), regressor('a vector', { x: () => floats([3]) }),
    regressor('logistic', { targets: 2, attrs: { post_transform: 'LOGISTIC' } }), regressor('logistic of one', { attrs: { post_transform: 'LOGISTIC' } }), regressor('softmax', { targets: 3, attrs: { post_transform: 'SOFTMAX' } }),
    regressor('softmax without zeros', { targets: 3, attrs: { post_transform: 'SOFTMAX_ZERO' } }), loosely(regressor('probit', { targets: 2, x: small, attrs: { post_transform: 'PROBIT', coefficients: reals([0.5, 1, 0.5, 1, 0.2, 0.3]), intercepts: reals([0.2, 0.3]) } })),
    loosely(regressor('probit of one', { x: small, attrs: { post_transform: 'PROBIT', coefficients: reals([0.5, 1, 0.5]), intercepts: reals([0.2]) } })),
  ],
  LinearClassifier: [
    classifier('three classes'), classifier('strings', { strings: true }), classifier('softmax', { attrs: { post_transform: 'SOFTMAX', multi_class: 1 } }), classifier('logistic', { attrs: { post_transform: 'LOGISTIC' } }),
    classifier('softmax without zeros', { attrs: { post_transform: 'SOFTMAX_ZERO' } }), classifier('two classes', { scores: 2, attrs: { post_transform: 'LOGISTIC' } }), classifier('two classes of one score', { scores: 1, classes: 2 }),
    classifier('one score, logistic', { scores: 1, classes: 2, attrs: { post_transform: 'LOGISTIC' } }), classifier('one score, softmax', { scores: 1, classes: 2, attrs: { post_transform: 'SOFTMAX' } }), classifier('one score, strings', { scores: 1, classes: 2, strings: true }),
    classifier('int64', { x: () => whole('int64', [4, 3]) }), classifier('int32', { x: () => whole('int32', [4, 3]) }), classifier('float64', { x: () => tensor('float64', [2, 3], [1, 2, 3, 4, 5, 6]) }), classifier('a vector', { x: () => floats([3]) }),
    loosely(classifier('probit', { x: small, attrs: { post_transform: 'PROBIT', coefficients: reals([0.5, 1, 0.5, 1, 0.2, 0.3, 0.1, 0.2, 0.3]), intercepts: reals([0.2, 0.3, 0.1]) } })),
  ],
  SVMRegressor: [
    svm('radial'), svm('linear', { kernel: 'LINEAR' }), svm('squares', { kernel: 'POLY' }), svm('cubes', { kernel: 'POLY', params: [0.3, 0.5, 3] }), svm('sigmoid', { kernel: 'SIGMOID' }), svm('one class', { attrs: { one_class: 1 } }),
    svm('no vectors', { kernel: 'LINEAR', n: 0 }), svm('a vector', { x: () => floats([3]) }), svm('logistic', { attrs: { post_transform: 'LOGISTIC' } }),
  ],
  SVMClassifier: [
    svc('radial'), svc('linear', { kernel: 'LINEAR' }), svc('polynomial', { kernel: 'POLY' }), svc('sigmoid, strings', { kernel: 'SIGMOID', strings: true }), svc('two classes', { per: [3, 2] }), svc('two classes, strings', { per: [3, 2], strings: true }),
    svc('two classes, positive', { per: [2, 2], range: [0.1, 1] }), svc('probabilities', { prob: true }), svc('probabilities of two', { prob: true, per: [2, 3] }), svc('probabilities of four', { prob: true, per: [2, 1, 3, 2] }),
    svc('two classes, logistic', { per: [3, 2], attrs: { post_transform: 'LOGISTIC' } }), svc('two classes, softmax', { per: [3, 2], attrs: { post_transform: 'SOFTMAX' } }), svc('three classes, logistic', { attrs: { post_transform: 'LOGISTIC' } }), svc('three classes, softmax', { attrs: { post_transform: 'SOFTMAX' } }),
    svc('probabilities, softmax', { prob: true, attrs: { post_transform: 'SOFTMAX' } }), svc('int64', { x: () => whole('int64', [4, 3]) }), svc('float64', { x: () => tensor('float64', [2, 3], [1, 2, 3, 4, 5, 6]) }), svc('a vector', { x: () => floats([3]) }),
    liblinear('no vectors', 3), liblinear('no vectors, softmax', 3, { post_transform: 'SOFTMAX' }), liblinear('no vectors, two classes', 2), liblinear('no vectors, two classes, logistic', 2, { post_transform: 'LOGISTIC' }),
  ],
};
