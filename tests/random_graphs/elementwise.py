"""Arithmetic element by element: functions, chains, broadcasts of all kinds, comparisons, roundings, casts."""
import numpy as np

from graph import WHOLE_LIMIT, broadcast, cast, unsqueeze

FUNCTIONS = ["Relu", "Sigmoid", "Tanh", "Erf", "LeakyRelu", "Elu", "Softplus", "Neg", "Abs", "Selu", "Softsign", "Sin",
             "Cos", "Atan", "HardSigmoid", "Celu", "Identity", "Asinh", "Sinh", "Cosh", "Asin", "Acos", "Atanh",
             "Acosh", "Tan", "Log", "Sqrt", "Exp", "Reciprocal", "Clip", "Clip", "Clip6", "HardSwish", "Mish", "Gelu",
             "Swish", "Dropout"]
NEWER = {"HardSwish": 14, "Mish": 18, "Gelu": 20, "Celu": 12, "Swish": 24}  # the opset that brought them
LINEAR = ("Neg", "Abs", "Relu", "Identity")  # of whole numbers they make whole numbers


def unary(g):
    x = g.pick()
    return function(g, x, g.random.choice(FUNCTIONS))


def function(g, x, kind):
    """A function of one operand, brought into its domain where it has one."""
    if kind in LINEAR:
        return g.op(kind, [x], x.dims, bound=x.bound)
    if g.opset < NEWER.get(kind, 0) or (kind == "Celu" and g.half):  # ONNX has no float16 Celu
        return g.op("Tanh", [x], x.dims)
    if kind in ("Sinh", "Cosh", "Exp", "Tan", "Asin", "Acos", "Atanh"):
        x = g.op("Tanh", [x], x.dims)
        if kind in ("Asin", "Acos", "Atanh"):
            x = g.op("Mul", [x, g.scalar(0.8)], x.dims)
    if kind in ("Acosh", "Log", "Sqrt", "Reciprocal"):
        x = g.op("Add", [g.op("Abs", [x], x.dims), g.scalar(1.5)], x.dims)
    if kind.startswith("Clip"):
        low, high = (0, 6) if kind == "Clip6" else g.random.choice([(-0.5, 1.5), (None, 0.75), (-0.25, None)])
        return g.op("Clip", [x, None if low is None else g.scalar(low), None if high is None else g.scalar(high)],
                    x.dims)
    attributes = {"LeakyRelu": {"alpha": 0.1}, "Elu": {"alpha": 0.7}, "Celu": {"alpha": 1.5},
                  "HardSigmoid": {"alpha": 0.3}, "Gelu": {"approximate": g.random.choice(["none", "tanh"])}}
    return g.op(kind, [x], x.dims, **attributes.get(kind, {}))


def gelu(g):
    """The three ways in which exporters write smooth gates."""
    x = g.pick()
    mode = g.random.choice(["erf", "sigmoid", "hard", "tanh"])
    if mode == "erf":
        y = g.op("Add", [g.op("Erf", [g.op("Div", [x, g.scalar(1.4142135)], x.dims)], x.dims), g.scalar(1)], x.dims)
        return g.op("Mul", [g.op("Mul", [x, y], x.dims), g.scalar(0.5)], x.dims)
    if mode == "sigmoid":
        return g.op("Mul", [x, g.op("Sigmoid", [x], x.dims)], x.dims)
    if mode == "hard":
        y = g.op("Clip", [g.op("Add", [x, g.scalar(3)], x.dims), g.scalar(0), g.scalar(6)], x.dims)
        return g.op("Mul", [x, g.op("Div", [y, g.scalar(6)], x.dims)], x.dims)
    cube = g.op("Pow", [g.op("Tanh", [x], x.dims), g.scalar(3)], x.dims)
    y = g.op("Tanh", [g.op("Add", [x, g.op("Mul", [cube, g.scalar(0.044715)], x.dims)], x.dims)], x.dims)
    return g.op("Mul", [g.op("Mul", [x, g.scalar(0.5)], x.dims), g.op("Add", [y, g.scalar(1)], x.dims)], x.dims)


def operand(g, x):
    """An operand for a node beside x: another value of its dims, one that broadcasts to it or with it, a constant of
    such dims."""
    kind = g.random.random()
    if kind < 0.4:
        return g.same(x)
    fits = [v for v in g.visible() if v.type == x.type and can_broadcast(v.dims, x.dims)]
    if kind < 0.65 and fits:
        return g.random.choice(fits)
    dims = [d if g.chance(0.5) else 1 for d in x.dims]
    if g.chance(0.4):
        dims = dims[g.random.randint(0, len(dims)):]
    if g.chance(0.1):  # x is the smaller operand
        dims = [3 if d == 1 and g.chance(0.5) else d for d in x.dims]
        dims = [2] + dims if g.chance(0.3) and len(dims) < 5 else dims
    return g.const(g.noise.randn(*dims) * 0.7)


def can_broadcast(a, b):
    return all(p == q or p == 1 or q == 1 for p, q in zip(a[::-1], b[::-1]))


def binary(g):
    x = g.pick()
    kind = g.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Add", "Mul", "Add", "Div", "Pow", "PRelu", "Mean",
                            "Sum"])
    if kind == "Pow":
        return power(g, x)
    if kind == "PRelu":
        slope = g.noise.rand(*([x.dims[1]] + [1] * (x.rank - 2))) if x.rank > 2 else g.noise.rand(*x.dims[-1:])
        return g.op("PRelu", [x, g.const(slope * 0.3)], x.dims)
    y = operand(g, x)
    if kind == "Div":
        y = g.op("Add", [g.op("Abs", [y], y.dims), g.scalar(1)], y.dims)
    pair = [x, y] if kind == "Div" or g.chance(0.6) else [y, x]
    dims = broadcast(x.dims, y.dims)
    if kind in ("Mean", "Sum", "Max", "Min") and g.chance(0.4):
        z = operand(g, x)
        pair, dims = pair + [z], broadcast(dims, z.dims) if can_broadcast(dims, z.dims) else None
    return g.op(kind, pair, dims) if dims is not None else None


def power(g, x):
    if g.chance(0.6):
        return g.op("Pow", [x, g.const(2, g.random.choice(["f", "f", "i64", "i32"]))], x.dims)
    base = g.op("Add", [g.op("Abs", [x], x.dims), g.scalar(0.3)], x.dims)
    exponent = g.scalar(1.5) if g.chance(0.6) else g.const(g.noise.rand(*x.dims[-1:]))
    return g.op("Pow", [base, exponent], x.dims)


def outer(g):
    """Both operands grow: [..., n, 1] with [..., 1, m]."""
    x = g.pick(lambda v: v.rank in (1, 2, 3) and v.size < 800)
    if not x:
        return None
    a, b = unsqueeze(g, x, [x.rank]), unsqueeze(g, x, [x.rank - 1])
    return g.op(g.random.choice(["Add", "Mul", "Sub", "Max"]), [a, b], broadcast(a.dims, b.dims))


def whole(g, x, limit=8):
    """Whole floats from any value; None where that would jump unchecked."""
    if x.bound is not None and x.type == "f":
        return x
    if not g.may_jump(x):
        return None
    kind = g.random.choice(["Round", "Floor", "Ceil"])
    scaled = g.op("Mul", [g.op("Clip", [x, g.scalar(-2), g.scalar(2)], x.dims), g.scalar(limit / 2)], x.dims)
    # The clip's own bounds are whole numbers, which every engine reaches exactly: they do not jump.
    g.check("half" if kind == "Round" else "whole", scaled, edges=[-limit, limit])
    return g.op(kind, [scaled], x.dims, bound=limit)


def rounding(g):
    x = g.pick()
    y = whole(g, x)
    if not y or y.bound > 100:
        return y
    return g.op(*g.random.choice([("Mul", [y, g.scalar(0.25)]), ("Add", [y, g.scalar(0.5)]), ("Sign", [y])]), y.dims)


def whole_arithmetic(g):
    """Floats that stay whole: exact in every precision."""
    x = g.pick(whole=True)
    if not x:
        return rounding(g)
    y = g.same(x)
    y = x if y.bound is None else y
    kind = g.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Abs", "Neg", "Relu", "Sign", "half"])
    if kind in ("Add", "Sub") and x.bound + y.bound <= WHOLE_LIMIT:
        return g.op(kind, [x, y], x.dims, bound=x.bound + y.bound)
    if kind == "Mul" and x.bound * y.bound <= WHOLE_LIMIT:
        return g.op(kind, [x, y], x.dims, bound=x.bound * y.bound)
    if kind in ("Max", "Min"):
        return g.op(kind, [x, y], x.dims, bound=max(x.bound, y.bound))
    if kind in ("Abs", "Neg", "Relu"):
        return g.op(kind, [x], x.dims, bound=x.bound)
    if kind == "half":  # ties, to even
        return g.op("Round", [g.op("Mul", [x, g.scalar(0.5)], x.dims)], x.dims, bound=x.bound)
    return g.op("Sign", [x], x.dims, bound=1)


def fmod(g):
    x = g.pick(whole=True)
    if not x:
        return None
    divisor = g.const(np.full(x.dims[-1:], g.random.choice([3, 4, 7])))
    return g.op("Mod", [x, divisor], x.dims, bound=7, fmod=1)


def condition(g, x):
    """A bool of x's dims; None where that would jump unchecked."""
    mask = g.pick(lambda v: can_broadcast(v.dims, x.dims) and broadcast(v.dims, x.dims) == x.dims, "bool")
    if mask and g.chance(0.5):
        return mask
    if not g.may_jump(x):
        return mask
    kind = g.random.choice(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"])
    if kind.endswith("Equal") and (x.bound is None or g.opset < 12):
        kind = "Greater"
    if x.bound is not None:
        return g.op(kind, [x, g.scalar(g.random.choice([-1, 0, 1]))], x.dims, "bool")
    threshold = g.scalar(g.random.uniform(-0.3, 0.5))
    g.check("zero", g.probe("Sub", [x, threshold]))
    return g.op(kind, [x, threshold] if g.chance(0.6) else [threshold, x], x.dims, "bool")


def where(g):
    x = g.pick()
    test = condition(g, x)
    if not test:
        return None
    y = g.scalar(0.25) if g.chance(0.4) else operand(g, x)
    dims = broadcast(x.dims, test.dims)
    if not can_broadcast(dims, y.dims):
        return None
    return g.op("Where", [test, *([x, y] if g.chance(0.5) else [y, x])], broadcast(dims, y.dims))


def logic(g):
    x = g.pick()
    a, b = condition(g, x), condition(g, x)
    if not a or not b:
        return None
    if g.chance(0.25):
        return g.op("Not", [a], a.dims, "bool")
    if g.chance(0.25):
        return cast(g, a, g.random.choice(["f", "i64", "i32", "u8"]), bound=1)
    return g.op(g.random.choice(["And", "Or", "Xor", "Equal"]), [a, b], broadcast(a.dims, b.dims), "bool")


def step_function(g):
    """Activations with a jump."""
    x = g.pick()
    if not g.may_jump(x) or x.bound is not None:
        return None
    kind = g.random.choice(["ThresholdedRelu", "Shrink", "Sign", "Bool"])
    if kind == "ThresholdedRelu":
        g.check("zero", g.probe("Sub", [x, g.scalar(0.4)]))
        return g.op(kind, [x], x.dims, alpha=0.4)
    if kind == "Shrink":
        g.check("zero", g.probe("Sub", [g.probe("Abs", [x]), g.scalar(0.5)]))
        return g.op(kind, [x], x.dims, lambd=0.5, bias=g.random.choice([0.0, 0.2]))
    g.check("zero", x)
    return g.op("Sign", [x], x.dims, bound=1) if kind == "Sign" else g.op("Cast", [x], x.dims, "bool", to=9)


def casts(g):
    """There and back through another type."""
    x = g.pick(lambda v: v.bound <= WHOLE_LIMIT, whole=True)
    if not x:
        return None
    kind = g.random.choice(["i32", "i64", "f16", "f64", "i8", "i16"])
    if x.bound > 100 and kind == "i8":
        kind = "i16"
    y = cast(g, x, kind)
    if g.opset >= 15 and g.chance(0.5):
        return g.op("CastLike", [y, x], x.dims, bound=x.bound)
    return cast(g, y, "f")


def not_a_number(g):
    """IsNaN and IsInf of ordinary numbers, and of infinities made on purpose."""
    x = g.pick()
    if g.chance(0.5):
        return g.op("IsNaN", [x], x.dims, "bool")
    x = g.pick(whole=True) or x
    if x.bound is None or (g.float16 or g.half):
        return None
    y = g.op("Div", [g.op("Sign", [x], x.dims, bound=1), g.scalar(0)], x.dims)  # infinite, or no number
    g.values.remove(y)
    return g.op(g.random.choice(["IsNaN", "IsInf"]), [y], x.dims, "bool")


def constants(g):
    """Operations on constants alone, which fold, and their use."""
    x = g.pick(lambda v: 0 < v.rank < 5 and v.size < 4000)
    if not x:
        return None
    order = list(range(x.rank))[::-1]
    folded = g.op("Transpose", [g.const(g.noise.randn(*x.dims[::-1]) * 0.5)], x.dims, perm=order)
    folded = function(g, folded, g.random.choice(["Tanh", "Abs", "Sigmoid", "Neg"]))
    return g.op(g.random.choice(["Add", "Mul", "Sub"]), [x, folded] if g.chance(0.5) else [folded, x], x.dims)


def again(g):
    """The same node a second time, and both of them together."""
    made = {v.name: v for v in g.values if v.type == "f"}
    nodes = [n for n in g.nodes if len(n.output) == 1 and n.output[0] in made
             and not any(a.HasField("g") for a in n.attribute)]
    if not nodes:
        return None
    node = g.random.choice(nodes)
    first = made[node.output[0]]
    copy = type(node).FromString(node.SerializeToString())
    copy.output[0] = g.name()
    copy.name = f"{node.op_type}_{copy.output[0]}"
    g.nodes.append(copy)
    second = g.value(copy.output[0], "f", first.dims, first.bound)
    return g.op(g.random.choice(["Add", "Max", "Mean"]), [first, second], first.dims)
