"""Normalisations, softmax, reductions over any axes, cumulative sums, orders (ArgMax, TopK)."""
import numpy as np

from graph import cast, reduce, reshape


def some_axes(g, x, most=None):
    axes = sorted(g.random.sample(range(x.rank), g.random.randint(1, min(most or x.rank, x.rank))))
    return [a - x.rank if g.chance(0.3) else a for a in axes]


def reduction(g):
    x = g.pick(lambda v: v.rank > 0 and min(v.dims) > 0)
    if not x:
        return None
    kind = g.random.choice(["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp",
                            "ReduceL1", "ReduceSum", "ReduceProd", "ReduceLogSum", "ReduceMean", "ReduceMean"])
    axes = some_axes(g, x)
    count = int(np.prod([x.dims[a] for a in axes]))
    if kind == "ReduceProd":
        x = g.op("Add", [g.op("Mul", [g.op("Tanh", [x], x.dims), g.scalar(0.1)], x.dims), g.scalar(1)], x.dims)
    if kind == "ReduceLogSum":
        x = g.op("Add", [g.op("Abs", [x], x.dims), g.scalar(0.5)], x.dims)
    everything = g.chance(0.1)
    of_batch = everything or 0 in [a % x.rank for a in axes]
    # ONNX leaves the mean of nothing undefined.
    if g.may_be_empty and of_batch and kind in ("ReduceMean", "ReduceMax", "ReduceMin") and not g.needs("elements", x):
        return None
    if everything:
        y = g.op(kind, [x], (1,) * x.rank) if g.chance(0.5) else g.op(kind, [x], (), keepdims=0)
        count = x.size
    else:
        y = reduce(g, kind, x, axes, g.chance(0.5), bound=x.bound if kind in ("ReduceMax", "ReduceMin") else None)
    if kind in ("ReduceSum", "ReduceL1", "ReduceSumSquare"):
        y = g.op("Mul", [y, g.scalar(1 / count)], y.dims)
    return y


def softmax(g):
    x = g.pick(lambda v: v.rank > 0)
    if not x:
        return None
    axis = g.random.randrange(-x.rank, x.rank)
    kind = g.random.choice(["Softmax", "LogSoftmax", "Softmax", "Hardmax"])
    if kind == "Hardmax" and not g.may_jump(x):
        kind = "Softmax"
    if kind == "Hardmax":
        if g.opset < 13 and axis % x.rank != x.rank - 1:
            return None  # coerces to two dims
        g.check("order", x, axis=axis)
        return g.op(kind, [x], x.dims, bound=1, axis=axis)
    return g.op(kind, [x], x.dims, axis=axis)


def layer_norm(g):
    x = g.pick(lambda v: v.rank > 1 and v.dims[-1] > 2)
    if not x:
        return None
    c = x.dims[-1]
    if g.opset >= 17 and g.chance(0.5):
        axis = -1 if g.chance(0.7) or x.rank < 3 else -2
        scale = g.weight(*x.dims[axis:], scale=1)
        inputs = [x, scale] + ([g.weight(*x.dims[axis:], scale=0.2)] if g.chance(0.7) else [])
        return g.op("LayerNormalization", inputs, x.dims, axis=axis if g.chance(0.6) else axis + x.rank, epsilon=1e-3)
    mean = reduce(g, "ReduceMean", x, [-1])
    centred = g.op("Sub", [x, mean], x.dims)
    square = g.op("Pow", [centred, g.scalar(2)], x.dims) if g.chance(0.6) else g.op("Mul", [centred, centred], x.dims)
    variance = g.op("Add", [reduce(g, "ReduceMean", square, [-1]), g.scalar(1e-3)], mean.dims)
    y = g.op("Div", [centred, g.op("Sqrt", [variance], mean.dims)], x.dims)
    y = g.op("Mul", [y, g.weight(c, scale=1)], x.dims)
    return g.op("Add", [y, g.weight(c, scale=0.2)], x.dims) if g.chance(0.8) else y


def rms_norm(g):
    x = g.pick(lambda v: v.rank > 1 and v.dims[-1] > 2)
    if not x:
        return None
    square = g.op("Pow", [x, g.scalar(2)], x.dims) if g.chance(0.5) else g.op("Mul", [x, x], x.dims)
    mean = reduce(g, "ReduceMean", square, [-1])
    root = g.op("Sqrt", [g.op("Add", [mean, g.scalar(1e-3)], mean.dims)], mean.dims)
    if g.chance(0.5):
        y = g.op("Mul", [x, g.op("Reciprocal", [root], mean.dims)], x.dims)
    else:
        y = g.op("Div", [x, root], x.dims)
    weight = g.weight(x.dims[-1], scale=1)
    return g.op("Mul", [weight, y] if g.chance(0.5) else [y, weight], x.dims)


def newer_norm(g):
    """The operators that opset 23 brought."""
    x = g.pick(lambda v: v.rank in (3, 4) and v.dims[-1] % 2 == 0 and v.size > 0)
    if not x or g.opset < 23:
        return rms_norm(g)
    if x.rank == 4 and g.chance(0.6) and g.needs("even", x, axis=3):
        angle = g.noise.rand(x.dims[0], x.dims[2], x.dims[3] // 2) * 3
        return g.op("RotaryEmbedding", [x, g.const(np.cos(angle)), g.const(np.sin(angle))], x.dims,
                    interleaved=int(g.chance(0.4)))
    return g.op("RMSNormalization", [x, g.weight(x.dims[-1], scale=1)], x.dims, axis=-1, epsilon=1e-3)


def group_norm(g):
    x = g.pick(lambda v: v.rank in (3, 4) and v.dims[1] % 2 == 0 and int(np.prod(v.dims[2:])) > 2 and v.dims[0] > 0)
    if not x:
        return None
    c = x.dims[1]
    if g.opset >= 21 and g.chance(0.5):
        return g.op("GroupNormalization", [x, g.weight(c, scale=1), g.weight(c, scale=0.2)], x.dims, num_groups=2,
                    epsilon=1e-3)
    y = reshape(g, x, (x.dims[0], 2, x.size // x.dims[0] // 2), (0, 2, -1))
    y = g.op("InstanceNormalization", [y, g.const(np.ones(2)), g.const(np.zeros(2))], y.dims, epsilon=1e-3)
    if g.chance(0.6):
        y = g.op("Reshape", [y, g.node("Shape", [x])[0]], x.dims)
    else:
        y = reshape(g, y, x.dims)
    lead = [c] + [1] * (x.rank - 2)
    y = g.op("Mul", [y, g.const(g.noise.rand(*lead) + 0.5)], x.dims)
    return g.op("Add", [y, g.const(g.noise.randn(*lead) * 0.2)], x.dims)


def other_norm(g):
    x = g.pick(lambda v: v.rank == 4 and v.dims[2] * v.dims[3] > 3) or g.pick(lambda v: v.rank == 3 and v.dims[2] > 3)
    if not x:
        return None
    kind = g.random.choice(["InstanceNormalization", "InstanceNormalization", "LpNormalization", "LRN",
                            "MeanVarianceNormalization"])
    if kind == "InstanceNormalization":
        return g.op(kind, [x, g.weight(x.dims[1], scale=1), g.weight(x.dims[1], scale=0.2)], x.dims, epsilon=1e-3)
    if kind == "LpNormalization":
        shifted = g.op("Add", [g.op("Abs", [x], x.dims), g.scalar(0.2)], x.dims)
        return g.op(kind, [shifted], x.dims, axis=g.random.choice([1, -1]), p=g.random.choice([1, 2]))
    if x.rank != 4:
        return None
    if kind == "LRN":
        return g.op(kind, [x], x.dims, size=g.random.choice([1, 3, 5]), alpha=0.3, beta=0.75, bias=1.0)
    # Its epsilon is 1e-9: keep the variance away from zero.
    axes = g.random.choice([[0, 2, 3], [2, 3]])
    moved = g.op("Add", [x, g.const(g.noise.randn(*x.dims) * 1.0)], x.dims)
    return g.op(kind, [moved], x.dims, axes=axes)


def cumulative(g):
    x = g.pick(lambda v: v.rank > 0 and max(v.dims) <= 64)
    if not x or g.half:  # ONNX has no float16 CumSum
        return None
    axis = g.random.randrange(-x.rank, x.rank)
    y = g.op("CumSum", [x, g.const(axis, g.random.choice(["i64", "i32"]))], x.dims, exclusive=int(g.chance(0.3)),
             reverse=int(g.chance(0.3)))
    return g.op("Mul", [y, g.scalar(1 / np.sqrt(max(x.dims[axis], 1)))], x.dims)


def arg_order(g):
    """ArgMax, ArgMin: the first of equals, or the last."""
    x = g.pick(lambda v: v.rank > 0 and min(v.dims) > 0, whole=True if g.chance(0.5) else None)
    if not x or not g.may_jump(x):
        return None
    if g.may_be_empty and not g.needs("elements", x):
        return None  # ONNX Runtime keeps the dim of an empty tensor, whatever keepdims says
    axis = g.random.randrange(-x.rank, x.rank)
    g.check("order", x, axis=axis)
    keep = g.chance(0.5)
    dims = [1 if i == axis % x.rank else d for i, d in enumerate(x.dims) if keep or i != axis % x.rank]
    last = {"select_last_index": 1} if g.opset >= 12 and g.chance(0.3) else {}
    y = g.op(g.random.choice(["ArgMax", "ArgMin"]), [x], dims, "i64", bound=x.dims[axis], axis=axis, keepdims=int(keep),
             **last)
    return cast(g, y, "f") if g.chance(0.5) else y


def top_k(g):
    x = g.pick(lambda v: v.rank > 0 and max(v.dims) > 1 and min(v.dims) > 0, type=("f", "f", "i64", "i32"),
               whole=True if g.chance(0.4) else None)
    if not x or not g.may_jump(x):
        return None
    axis = g.random.choice([i for i, d in enumerate(x.dims) if d > 1])
    k = g.random.randint(1, x.dims[axis])
    g.check("order", x, axis=axis)
    values, indices = g.node("TopK", [x, g.ints(k)], 2, axis=axis, largest=int(g.chance(0.6)))
    dims = [k if i == axis else d for i, d in enumerate(x.dims)]
    g.value(indices, "i64", dims, bound=x.dims[axis])
    return g.value(values, x.type, dims, x.bound)
