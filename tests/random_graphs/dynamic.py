"""Computed shapes: nodes that exporters write for free batch, height, width and time, and outputs sized by data."""
from onnx import helper

from elementwise import condition
from graph import cast, unsqueeze


def shape_of(g, x):
    return g.op("Shape", [x], (x.rank,), "i64", bound=40000)


def dim_of(g, shape, i, scalar=False):
    """One dim of a shape value, as [1] or as a scalar."""
    if scalar:
        return g.node("Gather", [shape, g.const(i, "i64")], axis=0)[0]
    if g.chance(0.4):
        return g.node("Slice", [shape, g.ints(i), g.ints(i + 1), g.ints(0)])[0]
    if g.chance(0.5):
        return g.node("Gather", [shape, g.ints(i)], axis=0)[0]
    return one(g, g.node("Gather", [shape, g.const(i, "i64")], axis=0)[0])


def one(g, name):
    """[1] of a scalar."""
    return g.node("Unsqueeze", [name], axes=[0])[0] if g.opset < 13 else g.node("Unsqueeze", [name, g.ints(0)])[0]


def computed_reshape(g):
    """Flatten, split or merge dims, the target gathered from the shape."""
    x = g.pick(lambda v: v.rank > 1 and v.size > 0)
    if not x:
        return None
    shape = shape_of(g, x)
    kind = g.random.choice(["rest", "merge", "split", "same"])
    if kind == "rest":
        target, dims = [dim_of(g, shape, 0), g.ints(-1)], (x.dims[0], x.size // x.dims[0])
    elif kind == "merge":
        product = g.node("Mul", [dim_of(g, shape, 0), dim_of(g, shape, 1)])[0]
        target = [product] + [dim_of(g, shape, i) for i in range(2, x.rank)]
        dims = (x.dims[0] * x.dims[1],) + x.dims[2:]
    elif kind == "split" and x.dims[-1] % 2 == 0:
        half = g.node("Div", [dim_of(g, shape, x.rank - 1), g.ints(2)])[0]
        target = [dim_of(g, shape, i) for i in range(x.rank - 1)] + [g.ints(2), half]
        dims = x.dims[:-1] + (2, x.dims[-1] // 2)
    else:
        order = list(range(x.rank))
        g.random.shuffle(order)
        target, dims = [dim_of(g, shape, i) for i in order], tuple(x.dims[i] for i in order)
    return g.op("Reshape", [x, g.node("Concat", target, axis=0)[0]], dims)


def expand_like(g):
    """A small value spread over the dims of another."""
    x = g.pick(lambda v: v.rank > 0)
    if not x:
        return None
    small = g.const(g.noise.randn(*[d if i == x.rank - 1 else 1 for i, d in enumerate(x.dims)]))
    y = g.op("Expand", [small, shape_of(g, x)], x.dims)
    return g.op("Add", [x, y], x.dims) if g.chance(0.7) else y


def filled(g):
    """ConstantOfShape of another value's shape."""
    x = g.pick(lambda v: v.size < 4000)
    if not x:
        return None
    value = helper.make_tensor("value", g.onnx("f"), [1], [g.random.choice([0.0, 1.0, 0.5])])
    y = g.op("ConstantOfShape", [shape_of(g, x)], x.dims, value=value)
    return g.op(g.random.choice(["Add", "Mul", "Sub"]), [x, y], x.dims)


def positions(g):
    """Range over the time, an angle or a table row for each step."""
    x = g.pick(lambda v: v.rank == 3 and 0 < v.dims[1] <= 64)
    if not x:
        return None
    time = dim_of(g, shape_of(g, x), 1, scalar=True)
    steps = g.op("Range", [g.scalar(0, "i64"), time, g.scalar(1, "i64")], x.dims[1:2], "i64", bound=x.dims[1])
    if g.chance(0.5):
        rows = g.op("Gather", [g.weight(80, x.dims[2], scale=0.3), steps], x.dims[1:])
        return g.op("Add", [x, rows], x.dims)
    angle = g.op("Mul", [unsqueeze(g, cast(g, steps, "f"), [1]), g.weight(1, x.dims[2], scale=0.1)], x.dims[1:])
    return g.op("Add", [x, g.op(g.random.choice(["Sin", "Cos"]), [angle], angle.dims)], x.dims)


def causal(g):
    """A mask of comparisons of two ranges."""
    x = g.pick(lambda v: v.rank >= 2 and 0 < v.dims[-1] <= 64 and 0 < v.dims[-2] <= 64)
    if not x:
        return None
    shape = shape_of(g, x)
    rows, columns = (g.op("Range", [g.scalar(0, "i64"), dim_of(g, shape, x.rank - k, scalar=True), g.scalar(1, "i64")],
                          x.dims[-k:][:1], "i64",
                          bound=64) for k in (2, 1))
    test = g.op("Greater", [unsqueeze(g, columns, [0]), unsqueeze(g, rows, [1])], x.dims[-2:], "bool")
    y = g.op("Where", [test, g.scalar(-1e4), x], x.dims)
    return g.op("Softmax", [y], x.dims, axis=-1)


def cut_half(g):
    """Slice to the half of a dim, computed."""
    x = g.pick(lambda v: v.rank > 0 and max(v.dims) > 1)
    if not x:
        return None
    axis = g.random.choice([i for i, d in enumerate(x.dims) if d > 1])
    half = g.node("Div", [dim_of(g, shape_of(g, x), axis), g.ints(2)])[0]
    size = x.dims[axis] // 2
    first = g.chance(0.5)
    bounds = [g.ints(0), half] if first else [half, g.ints(2 ** 31 - 1)]
    dims = [(size if first else d - size) if i == axis else d for i, d in enumerate(x.dims)]
    return g.op("Slice", [x, *bounds, g.ints(axis)], dims)


def pad_even(g):
    """Pads to an even size, amounts computed: size % 2."""
    x = g.pick(lambda v: v.rank == 4)
    if not x:
        return None
    shape = shape_of(g, x)
    odd = [g.node("Mod", [dim_of(g, shape, i), g.ints(2)])[0] for i in (2, 3)]
    pads = g.node("Concat", [g.ints(0, 0, 0, 0, 0, 0), *odd], axis=0)[0]
    return g.op("Pad", [x, pads], x.dims[:2] + tuple(s + s % 2 for s in x.dims[2:]))


def mean_by_size(g):
    """Sum over everything divided by Size."""
    x = g.pick(lambda v: v.size > 0)
    if not x:
        return None
    total = g.op("ReduceSum", [x], (), keepdims=0)
    count = g.op("Cast", [g.node("Size", [x])[0]], (), to=g.onnx("f"))
    return g.op("Sub", [x, g.op("Div", [total, count], ())], x.dims)


def tile_by_shape(g):
    x = g.pick(lambda v: v.rank in (1, 2) and v.size < 100)
    y = g.pick(lambda v: v.rank > 0 and 0 < v.dims[0] <= 6)
    if not x or not y:
        return None
    repeats = [dim_of(g, shape_of(g, y), 0)] + [g.ints(1)] * (x.rank - 1)
    return g.op("Tile", [x, g.node("Concat", repeats, axis=0)[0] if x.rank > 1 else repeats[0]],
                (x.dims[0] * y.dims[0],) + x.dims[1:])


def mask_input(g, size):
    keep = g.noise.rand(size) < 0.6
    keep[0] = True
    return g.input("bool", [size], lambda d: keep), int(keep.sum())


def chosen_by_data(g):
    """Compress, NonZero, Where with a mask that only the run knows: dims that depend on data."""
    x = g.pick(lambda v: v.rank > 0 and v.dims[0] > 1 and v.size < 4000)
    if not x or g.parent:
        return None
    mask, count = mask_input(g, x.dims[0])
    if g.chance(0.4) and not g.symbols:  # the mask has the same size in every data set
        return g.op("Compress", [x, mask], (count,) + x.dims[1:], bound=x.bound, axis=0)
    found = g.op("NonZero", [mask], (1, count), "i64", bound=x.dims[0])
    indices = g.op("Transpose", [found], (count, 1), "i64", bound=x.dims[0], perm=[1, 0])
    if g.chance(0.4) and g.opset >= 13:
        return g.op("GatherND", [x, indices], (count,) + x.dims[1:], bound=x.bound)
    flat = g.op("Reshape", [found, g.ints(-1)], (count,), "i64", bound=x.dims[0])
    return g.op("Gather", [x, flat], (count,) + x.dims[1:], bound=x.bound, axis=0)


def range_of_floats(g):
    if g.half:  # ONNX has no float16 Range
        return None
    count = g.random.randint(2, 9)
    return g.op("Range", [g.scalar(0.5), g.scalar(0.5 + 0.25 * count), g.scalar(0.25)], (count,))


def found_by_value(g):
    """What a computed condition finds: as many rows as it is true, then something of known dims again."""
    x = g.pick(lambda v: v.rank > 0 and 0 < v.size < 2000)
    test = x and condition(g, x)
    if not test or test.dims != x.dims or g.parent:
        return None
    found = g.node("NonZero", [test])[0]
    if g.chance(0.5) or g.opset < 13:
        return g.op("ReduceSum", [found, g.ints(1)] if g.opset >= 13 else [found], (x.rank,), "i64", bound=10 ** 5,
                    keepdims=0, **({} if g.opset >= 13 else {"axes": [1]}))
    indices = g.node("Transpose", [found], perm=[1, 0])[0]
    rows = g.node("Tanh", [g.node("GatherND", [x, indices])[0]])[0]
    if g.chance(0.5):
        rows = g.node("Mul", [rows, g.scalar(0.5)])[0]
    total = g.op("ReduceSum", [rows, g.ints(0)], (), keepdims=0)
    return g.op("Mul", [total, g.scalar(1 / x.size)], ())


def distinct(g):
    """Unique of whole numbers; its outputs' sizes are data's, so only sums of them go on."""
    x = g.pick(lambda v: v.rank > 0 and 0 < v.size < 2000, type=("i64", "i32", "f"), whole=True)
    if not x or g.parent:
        return None
    names = g.node("Unique", [x], 4, sorted=1)
    back = g.op("Reshape", [names[2], g.ints(-1)], (x.size,), "i64", bound=x.size)
    again = g.op("Gather", [names[0], back], (x.size,), x.type, x.bound)
    counts = g.node("Cast", [names[3]], to=g.onnx("f"))[0]
    total = g.op("ReduceSum", [counts, g.ints(0)] if g.opset >= 13 else [counts], (), bound=x.size, keepdims=0,
                 **({} if g.opset >= 13 else {"axes": [0]}))
    return g.random.choice([again, total])
