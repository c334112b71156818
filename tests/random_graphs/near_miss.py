"""Near misses: a finished graph with a change or two that fusions have to notice. An exporter's pattern becomes one
that looks like it: an intermediate that something else reads too, a constant that a caller gives, an operand that
is another value, a node in between.

Changes keep types and dims, so that all that was said of the graph's values still holds.
"""
import numpy as np
from onnx import helper, numpy_helper

from graph import Value


def floats_between(g):
    """Float values that nodes make, of known dims, each with the index of the node that makes it."""
    made = {name: index for index, node in enumerate(g.nodes) for name in node.output}
    return [(v, made[v.name]) for v in g.values if v.type == "f" and v.name in made]


def readers(g, value):
    reads = [(index, slot, name) for index, node in enumerate(g.nodes) for slot, name in enumerate(node.input)]
    return [(index, slot) for index, slot, name in reads if name == value.name]


def insert(g, index, kind, inputs, value):
    """Puts a node before node `index` whose output is like `value`; returns that."""
    name = g.name()
    node = helper.make_node(kind, [i.name for i in inputs], [name], name=f"{kind}_{name}")
    g.nodes.insert(index, node)
    made = Value(name, value.type, value.dims, value.bound)
    g.values.append(made)
    return made


def show(g):
    """An intermediate is an output too."""
    value, _ = g.random.choice(floats_between(g))
    g.op("Identity", [value], value.dims, bound=value.bound)


def read_again(g):
    """Something else reads an intermediate."""
    value, _ = g.random.choice(floats_between(g))
    kind = g.random.choice(["Relu", "Neg", "Shape"])
    if kind == "Shape":
        g.op("Shape", [value], [value.rank], "i64", bound=g.most_elements)
    else:
        g.op(kind, [value], value.dims, bound=value.bound)


def float_constants(g, fits):
    """Initializers of floats that only nodes read whose operands may have any dims and come from anywhere."""
    plain = {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "MatMul", "Gemm"}
    found = []
    for tensor in g.initializers:
        read = [node for node in g.nodes if tensor.name in node.input]
        if read and tensor.data_type == g.onnx("f") and all(n.op_type in plain for n in read) and fits(tensor):
            found.append(tensor)
    return found


def give(g):
    """A caller gives a value that was a constant."""
    found = float_constants(g, lambda t: True)
    if not found:
        return
    tensor = g.random.choice(found)
    elements = numpy_helper.to_array(tensor)
    g.initializers.remove(tensor)
    g.inputs.append((Value(tensor.name, "f", elements.shape), list(elements.shape), elements, elements))


def add_ones(g):
    """A number gets dims, a vector leading ones: broadcasting does the same."""
    found = float_constants(g, lambda t: len(t.dims) == 0 or (len(t.dims) == 1 and t.dims[0] > 1))
    for tensor in g.random.sample(found, min(1, len(found))):
        reads = [node for node in g.nodes if tensor.name in node.input]
        ranks = {v.name: v.rank for v in g.values}
        others = [ranks.get(name, 0) for node in reads for name in node.input if name != tensor.name]
        if any(n.op_type in ("MatMul", "Gemm") for n in reads) or not others or min(others) <= len(tensor.dims):
            continue
        dims = [1] * (g.random.randint(len(tensor.dims) + 1, min(others)) - len(tensor.dims)) + list(tensor.dims)
        changed = numpy_helper.from_array(numpy_helper.to_array(tensor).reshape(dims), tensor.name)
        g.initializers[g.initializers.index(tensor)] = changed


def put_between(g):
    """A node that changes nothing stands between two others."""
    between = [(v, reader) for v, _ in floats_between(g) for reader in readers(g, v)]
    if not between:
        return
    value, (index, slot) = g.random.choice(between)
    kind = g.random.choice(["Identity", "Dropout", "Reshape"])
    if kind == "Reshape":
        size = insert(g, index, "Shape", [value], Value("", "i64", (value.rank,), g.most_elements))
        made = insert(g, index + 1, "Reshape", [value, size], value)
        index += 2
    else:
        made = insert(g, index, kind, [value], value)
        index += 1
    g.nodes[index].input[slot] = made.name


def read_another(g):
    """An operand is another value of the same dims that was there before."""
    found = []
    makers = dict((v.name, index) for v, index in floats_between(g))
    whole = {v.name: v for v in g.values}
    for index, node in enumerate(g.nodes):
        if node.op_type not in ("Add", "Sub", "Mul", "MatMul"):
            continue
        for slot, name in enumerate(node.input):
            was = whole.get(name)
            if was is None or was.type != "f" or was.bound is not None:
                continue
            like = [v for v in g.values if v.type == "f" and v.bound is None and v.dims == was.dims]
            like = [v for v in like if v.name != name and makers.get(v.name, -1) < index]
            found += [(node, slot, v) for v in like[-4:]]
    if found:
        node, slot, value = g.random.choice(found)
        node.input[slot] = value.name


CHANGES = [show, read_again, give, add_ones, put_between, read_another]


def change(g):
    """Makes some changes, most often one. The oracle checks the changed graph's elements."""
    for _ in range(g.random.choice([1, 1, 1, 2, 2, 3])):
        if floats_between(g):
            g.random.choice(CHANGES)(g)
