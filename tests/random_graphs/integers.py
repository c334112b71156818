"""Integer arithmetic: exact, so compared exactly. Bounds keep sums and products within their types."""
import numpy as np

from elementwise import can_broadcast
from graph import INTEGERS, broadcast, cast, reduce
from movement import token_input

WIDTH = {"i64": 63, "i32": 31, "i16": 15, "i8": 7, "u64": 64, "u32": 32, "u16": 16, "u8": 8}
MOST = 10 ** 6  # of results of arithmetic here


def limit(type):
    return min(MOST, 2 ** WIDTH[type] - 1)


def source(g, types=INTEGERS):
    """An integer value of one of these types; one is made where there is none."""
    x = g.pick(lambda v: v.size < 5000, type=types)
    if x and x.bound is not None and g.chance(0.85):
        return x
    type = g.random.choice(types)
    x = g.pick(lambda v: v.bound <= limit(type), whole=True) if g.chance(0.6) else None
    if x and type[0] != "u":
        return cast(g, x, type)
    if g.chance(0.4) and not g.parent:
        return cast(g, token_input(g), type)
    dims = g.pick().dims
    low, high = (0 if type[0] == "u" else -100), 100
    if int(np.prod(dims)) > 5000:
        dims = dims[-1:]
    made = g.const(g.noise.randint(low, high + 1, dims), type, bound=100)
    return g.op("Identity", [made], made.dims, type, 100)


def partner(g, x, low=None, high=None):
    """A second operand: a value of the same dims or one that broadcasts, or a constant between the bounds."""
    fits = [v for v in g.visible() if v.type == x.type and v.bound is not None and can_broadcast(v.dims, x.dims)]
    if low is None and fits and g.chance(0.6):
        return g.random.choice(fits)
    low = low if low is not None else (0 if x.type[0] == "u" else -9)
    high = high if high is not None else 9
    dims = [d if g.chance(0.5) else 1 for d in x.dims]
    dims = dims[g.random.randint(0, len(dims)):] if g.chance(0.5) else dims
    elements = g.noise.randint(low, high + 1, dims)
    return g.const(elements, x.type, bound=max(abs(low), abs(high)))


# The opset from which on an operator takes 64- and 32-bit integers, and all the others; None: never.
SINCE = {"Add": (7, 14), "Sub": (7, 14), "Mul": (7, 14), "Div": (7, 14), "Max": (12, 12), "Min": (12, 12),
         "Clip": (12, 12), "Pow": (12, None)}


def takes(g, kind, type):
    wide, narrow = SINCE.get(kind, (0, 0))
    since = wide if type in ("i64", "i32", "u64", "u32") else narrow
    return since is not None and g.opset >= since and not (kind == "Pow" and type[0] == "u")


def shrink(g, x):
    """x modulo a small number, which keeps bounds small."""
    return g.op("Mod", [x, g.const(g.random.choice([3, 7, 10, 16, 97]), x.type)], x.dims, x.type, 97)


def arithmetic(g):
    x = source(g, g.random.choice([("i64", "i32"), ("i64", "i32"), INTEGERS]))
    if x.bound * 9 > limit(x.type):
        return shrink(g, x)
    kind = g.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", "Abs", "Neg", "Sign", "Pow", "Clip"])
    if not takes(g, kind, x.type):
        kind = "Mod"
    y = partner(g, x)
    dims = broadcast(x.dims, y.dims)
    if kind == "Add":
        fits = x.bound + y.bound <= limit(x.type)
        return g.op(kind, [x, y], dims, x.type, x.bound + y.bound) if fits else shrink(g, x)
    if kind == "Sub" and x.type[0] != "u":
        fits = x.bound + y.bound <= limit(x.type)
        return g.op(kind, [x, y], dims, x.type, x.bound + y.bound) if fits else shrink(g, x)
    if kind == "Mul":
        fits = x.bound * y.bound <= limit(x.type)
        return g.op(kind, [x, y], dims, x.type, x.bound * y.bound) if fits else shrink(g, x)
    if kind in ("Max", "Min"):
        return g.op(kind, [x, y], dims, x.type, max(x.bound, y.bound))
    if kind in ("Div", "Mod"):
        return division(g, x, kind)
    if kind == "Pow" and x.bound ** 2 <= limit(x.type):
        return g.op(kind, [x, g.const(2, g.random.choice([x.type, "i64", "f"]))], x.dims, x.type, x.bound ** 2)
    if kind == "Clip":
        return g.op(kind, [x, g.const(2, x.type), g.const(50, x.type)], x.dims, x.type, 50)
    if kind in ("Abs", "Neg", "Sign") and x.type[0] != "u":
        return g.op(kind, [x], x.dims, x.type, 1 if kind == "Sign" else x.bound)
    fits = takes(g, "Add", x.type)
    return g.op("Add", [x, g.const(1, x.type)], x.dims, x.type, x.bound + 1) if fits else shrink(g, x)


def division(g, x, kind):
    y = partner(g, x, 1, 9)
    if x.type[0] != "u" and g.chance(0.4):
        y = g.const(-g.noise.randint(1, 9, y.dims), x.type, bound=9)
    dims = broadcast(x.dims, y.dims)
    if kind == "Div":
        return g.op(kind, [x, y], dims, x.type, x.bound)
    return g.op(kind, [x, y], dims, x.type, 9, fmod=int(g.chance(0.4)))


def bits(g):
    x = source(g, ("u8", "u32", "u64", "i32", "i64", "u16", "i8"))
    most = 2 ** int(np.ceil(np.log2(x.bound + 1))) if x.bound else 1
    if g.opset >= 18 and g.chance(0.7):
        if g.chance(0.2):
            return shrink(g, g.op("BitwiseNot", [x], x.dims, x.type, limit(x.type)))
        y = partner(g, x, 0, 9)
        most = 2 ** int(np.ceil(np.log2(max(x.bound, y.bound) + 1)))
        return g.op(g.random.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [x, y], broadcast(x.dims, y.dims),
                    x.type, most)
    if x.type not in ("u8", "u32", "u64"):
        return None
    y = partner(g, x, 0, 3)
    left = g.chance(0.5) and x.bound * 8 <= limit(x.type)
    return g.op("BitShift", [x, y], broadcast(x.dims, y.dims), x.type, most * 8 if left else most,
                direction="LEFT" if left else "RIGHT")


def comparison(g):
    x = source(g, ("i64", "i32", "i64", "u8"))
    y = partner(g, x)
    kind = g.random.choice(["Equal", "Greater", "Less"] + (["GreaterOrEqual", "LessOrEqual"] if g.opset >= 12 else []))
    test = g.op(kind, [x, y], broadcast(x.dims, y.dims), "bool")
    if g.chance(0.4):
        z = partner(g, x)
        dims = broadcast(test.dims, x.dims)
        if can_broadcast(dims, z.dims):
            return g.op("Where", [test, x, z], broadcast(dims, z.dims), x.type, max(x.bound, z.bound))
    return test


def reduction(g):
    x = source(g, ("i64", "i32", "i8", "u8"))
    if not x.rank or min(x.dims) < 1:
        return None
    kind = g.random.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "CumSum", "ArgMax", "ReduceL1",
                            "ReduceMean"])
    axes = sorted(g.random.sample(range(x.rank), g.random.randint(1, x.rank)))
    if kind == "CumSum":
        if x.bound * x.dims[0] > limit(x.type) or x.type not in ("i64", "i32"):
            return None
        return g.op(kind, [x, g.const(0, "i64")], x.dims, x.type, x.bound * x.dims[0])
    if kind == "ArgMax":
        return g.op(kind, [x], (1,) + x.dims[1:], "i64", x.dims[0], axis=0)
    if kind in ("ReduceMax", "ReduceMin"):
        return reduce(g, kind, x, axes, g.chance(0.5), x.type, x.bound)
    if x.type not in ("i64", "i32") or kind == "ReduceMean":
        return None
    if kind == "ReduceProd":
        x = g.op("Sign", [x], x.dims, x.type, 1)
    if x.bound * x.size > limit(x.type):
        return shrink(g, x)
    return reduce(g, kind, x, axes, g.chance(0.5), x.type, x.bound * x.size)


def conversion(g):
    x = source(g)
    if x.bound > 1000:
        return shrink(g, x)
    type = g.random.choice([t for t in INTEGERS + ("f", "f", "bool") if t == "bool" or t == "f" or x.bound <= limit(t)])
    if type[0] == "u" and x.type[0] != "u":
        x = g.op("Abs", [x], x.dims, x.type, x.bound)
    return cast(g, x, type, bound=1 if type == "bool" else None)


def product(g):
    """Integer matrix products of the plain MatMul."""
    x = source(g, ("i32", "i64", "u32"))
    if x.rank < 2 or x.dims[-1] > 128:
        return None
    if x.bound * 9 * x.dims[-1] > limit(x.type):
        return shrink(g, x)
    y = g.const(g.noise.randint(0 if x.type[0] == "u" else -9, 10, (x.dims[-1], 5)), x.type)
    return g.op("MatMul", [x, y], x.dims[:-1] + (5,), x.type, x.bound * 9 * x.dims[-1])


def to_float(g):
    x = source(g, ("i64", "i32", "u8", "i8"))
    if x.bound > 1000:
        x = shrink(g, x)
    y = cast(g, x, "f")
    return g.op("Mul", [y, g.scalar(0.0625)], y.dims) if x.bound > 8 else y
