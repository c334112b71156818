"""Patterns that fusions look for, in the forms of several exporters, some of them no such pattern by one step."""
import numpy as np
from onnx import TensorProto as T

from convolution import activate, convolve, image
from elementwise import function
from graph import cast, reduce, reshape, split, unsqueeze
from products import heads, linear_only

ROOT_2_PI = np.sqrt(2 / np.pi)


def times(g, x, number):
    """x by a number on either side, or divided by one over it."""
    if g.chance(0.2):
        return g.op("Div", [x, g.scalar(1 / number)], x.dims)
    return g.op("Mul", [x, g.scalar(number)] if g.chance(0.6) else [g.scalar(number), x], x.dims)


def gate(g, x):
    """GELU by erf and tanh, QuickGelu, hard swish, their factors in any order; sometimes a number is another."""
    near = 1.01 if g.chance(0.15) else 1
    kind = g.random.choice(["erf", "tanh", "quick", "hard"])
    if kind == "quick":
        return g.op("Mul", [x, g.op("Sigmoid", [times(g, x, 1.702 * near)], x.dims)], x.dims)
    if kind == "hard":
        raised = g.op("Add", [x, g.scalar(3 * near)], x.dims)
        y = g.op("Clip", [raised, g.scalar(0), g.scalar(6)], x.dims)
        if g.chance(0.5):
            return g.op("Mul", [x, times(g, y, 1 / 6)], x.dims)
        return times(g, g.op("Mul", [x, y], x.dims), 1 / 6)
    if kind == "erf":
        y = g.op("Erf", [times(g, x, np.sqrt(0.5) * near)], x.dims)
    else:
        square = g.op("Mul", [x, x], x.dims)
        cube = g.op("Pow", [x, g.scalar(3)], x.dims) if g.chance(0.5) else g.op("Mul", [square, x], x.dims)
        inner = g.op("Add", [x, times(g, cube, 0.044715 * near)], x.dims)
        y = g.op("Tanh", [times(g, inner, ROOT_2_PI)], x.dims)
    y = g.op("Add", [y, g.scalar(1)], x.dims)
    order = g.random.randrange(3)
    if order == 0:
        return times(g, g.op("Mul", [x, y], x.dims), 0.5)
    if order == 1:
        return g.op("Mul", [times(g, x, 0.5), y], x.dims)
    return g.op("Mul", [x, times(g, y, 0.5)], x.dims)


def gated(g):
    x = g.pick(lambda v: v.size > 0)
    small = g.op("Tanh", [x], x.dims) if x and g.chance(0.3) else x
    return gate(g, small) if x else None


def wide_norm(g):
    """RMS norm, computed in float32 and brought back."""
    x = g.pick(lambda v: v.rank > 1 and v.dims[-1] > 2)
    if not x:
        return None
    wide = g.op("Cast", [x], x.dims, to=T.FLOAT)
    square = g.op("Mul", [wide, wide], x.dims)
    epsilon = g.const(np.float32(1e-3), "f") if not g.float16 else None
    if epsilon is None:  # a float16 model's constants are float16
        epsilon = g.op("Cast", [g.scalar(1e-3)], (), to=T.FLOAT)
    mean = g.op("Add", [reduce(g, "ReduceMean", square, [-1]), epsilon], x.dims[:-1] + (1,))
    y = g.op("Div", [wide, g.op("Sqrt", [mean], mean.dims)], x.dims)
    y = g.op("Cast", [y], x.dims, to=g.onnx("f"))
    return g.op("Mul", [y, g.weight(x.dims[-1], scale=1)], x.dims)


def group_norm(g):
    """Instance norm over groups of a reshaped value; groups that do not divide the channels are not a group norm."""
    x = g.pick(lambda v: v.rank in (3, 4) and v.dims[0] > 0 and int(np.prod(v.dims[2:])) > 2 and v.dims[1] > 1)
    if not x:
        return None
    each = x.size // x.dims[0]
    groups = g.random.choice([n for n in (2, 3, 4, 6) if each % n == 0 and each > 2 * n] or [1])
    y = reshape(g, x, (x.dims[0], groups, each // groups), (0, groups, -1))
    ones, zeros = g.const(np.ones(groups)), g.const(np.zeros(groups))
    y = g.op("InstanceNormalization", [y, ones, zeros], y.dims, epsilon=1e-3)
    return reshape(g, y, x.dims)


def between_layouts(g):
    """Convolutions of a model whose images have their channels last: something stands between transposes."""
    x = image(g, least=3)
    y = x and convolve(g, x, g.random.choice([4, 8, 12]))
    if not y:
        return None
    n, c, h, w = y.dims
    last = g.op("Transpose", [y], (n, h, w, c), perm=[0, 2, 3, 1])
    if g.chance(0.6):
        term = g.const(g.noise.randn(*g.random.choice([(c,), (1, 1, 1, c), ()])) * 0.3)
        last = g.op("Add", [last, term], last.dims)
    if g.chance(0.6):
        last = activate(g, last)
    return g.op("Transpose", [last], (n, c, h, w), perm=[0, 3, 1, 2])


def patches(g):
    """Patches of an image as rows: a convolution whose stride is its kernel, a token in front, positions added."""
    x = image(g, least=2)
    if not x:
        return None
    n, c, h, w = x.dims
    size = g.random.choice([s for s in (1, 2, 3, 4, 5) if h % s == 0 and w % s == 0])
    e, count = g.random.choice([8, 16]), (h // size) * (w // size)
    weight = g.weight(e, c, size, size)
    y = g.op("Conv", [x, weight], (n, e, h // size, w // size), kernel_shape=[size] * 2, strides=[size] * 2)
    if g.chance(0.7):
        y = g.op("Transpose", [reshape(g, y, (n, e, count), (0, e, -1))], (n, count, e), perm=[0, 2, 1])
    else:
        y = reshape(g, g.op("Transpose", [y], (n, h // size, w // size, e), perm=[0, 2, 3, 1]), (n, count, e))
    if n == 1 and g.chance(0.5):
        count += 1
        y = g.op("Concat", [g.weight(1, 1, e, scale=1), y], (n, count, e), axis=1)
    positions = g.weight(*g.random.choice([(1, count, e), (count, e), (e,)]), scale=0.5)
    return g.op("Add", [y, positions], y.dims)


def angles_of(g, t, width):
    """Cosines and sines [1, 1, t, width] of positions that are an input."""
    half = width // 2
    positions = g.input("i64", [1, t], lambda dims: np.broadcast_to(np.arange(dims[1]), dims))
    steps = g.const((1 / 10 ** (np.arange(half) / half)).reshape(1, half, 1))
    row = cast(g, unsqueeze(g, positions, [1]), "f")
    angle = g.op("Transpose", [g.op("MatMul", [steps, row], (1, half, t))], (1, t, half), perm=[0, 2, 1])
    both = g.op("Concat", [angle, angle], (1, t, width), axis=-1)
    return [unsqueeze(g, function(g, both, f), [1]) for f in ("Cos", "Sin")]


def rotated(g, x, cosines, sines):
    half = x.dims[-1] // 2
    low, high = split(g, x, 3, [half, half])
    if g.chance(0.1):
        low, high = high, low
    turned = g.op("Concat", [g.op("Neg", [high], high.dims), low], x.dims, axis=g.random.choice([3, -1]))
    return g.op("Add", [g.op("Mul", [x, cosines], x.dims), g.op("Mul", [turned, sines], x.dims)], x.dims)


def scaled(g, x):
    """x by one over the root of its width, taken from its shape or written down."""
    if g.chance(0.5):
        return times(g, x, x.dims[-1] ** -0.5)
    shape = g.op("Shape", [x], (4,), "i64", bound=64)
    width = g.op("Gather", [shape, g.const(3 if g.chance(0.5) else -1, "i64")], (), "i64", axis=0)
    return g.op("Div", [x, g.op("Sqrt", [cast(g, width, "f")], ())], x.dims)


def masked(g, scores):
    """A mask that a caller gives, or one of positions that are compared."""
    b, _, t, s = scores.dims
    if g.chance(0.5):
        there = g.input("i64", [b, s], lambda dims: (np.arange(dims[1]) % 4 < 3) * np.ones(dims))
        absent = g.op("Sub", [g.scalar(1), cast(g, unsqueeze(g, there, [1, 2]), "f")], (b, 1, 1, s))
        return g.op("Add", [scores, times(g, absent, -1e4)], scores.dims)
    rows, columns = (g.const(np.arange(n).reshape(d), "i64") for n, d in ((t, (t, 1)), (s, (1, s))))
    later = g.op("Greater", [columns, rows], (t, s), "bool")
    return g.op("Where", [later, g.scalar(-1e4), scores], scores.dims)


def attention(g):
    """Attention as PyTorch writes it: rotary positions, the scale from the shape, masks of several makes."""
    x = g.pick(lambda v: v.rank == 3 and 0 < v.dims[1] <= 32 and v.dims[2] in (8, 16, 32) and v.dims[0] > 0)
    if not x:
        return None
    b, t, c = x.dims
    q, k, v = (heads(g, linear_only(g, x), 2) for _ in range(3))
    if g.chance(0.4) and not g.parent:
        turn = angles_of(g, t, c // 2)
        q, k = rotated(g, q, *turn), rotated(g, k, *turn)
    turned = g.op("Transpose", [k], (b, 2, c // 2, t), perm=[0, 1, 3, 2])
    scores = g.op("MatMul", [scaled(g, q), turned], (b, 2, t, t))
    if g.chance(0.6) and not g.parent:
        scores = masked(g, scores)
    weights = g.op("Softmax", [scores], scores.dims, axis=-1)
    y = g.op("MatMul", [weights, v], q.dims)
    return reshape(g, g.op("Transpose", [y], (b, t, 2, c // 2), perm=[0, 2, 1, 3]), x.dims)


STEPS = [gated] * 4 + [attention] * 4 + [wide_norm] * 2 + [group_norm] * 2 + [between_layouts] * 3 + [patches] * 2
