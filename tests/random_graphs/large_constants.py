"""Graphs over large constants: values that only constants decide are computed while a model is loaded, later as a
recipe of the device that wants them, or on the device, by size and work. Whichever it is, and whichever outputs are
asked for, the results are the same.

The values that a graph begins with are constants of 1 KiB to 4 MiB. The same steps as in other graphs work on them,
so every operator meets them. Inputs meet some of the results; the others are outputs as they are. Each graph
becomes several cases: all outputs, each of a few alone, a few together. ONNX Runtime, which computes all of it at
run time, is the oracle as for other graphs: what moves elements is compared exactly, and random elements tell one
part of a constant from another.
"""
import numpy as np

from graph import split

LARGEST = 1 << 20  # elements: 4 MiB of float32
KIB = 256  # elements of float32


def size(g, most):
    """A number of elements, any magnitude as likely as another."""
    return int(np.exp(g.random.uniform(np.log(KIB), np.log(most))))


def images(g):
    channels, batch = g.random.choice([1, 3, 4, 8, 16]), g.random.choice([1, 1, 2])
    side = max(2, int(np.sqrt(size(g, LARGEST) / (channels * batch))))
    return [batch, channels, side, side + g.random.choice([0, 0, 1, 3])]


def rows(g):
    columns, batch = g.random.choice([8, 12, 16, 32, 64, 96, 256]), g.random.choice([1, 2, 3])
    return [batch, max(1, size(g, LARGEST) // (columns * batch)), columns]


def matrix(g):
    columns = g.random.choice([16, 32, 48, 64, 192, 256, 768])
    return [max(1, size(g, LARGEST) // columns), columns]


def parts(g, x):
    """Several outputs of one node, as projections of attention are stored."""
    axis = g.random.choice([a for a, d in enumerate(x.dims) if d > 3] or [None])
    if axis is None:
        return
    count = g.random.randint(2, 4)
    length = x.dims[axis] // count
    last = x.dims[axis] - length * (count - 1)
    split(g, x, axis, [length] * (count - 1) + [last])


def begin(g):
    """The constants that take the place of inputs."""
    g.most_elements = 2 * LARGEST
    for dims in (images(g), rows(g), matrix(g)):
        constant = g.const(g.noise.randn(*dims))
        g.values.append(constant)
        if g.chance(0.5):
            parts(g, constant)
        if g.chance(0.3):
            whole = g.const(g.noise.randint(-9, 10, dims), "i64", bound=9)
            g.values.append(whole)


def end(g):
    """An input reads some of the results."""
    x = g.input("f", [1], lambda dims: g.noise.randn(*dims))
    made = {name for node in g.nodes for name in node.output}
    results = [v for v in g.values if v.type == "f" and v.name in made]
    for value in g.random.sample(results, min(len(results), 3)):
        g.op("Mul", [value, x], value.dims if value.rank else (1,))
    matrices = [v for v in results if v.rank == 2 and max(v.dims) <= 4096]
    for value in g.random.sample(matrices, min(len(matrices), 2)):
        vectors = g.input("f", [3, value.dims[0]], lambda dims: g.noise.randn(*dims) / np.sqrt(dims[1] or 1))
        g.op("MatMul", [vectors, value], (3, value.dims[1]))


def subsets(g, outputs):
    """The outputs of each case: all, a few of them alone, a few together."""
    chosen = [outputs]
    if len(outputs) > 1:
        chosen += [[v] for v in g.random.sample(outputs, min(len(outputs), 3))]
    if len(outputs) > 3:
        chosen.append(g.random.sample(outputs, 2))
    return chosen
