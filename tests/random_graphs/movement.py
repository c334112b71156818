"""Moving elements: transposes, reshapes, slices, joins, pads, gathers, scatters."""
import numpy as np

from graph import cast, reduce, reshape, split, squeeze, unsqueeze

ANY = ("f", "f", "f", "f", "i64", "i32", "u8", "bool")


def anything(g, fits=lambda v: True):
    return g.pick(fits, type=g.random.choice(ANY)) or g.pick(fits)


def transpose(g):
    x = anything(g, lambda v: v.rank > 1)
    if not x:
        return None
    order = list(range(x.rank))
    g.random.shuffle(order)
    if x.rank == 4 and g.chance(0.6):
        order = g.random.choice([[0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2], [0, 2, 1, 3]])
    return g.op("Transpose", [x], [x.dims[i] for i in order], x.type, x.bound, perm=order)


def reshaping(g):
    x = anything(g)
    kind = g.random.choice(["split", "merge", "flat", "unsqueeze", "squeeze", "line"])
    if kind == "flat" and x.rank:
        axis = g.random.randint(0, x.rank)
        return g.op("Flatten", [x], (int(np.prod(x.dims[:axis])), int(np.prod(x.dims[axis:]))), x.type, x.bound,
                    axis=axis)
    if kind == "unsqueeze" and x.rank < 5:
        two = x.rank < 3 and g.chance(0.2)
        axes = sorted(g.random.sample(range(x.rank + 2), 2)) if two else [g.random.randint(0, x.rank)]
        return unsqueeze(g, x, axes)
    if kind == "squeeze":
        ones = [i for i, d in enumerate(x.dims) if d == 1]
        return squeeze(g, x, [g.random.choice(ones)] if g.chance(0.6) else ones) if ones else None
    if kind == "split":
        axes = [i for i, d in enumerate(x.dims) if d % 2 == 0 and d > 2]
        if not axes or x.rank > 4:
            return None
        i = g.random.choice(axes)
        pair = g.random.choice([(2, x.dims[i] // 2), (x.dims[i] // 2, 2)])
        dims = x.dims[:i] + pair + x.dims[i + 1:]
    elif kind == "merge" and x.rank > 1:
        i = g.random.randrange(x.rank - 1)
        dims = x.dims[:i] + (x.dims[i] * x.dims[i + 1],) + x.dims[i + 2:]
    else:
        dims = (x.size,)
    written = list(dims)
    if g.chance(0.4) and x.size:
        written[g.random.randrange(len(written))] = -1
    for i, (a, b) in enumerate(zip(x.dims, dims)):
        if a == b and written[i] != -1 and g.chance(0.3):
            written[i] = 0
    return reshape(g, x, dims, written)


def concat(g):
    x = anything(g, lambda v: v.rank > 0)
    if not x:
        return None
    axis = g.random.randrange(x.rank)
    fits = [v for v in g.visible() if v.type == x.type and v.rank == x.rank
            and all(a == b or i == axis for i, (a, b) in enumerate(zip(v.dims, x.dims)))]
    parts = [x] + [g.random.choice(fits or [x]) for _ in range(g.random.choice([1, 1, 2]))]
    if g.chance(0.15) and x.type == "f":
        parts.insert(g.random.randint(0, 1),
                     g.const(g.noise.randn(*[2 if i == axis else d for i, d in enumerate(x.dims)])))
    bounds = [p.bound for p in parts]
    dims = [sum(p.dims[axis] for p in parts) if i == axis else d for i, d in enumerate(x.dims)]
    joined = g.op("Concat", parts, dims, x.type, None if None in bounds else max(bounds),
                  axis=axis if g.chance(0.5) else axis - x.rank)
    return g.beside(parts, joined, axis)


def splitting(g):
    x = anything(g, lambda v: v.rank > 0 and max(v.dims) > 1)
    if not x:
        return None
    axis = g.random.choice([i for i, d in enumerate(x.dims) if d > 1])
    size = x.dims[axis]
    if size % 2 == 0 and g.chance(0.7):
        sizes = [size // 2] * 2
    else:
        first = g.random.randint(1, size - 1)
        sizes = [first, size - first]
    parts = split(g, x, axis - x.rank if g.chance(0.3) else axis, sizes)
    return parts[-1]


def slicing(g):
    """Slices of one to three axes: steps, negative bounds, bounds beyond the end."""
    x = anything(g, lambda v: v.rank > 0 and max(v.dims) > 2)
    if not x:
        return None
    axes = [i for i, d in enumerate(x.dims) if d > 2]
    axes = g.random.sample(axes, g.random.randint(1, min(len(axes), 3)))
    starts, ends, steps, dims = [], [], [], list(x.dims)
    for i in axes:
        size, step = dims[i], g.random.choice([1, 1, 1, 2, -1, -2])
        low, high = g.random.randint(0, size // 2 - 1), g.random.randint(size // 2 + 1, size)
        dims[i] = len(range(low, high, abs(step)))
        if step > 0:
            start, end = low, high
            if g.chance(0.3):
                start -= size
            if high == size and g.chance(0.5):
                end = 2 ** 31 - 1
        else:
            start, end = high - 1, low - 1 if low else -(2 ** 31)
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    inputs = [x] + [g.ints(*part) for part in (starts, ends, [a - x.rank if g.chance(0.3) else a for a in axes], steps)]
    return g.op("Slice", inputs, dims, x.type, x.bound)


def pad(g):
    x = g.pick(lambda v: v.rank > 1 and min(v.dims[1:]) > 2 and v.size < 15000)
    if not x:
        return None
    mode = g.random.choice(["constant", "reflect", "edge", "constant"] + (["wrap"] if g.opset >= 19 else []))
    most = [2 if mode == "constant" else max(0, min(2, d - 1)) for d in x.dims]
    before, after = [[g.random.randint(0, m) if g.chance(0.4) else 0 for m in most] for _ in range(2)]
    if mode == "constant" and g.chance(0.2):  # negative pads crop
        i = g.random.randrange(1, x.rank)
        before[i] = -1
    dims = [b + d + a for b, d, a in zip(before, x.dims, after)]
    value = [g.scalar(0.25)] if mode == "constant" and g.chance(0.5) else []
    if g.opset >= 18 and g.chance(0.3):
        axes = [i for i in range(x.rank) if before[i] or after[i]] or [0]
        pads = g.ints(*[before[i] for i in axes], *[after[i] for i in axes])
        return g.op("Pad", [x, pads, value[0] if value else None, g.ints(*axes)], dims, mode=mode)
    return g.op("Pad", [x, g.ints(*before, *after)] + value, dims, mode=mode)


def expand(g):
    x = anything(g, lambda v: v.size < 3000)
    if not x:
        return None
    if x.rank and g.chance(0.4):
        repeats = [g.random.choice([1, 1, 2]) for _ in x.dims]
        return g.op("Tile", [x, g.ints(*repeats)], [a * b for a, b in zip(x.dims, repeats)], x.type, x.bound)
    dims = [3 if d == 1 and g.chance(0.6) else d for d in x.dims]
    if g.chance(0.2) and x.rank < 5:
        dims = [2] + dims
    written = [1 if g.chance(0.3) and i >= len(dims) - x.rank and x.dims[i - len(dims) + x.rank] == d else d
               for i, d in enumerate(dims)]
    return g.op("Expand", [x, g.ints(*written)], dims, x.type, x.bound)


def gather(g):
    x = anything(g, lambda v: v.rank > 0 and min(v.dims) > 0)
    if not x:
        return None
    axis = g.random.randrange(x.rank)
    shape = g.random.choice([(), (1,), (2,), (3,), (2, 2)])
    indices = g.noise.randint(-x.dims[axis] if g.chance(0.3) else 0, x.dims[axis], shape)
    dims = x.dims[:axis] + shape + x.dims[axis + 1:]
    return g.op("Gather", [x, g.const(indices, g.random.choice(["i64", "i32"]))], dims, x.type, x.bound,
                axis=axis - x.rank if g.chance(0.3) else axis)


def embedding(g):
    """Token numbers, from the graph's inputs, look rows up."""
    ids = g.pick(lambda v: v.rank in (1, 2), type=("i64", "i32"))
    size = g.random.choice([8, 12, 16])
    if not ids or ids.bound is None or ids.bound > 500 or g.parent:
        ids = token_input(g)
    rows = int(ids.bound) + 1
    # Indices may be negative if arithmetic made them: they count from the end.
    return g.op("Gather", [g.weight(rows, size, scale=1), ids], ids.dims + (size,))


def token_input(g, limit=20):
    batch, time = g.random.choice([1, 2]), g.random.choice([3, 5, 8])
    root = g
    while root.parent:
        root = root.parent
    declared = [root.free_dim(batch, "batch"), root.free_dim(time, "seq")]
    return g.input(g.random.choice(["i64", "i64", "i32"]), declared, lambda d: g.noise.randint(0, limit + 1, d),
                   bound=limit)


def gather_elements(g):
    x = anything(g, lambda v: v.rank > 0 and min(v.dims) > 0 and v.size < 4000)
    if not x:
        return None
    axis = g.random.randrange(x.rank)
    dims = [g.random.randint(1, d) if i != axis else g.random.choice([1, 2, 3]) for i, d in enumerate(x.dims)]
    indices = g.noise.randint(-x.dims[axis] if g.chance(0.3) else 0, x.dims[axis], dims)
    return g.op("GatherElements", [x, g.const(indices, "i64")], dims, x.type, x.bound, axis=axis)


def free_sizes(g):
    return free_sizes(g.parent) if g.parent else bool(g.symbols)


def gather_nd(g):
    x = anything(g, lambda v: v.rank > 1 and min(v.dims) > 0)
    if not x:
        return None
    # A constant's batch must be the data's in every data set.
    batch = 1 if g.opset >= 12 and g.chance(0.3) and x.rank > 1 and not free_sizes(g) else 0
    depth = g.random.randint(1, min(x.rank - batch, 2))
    lead = x.dims[:batch] + (3,)
    indices = np.stack([g.noise.randint(0, d, lead) for d in x.dims[batch:batch + depth]], -1)
    more = {"batch_dims": batch} if batch else {}
    return g.op("GatherND", [x, g.const(indices, "i64")], lead + x.dims[batch + depth:], x.type, x.bound, **more)


def scatter(g):
    """ScatterElements and ScatterND; reductions where indices repeat, distinct indices elsewhere."""
    x = g.pick(lambda v: v.rank > 0 and min(v.dims) > 0 and v.size < 4000)
    if not x:
        return None
    # ONNX Runtime reduces no float16 here.
    reduction = g.random.choice(["none", "none", "add", "mul"] if g.opset >= 16 and not g.half else ["none"])
    more = {"reduction": reduction} if g.opset >= 16 and reduction != "none" else {}
    if g.chance(0.5):
        axis = g.random.randrange(x.rank)
        dims = [x.dims[i] if i == axis else g.random.randint(1, d) for i, d in enumerate(x.dims)]
        count = g.random.randint(1, x.dims[axis])
        dims[axis] = count
        order = np.argsort(g.noise.rand(*[x.dims[axis] if i == axis else d for i, d in enumerate(dims)]), axis=axis)
        indices = np.take(order, range(count), axis=axis)
        if reduction != "none":
            indices = g.noise.randint(0, x.dims[axis], dims)
        return g.op("ScatterElements", [x, g.const(indices, "i64"), g.const(g.noise.randn(*dims) * 0.7)], x.dims,
                    axis=axis, **more)
    count = g.random.randint(1, x.dims[0])
    rows = g.random.sample(range(x.dims[0]), count) if reduction == "none" else g.noise.randint(0, x.dims[0], count)
    indices = np.array(rows).reshape(count, 1)
    updates = g.const(g.noise.randn(count, *x.dims[1:]) * 0.7)
    return g.op("ScatterND", [x, g.const(indices, "i64"), updates], x.dims, **more)


def one_hot(g):
    ids = g.pick(lambda v: v.bound is not None and v.bound <= 30 and v.size < 500 and v.rank < 4, type=("i64", "i32"))
    if not ids:
        return None
    depth = int(ids.bound) + 2
    axis = g.random.choice([-1, 0, ids.rank])
    at = axis % (ids.rank + 1)
    dims = ids.dims[:at] + (depth,) + ids.dims[at:]
    values = g.const([g.random.choice([0, -1]), g.random.choice([1, 5])], bound=5)
    return g.op("OneHot", [ids, g.const(depth, "i64"), values], dims, bound=5, axis=axis)


def triangle(g):
    x = g.pick(lambda v: v.rank >= 2, type=("f", "f", "i64"))
    if not x or g.opset < 14:
        return None
    k = [g.scalar(g.random.choice([-1, 0, 1, 2]), "i64")] if g.chance(0.6) else []
    return g.op("Trilu", [x] + k, x.dims, x.type, x.bound, upper=int(g.chance(0.5)))


def reverse_sequence(g):
    x = g.pick(lambda v: v.rank >= 2 and min(v.dims[:2]) > 0)
    if not x:
        return None
    time, batch = g.random.choice([(0, 1), (1, 0)])
    lengths = g.noise.randint(1, x.dims[time] + 1, x.dims[batch])
    return g.op("ReverseSequence", [x, g.const(lengths, "i64")], x.dims, bound=x.bound, time_axis=time,
                batch_axis=batch)


def eye(g):
    x = g.pick(lambda v: v.rank == 2)
    if not x:
        return None
    y = g.op("EyeLike", [x], x.dims, bound=1, k=g.random.choice([-1, 0, 1]), dtype=g.onnx("f"))
    return g.op("Add", [x, y], x.dims) if g.chance(0.7) else y


def empty(g):
    """A value without elements, and nodes that read it."""
    x = g.pick(lambda v: v.rank > 0 and v.dims[0] > 0)
    if not x:
        return None
    nothing = g.op("Slice", [x, g.ints(0), g.ints(0), g.ints(0)], (0,) + x.dims[1:], bound=x.bound)
    kind = g.random.choice(["concat", "relu", "sum", "add", "matmul", "cast"])
    if kind == "concat":
        return g.op("Concat", [x, nothing], x.dims, bound=x.bound, axis=0)
    if kind == "sum":
        return reduce(g, "ReduceSum", nothing, [0])
    if kind == "add":
        return g.op("Add", [nothing, g.scalar(1)], nothing.dims)
    if kind == "matmul" and x.rank == 2:
        turned = g.op("Transpose", [nothing], nothing.dims[::-1], perm=[1, 0])
        return g.op("MatMul", [turned, nothing], (x.dims[1], x.dims[1]))
    if kind == "cast":
        return cast(g, nothing, "i64", bound=1)
    return g.op("Relu", [nothing], nothing.dims)
