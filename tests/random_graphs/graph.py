"""A graph that grows step by step: its values with their types and dims, constants, inputs with their elements, and
what the oracle has to check before it trusts the outputs.

Two kinds of values. Floats that came out of arithmetic differ in their last bits from engine to engine; whatever jumps
(a rounding, a comparison, an order) may take them only with a `check`, and the oracle drops the graph where an element
is nearer to the jump than the margin. *Whole* values (`bound` is set: whole numbers of at most that magnitude) are the
same everywhere, ties included, and may go anywhere.
"""
import dataclasses
import random

import numpy as np
from onnx import TensorProto as T, helper, numpy_helper

# Our names of element types. "f" is the model's float type: float32, or float16 in a half-precision model.
NUMPY = {"f": np.float32, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64,
         "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_, "f16": np.float16, "f64": np.float64}
ONNX = {"f": T.FLOAT, "i64": T.INT64, "i32": T.INT32, "i16": T.INT16, "i8": T.INT8, "u64": T.UINT64, "u32": T.UINT32,
        "u16": T.UINT16, "u8": T.UINT8, "bool": T.BOOL, "f16": T.FLOAT16, "f64": T.DOUBLE}
INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")

MOST_ELEMENTS = 40000  # of a value: graphs are many and small
WHOLE_LIMIT = 1000  # of whole floats: float16 holds such numbers exactly


@dataclasses.dataclass(frozen=True)
class Value:
    name: str
    type: str
    dims: tuple
    bound: float = None

    @property
    def rank(self):
        return len(self.dims)

    @property
    def size(self):
        return int(np.prod(self.dims, dtype=np.int64))


class Graph:
    """One graph under construction; `child` makes one for a body, which sees the values of its parent."""

    def __init__(self, seed, opset, half=False, float16=False, parent=None):
        self.parent = parent
        self.opset, self.half, self.float16 = opset, half, float16
        self.random = parent.random if parent else random.Random(seed)
        self.noise = parent.noise if parent else np.random.RandomState(seed)
        self.counter = parent.counter if parent else [0]
        self.nodes, self.initializers, self.values = [], [], []
        self.inputs = []  # (value, declared dims, elements, elements of the second data set)
        self.checks, self.probes = [], []
        self.constant_nodes = False
        self.most_elements = parent.most_elements if parent else MOST_ELEMENTS
        # whether the second data set may have a batch of 0
        self.may_be_empty = parent.may_be_empty if parent else False
        self.symbols = {}  # name: (size, size in the second data set)

    def child(self):
        return Graph(0, self.opset, self.half, self.float16, self)

    # -- names, nodes, values ------------------------------------------------------------------------------------------

    def name(self, prefix="v"):
        self.counter[0] += 1
        return f"{prefix}{self.counter[0]}"

    def node(self, kind, inputs, outputs=1, **attributes):
        """Adds a node of values, names or None (an input left out); returns the names of its outputs."""
        names = [self.name() for _ in range(outputs)]
        taken = ["" if i is None else getattr(i, "name", i) for i in inputs]
        while taken and not taken[-1]:
            taken.pop()
        self.nodes.append(helper.make_node(kind, taken, names, name=f"{kind}_{names[0]}", **attributes))
        return names

    def value(self, name, type, dims, bound=None):
        made = Value(name, type, tuple(int(d) for d in dims), bound)
        self.values.append(made)
        return made

    def op(self, kind, inputs, dims, type="f", bound=None, **attributes):
        """A node of one output of these dims."""
        return self.value(self.node(kind, inputs, **attributes)[0], type, dims, bound)

    # -- constants and inputs ------------------------------------------------------------------------------------------

    def const(self, elements, type="f", bound=None):
        elements = np.asarray(elements)
        array = elements.astype(self.numpy(type))
        name = self.name("c")
        self.initializers.append(numpy_helper.from_array(array, name))
        return Value(name, type, array.shape, bound)

    def ints(self, *elements):
        """A one-dimensional int64 constant: axes, shapes, indices."""
        return self.const(np.array(elements, np.int64), "i64")

    def weight(self, *dims, scale=None):
        """Normal elements, by default scaled so that a product with them keeps the magnitude of its input."""
        fan = float(np.prod(dims[1:])) if len(dims) > 1 else 1.0
        scale = scale if scale is not None else 1 / np.sqrt(max(fan, 1.0))
        return self.const(self.noise.randn(*[int(d) for d in dims]) * scale)

    def scalar(self, number, type="f"):
        return self.const(np.array(number), type)

    def numpy(self, type):
        return np.float16 if type == "f" and self.float16 else NUMPY[type]

    def onnx(self, type):
        return T.FLOAT16 if type == "f" and self.float16 else ONNX[type]

    def input(self, type, declared, make, bound=None):
        """A graph input. `declared`: sizes, or names of symbols; `make(dims)` gives elements, once for each data
        set."""
        root = self
        while root.parent:
            root = root.parent
        dims = [root.symbols[d][0] if isinstance(d, str) else d for d in declared]
        other = [root.symbols[d][1] if isinstance(d, str) else d for d in declared]
        made = Value(root.name("in"), type, tuple(dims), bound)
        arrays = [np.asarray(make(d)).astype(root.numpy(type)).reshape(d) for d in (dims, other)]
        root.inputs.append((made, declared, *arrays))
        root.values.append(made)
        return made

    def free_dim(self, size, role):
        """A dim of an input: perhaps a symbol, which the second data set gives another size."""
        if self.random.random() < 0.5:
            return size
        name = role
        while name in self.symbols and self.symbols[name][0] != size:
            name += "_"
        empty = role == "batch" and self.may_be_empty and self.chance(0.1)
        other = 0 if empty else size + self.random.choice([0, 1, 2, size])
        self.symbols.setdefault(name, (size, other))
        return name

    # -- choosing ------------------------------------------------------------------------------------------------------

    def visible(self):
        return (self.parent.visible() if self.parent else []) + self.values

    def pick(self, fits=lambda v: True, type="f", whole=None):
        """A value of this type, most likely a late one; `whole`: only (True) or no (False) whole numbers. None if there
        is none."""
        types = (type,) if isinstance(type, str) else type
        found = [v for v in self.visible()
                 if v.type in types and (whole is None or (v.bound is not None) == whole) and fits(v)]
        late = [v for v in found if v in self.values[-14:]]
        return self.random.choice(late or found) if found else None

    def same(self, x):
        """A value of the same type and dims, perhaps x itself."""
        return self.random.choice([v for v in self.visible() if v.type == x.type and v.dims == x.dims] or [x])

    def chance(self, p):
        return self.random.random() < p

    # -- what jumps ----------------------------------------------------------------------------------------------------

    def may_jump(self, *values):
        """Whether a jump in these values can be checked: no body's can, and half precision is too coarse for any
        margin."""
        return all(v.bound is not None for v in values) or not (self.half or self.parent)

    def check(self, kind, value, margin=1e-4, **more):
        """The oracle drops the graph where `value` is nearer than `margin` to a jump: "half" (k + 0.5), "whole" (k),
        "zero", "order" (two elements along `axis` are equal)."""
        if getattr(value, "bound", None) is None:
            self.checks.append({"kind": kind, "value": getattr(value, "name", value), "margin": margin, **more})

    def beside(self, parts, joined, axis):
        """The oracle drops the data set where parts do not fit beside each other along `axis`: ONNX Runtime takes empty
        ones all the same."""
        if not self.parent:
            self.checks.append({"kind": "beside", "value": joined.name, "parts": {p.name: p.dims for p in parts},
                                "axis": axis})
        return joined

    def needs(self, kind, value, **more):
        """The oracle drops the data set where `value` is not so: "elements" (it has some), "even" (its dim `axis`).
        Returns whether that can be checked: no body's values can."""
        if not self.parent:
            self.checks.append({"kind": kind, "value": value.name, **more})
        return not self.parent

    def probe(self, kind, inputs, **attributes):
        """A node that only the oracle runs; returns its output's name."""
        name = self.name("probe")
        self.probes.append(helper.make_node(kind, [getattr(i, "name", i) for i in inputs], [name], **attributes))
        return name

    # -- attempts ------------------------------------------------------------------------------------------------------

    def mark(self):
        return [len(part) for part in (self.nodes, self.values, self.checks, self.probes)]

    def back_to(self, mark):
        """Forgets all nodes after `mark`, inputs excepted: those of a step that grew too large."""
        kept = {v.name for v, *_ in self.inputs}
        inputs = [v for v in self.values[mark[1]:] if v.name in kept]
        for part, length in zip((self.nodes, self.values, self.checks, self.probes), mark):
            del part[length:]
        self.values += inputs

    def too_large(self, mark):
        return any(v.size > self.most_elements or v.rank > 6 for v in self.values[mark[1]:])


def broadcast(*dims):
    return tuple(np.broadcast_shapes(*dims))


def axes_input(g, kind, x, axes, dims, since, type="f", bound=None, **attributes):
    """An operator whose axes became an input in opset `since`."""
    axes = [int(a) for a in axes]
    if g.opset < since:
        return g.op(kind, [x], dims, type, bound, axes=axes, **attributes)
    return g.op(kind, [x, g.ints(*axes)], dims, type, bound, **attributes)


def unsqueeze(g, x, axes):
    dims = list(x.dims)
    for a in sorted(axes):
        dims.insert(a, 1)
    return axes_input(g, "Unsqueeze", x, axes, dims, 13, x.type, x.bound)


def squeeze(g, x, axes):
    return axes_input(g, "Squeeze", x, axes, [d for i, d in enumerate(x.dims) if i not in axes], 13, x.type, x.bound)


def reshape(g, x, dims, written=None):
    """`written`: the target as the constant says it, with 0 and -1."""
    return g.op("Reshape", [x, g.ints(*(written or dims))], dims, x.type, x.bound)


def cast(g, x, type, bound=None):
    return g.op("Cast", [x], x.dims, type, x.bound if bound is None else bound, to=g.onnx(type))


def reduce(g, kind, x, axes, keep=True, type="f", bound=None):
    axes = [a % x.rank for a in axes]
    dims = [1 if i in axes else d for i, d in enumerate(x.dims) if keep or i not in axes]
    return axes_input(g, kind, x, axes, dims, 13 if kind == "ReduceSum" else 18, type, bound, keepdims=int(keep))


def split(g, x, axis, sizes):
    """Split into these sizes; returns the parts."""
    equal = len(set(sizes)) == 1
    if g.opset < 13:
        names = g.node("Split", [x], len(sizes), axis=axis, **({} if equal and g.chance(0.5) else {"split": sizes}))
    elif g.opset >= 18 and equal and g.chance(0.5):
        names = g.node("Split", [x], len(sizes), axis=axis, num_outputs=len(sizes))
    else:
        names = g.node("Split", [x] + ([] if equal and g.opset < 18 and g.chance(0.5) else [g.ints(*sizes)]),
                       len(sizes), axis=axis)
    return [g.value(n, x.type, [s if i == axis % x.rank else d for i, d in enumerate(x.dims)], x.bound)
            for n, s in zip(names, sizes)]
