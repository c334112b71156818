#!/usr/bin/env python3
"""Makes a small model of each kind and what it should answer: test cases for a checkout without ../shared.

usage: make_cases FOLDER      makes FOLDER/{convolutions,transformer,recurrent,control_flow,quantised}

A case has the layout of ONNX's own (model.onnx, test_data_set_0/input_0.pb …, output_0.pb …). While a model is put
together, NumPy computes each node beside it: an answer that owes nothing to troupe. Sums are float64. Numbers are
seeded.
"""
import math
import pathlib
import sys

import numpy as np

from make_models import CODES, field, graph, model, node, tensor, value_info


class case:
    """A model under construction: `call` adds a node, given what NumPy says that it gives."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.outputs, self.values = [], [], [], [], {}

    def random(self, *dims, scale=0.4):
        return (self.rng.standard_normal(dims) * scale).astype(np.float32)

    def input(self, name, array, dims):
        self.values[name] = array
        self.inputs.append((name, dims))
        return name

    def weight(self, array):
        name = f"w{len(self.initializers)}"
        self.values[name] = np.asarray(array)
        self.initializers.append(tensor(name, self.values[name]))
        return name

    def call(self, op, inputs, result, **attributes):
        results = result if isinstance(result, tuple) else (result,)
        names = [f"{op}{len(self.nodes)}.{i}" for i in range(len(results))]
        self.nodes.append(node(op, inputs, names, f"node{len(self.nodes)}", **attributes))
        self.values.update((n, np.asarray(r)) for n, r in zip(names, results))
        return names if isinstance(result, tuple) else names[0]

    def of(self, *names):
        """Floats as float64, others as they are."""
        arrays = [self.values[n] for n in names]
        arrays = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
        return arrays[0] if len(names) == 1 else arrays

    def output(self, name, dims):
        self.outputs.append((name, dims))

    def write(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        codes = {name: CODES[self.values[name].dtype] for name, _ in self.inputs}
        ends = [[value_info(n, dims, codes.get(n, 1)) for n, dims in end] for end in (self.inputs, self.outputs)]
        (folder / "model.onnx").write_bytes(model(folder.name, self.nodes, self.initializers, *ends))
        for kind, names in (("input", self.inputs), ("output", self.outputs)):
            for i, (name, _) in enumerate(names):
                array = self.values[name]
                array = array.astype(np.float32) if array.dtype == np.float64 else array
                (data / f"{kind}_{i}.pb").write_bytes(tensor(name, array))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def windows(x, size, stride, pad, fill=0):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]


def convolve(x, w, stride=1, pad=0, groups=1):
    x = windows(x, w.shape[2], stride, pad)
    parts = [np.einsum("ncyxij,ocij->noyx", p, q) for p, q in zip(np.split(x, groups, 1), np.split(w, groups))]
    return np.concatenate(parts, 1)


def convolutions(c):
    def conv(x, filters, size, stride, pad, groups=1):
        w, b = c.weight(c.random(filters, c.values[x].shape[1] // groups, size, size)), c.weight(c.random(filters))
        y = convolve(*c.of(x, w), stride, pad, groups) + c.of(b)[:, None, None]
        return c.call("Conv", [x, w, b], y, kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4,
                      group=groups)

    def norm(x):
        n = c.values[x].shape[1]
        scale, bias, mean, var = map(c.weight, (1 + c.random(n), c.random(n), c.random(n), np.abs(c.random(n)) + 0.5))
        s, b, m, v = (a[:, None, None] for a in c.of(scale, bias, mean, var))
        return c.call("BatchNormalization", [x, scale, bias, mean, var], (c.of(x) - m) / np.sqrt(v + 1e-5) * s + b,
                      epsilon=1e-5)

    def relu(x):
        return c.call("Relu", [x], np.maximum(c.of(x), 0))

    x = c.input("image", c.random(2, 3, 18, 18, scale=1), ["batch", 3, 18, 18])
    x = relu(norm(conv(x, 8, 3, 2, 1)))
    x = c.call("MaxPool", [x], windows(c.of(x), 3, 1, 1, -np.inf).max((-2, -1)), kernel_shape=[3, 3], pads=[1] * 4)
    y = conv(relu(norm(conv(x, 8, 3, 1, 1, groups=8))), 8, 1, 1, 0)
    x = relu(c.call("Add", [x, y], c.of(x) + c.of(y)))
    x = c.call("GlobalAveragePool", [x], c.of(x).mean((2, 3), keepdims=True))
    x = c.call("Flatten", [x], c.of(x).reshape(2, -1))
    w, b = c.weight(c.random(10, 8, scale=0.05)), c.weight(c.random(10))
    x = c.call("Gemm", [x, w, b], c.of(x) @ c.of(w).T + c.of(b), transB=1)
    c.output(c.call("Softmax", [x], softmax(c.of(x))), ["batch", 10])


def transformer(c):
    width, heads, positions = 32, 4, 7

    def linear(x, columns):
        w, b = c.weight(c.random(c.values[x].shape[-1], columns, scale=0.2)), c.weight(c.random(columns))
        x = c.call("MatMul", [x, w], c.of(x) @ c.of(w))
        return c.call("Add", [x, b], c.of(x) + c.of(b))

    def norm(x):
        scale, bias = c.weight(1 + c.random(width)), c.weight(c.random(width))
        centred = c.of(x) - c.of(x).mean(-1, keepdims=True)
        y = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * c.of(scale) + c.of(bias)
        return c.call("LayerNormalization", [x, scale, bias], y, epsilon=1e-5)

    def split(x, order):
        dims = c.weight(np.array([0, 0, heads, width // heads]))
        x = linear(x, width)
        x = c.call("Reshape", [x, dims], c.of(x).reshape(2, positions, heads, -1))
        return c.call("Transpose", [x], c.of(x).transpose(order), perm=order)

    def attention(x):
        q, k, v = split(x, [0, 2, 1, 3]), split(x, [0, 2, 3, 1]), split(x, [0, 2, 1, 3])
        scale = c.weight(np.float32((width // heads) ** -0.5))
        later = c.weight(np.triu(np.full((positions, positions), -1e9, np.float32), 1))
        s = c.call("MatMul", [q, k], c.of(q) @ c.of(k))
        s = c.call("Mul", [s, scale], c.of(s) * c.of(scale))
        s = c.call("Add", [s, later], c.of(s) + c.of(later))
        s = c.call("Softmax", [s], softmax(c.of(s)))
        y = c.call("MatMul", [s, v], c.of(s) @ c.of(v))
        y = c.call("Transpose", [y], c.of(y).transpose(0, 2, 1, 3), perm=[0, 2, 1, 3])
        y = c.call("Reshape", [y, c.weight(np.array([0, 0, width]))], c.of(y).reshape(2, positions, width))
        return linear(y, width)

    def gelu(x):
        root, half, one = (c.weight(np.float32(v)) for v in (2 ** 0.5, 0.5, 1))
        y = c.call("Div", [x, root], c.of(x) / c.of(root))
        y = c.call("Erf", [y], np.vectorize(math.erf)(c.of(y)))
        y = c.call("Add", [y, one], c.of(y) + 1)
        y = c.call("Mul", [x, y], c.of(x) * c.of(y))
        return c.call("Mul", [y, half], c.of(y) * 0.5)

    tokens = c.input("tokens", c.rng.integers(0, 20, (2, positions)), ["batch", positions])
    table = c.weight(c.random(20, width, scale=1))
    x = c.call("Gather", [table, tokens], c.of(table)[c.values[tokens]])
    for _ in range(2):
        y = attention(norm(x))
        x = c.call("Add", [x, y], c.of(x) + c.of(y))
        y = linear(gelu(linear(norm(x), 2 * width)), width)
        x = c.call("Add", [x, y], c.of(x) + c.of(y))
    c.output(norm(x), ["batch", positions, width])


def recurrent(c):
    steps, batch, size, hidden = 6, 2, 5, 8

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def lstm(x, w, r, b):
        """One direction, gates in the order i o f c."""
        h = state = np.zeros((batch, hidden))
        out = []
        for at in x:
            i, o, f, g = np.split(at @ w.T + h @ r.T + b[:4 * hidden] + b[4 * hidden:], 4, -1)
            state = sigmoid(f) * state + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(state)
            out.append(h)
        return np.stack(out)

    x = c.input("x", c.random(steps, batch, size, scale=1), ["steps", "batch", size])
    w, r, b = (c.weight(c.random(2, *dims)) for dims in ((4 * hidden, size), (4 * hidden, hidden), (8 * hidden,)))
    forward, backward = (list(parts) for parts in zip(*c.of(w, r, b)))
    y = np.stack([lstm(c.of(x), *forward), lstm(c.of(x)[::-1], *backward)[::-1]], 1)
    y = c.call("LSTM", [x, w, r, b], y, direction="bidirectional", hidden_size=hidden)
    y = c.call("Transpose", [y], c.of(y).transpose(0, 2, 1, 3), perm=[0, 2, 1, 3])
    y = c.call("Reshape", [y, c.weight(np.array([0, 0, -1]))], c.of(y).reshape(steps, batch, -1))
    w = c.weight(c.random(2 * hidden, 3))
    y = c.call("MatMul", [y, w], c.of(y) @ c.of(w))
    c.output(c.call("Tanh", [y], np.tanh(c.of(y))), ["steps", "batch", 3])


def control_flow(c):
    """A Loop whose trips an input states, around an If that looks at the state; both use a weight of the graph around
    them."""
    x = c.input("x", c.random(3, 4, scale=1), [3, 4])
    trips = c.input("trips", np.array(5), [])
    w, go, limit = c.weight(c.random(4, 4)), c.weight(np.array(True)), c.weight(np.float32(1))

    def branch(op, name):
        return graph(name, [node(op, ["product"], [name + ".y"])], [], [], [value_info(name + ".y", [3, 4])])

    body = graph("body", [
        node("MatMul", ["state", w], ["product"]),
        node("ReduceMax", ["product"], ["largest"], keepdims=0),
        node("Greater", ["largest", limit], ["large"]),
        node("If", ["large"], ["next"], then_branch=branch("Tanh", "then"), else_branch=branch("Neg", "otherwise")),
        node("ReduceSum", ["next"], ["total"], keepdims=0),
        node("Identity", ["more"], ["more_out"]),
    ], [], [value_info("i", [], 7), value_info("more", [], 9), value_info("state", [3, 4])],
        [value_info("more_out", [], 9), value_info("next", [3, 4]), value_info("total", [])])

    state, totals = c.of(x), []
    for _ in range(5):
        product = state @ c.of(w)
        state = np.tanh(product) if product.max() > 1 else -product
        totals.append(state.sum())
    last, sums = c.call("Loop", [trips, go, x], (state, np.array(totals)), body=body)
    c.output(last, [3, 4])
    c.output(sums, ["trips"])


def quantised(c):
    """Bytes: a convolution and a product of quantised operands, between QuantizeLinear and DequantizeLinear."""
    def scale(value):
        return c.weight(np.float32(value))

    def zero(value, kind=np.uint8):
        return c.weight(kind(value))

    def saturate(x, point):
        return np.clip(np.rint(x) + int(c.values[point]), 0, 255).astype(np.uint8)

    x = c.input("x", c.random(2, 3, 9, 9, scale=1), ["batch", 3, 9, 9])
    sx, zx, sw, zw, sy, zy = scale(0.02), zero(120), scale(0.01), zero(0, np.int8), scale(0.05), zero(100)
    x = c.call("QuantizeLinear", [x, sx, zx], saturate(c.values[x] / c.values[sx], zx))
    w = c.weight(c.rng.integers(-90, 90, (8, 3, 3, 3)).astype(np.int8))
    sums = convolve(c.values[x].astype(np.int64) - 120, c.values[w].astype(np.int64), 2)
    y = saturate(sums * (c.of(sx) * c.of(sw) / c.of(sy)), zy)
    y = c.call("QLinearConv", [x, sx, zx, w, sw, zw, sy, zy], y, kernel_shape=[3, 3], strides=[2, 2])
    y = c.call("Flatten", [y], c.values[y].reshape(2, -1))
    w, so, zo = c.weight(c.rng.integers(-90, 90, (8 * 16, 5)).astype(np.int8)), scale(0.2), zero(128)
    sums = (c.values[y].astype(np.int64) - 100) @ c.values[w].astype(np.int64)
    z = saturate(sums * (c.of(sy) * c.of(sw) / c.of(so)), zo)
    z = c.call("QLinearMatMul", [y, sy, zy, w, sw, zw, so, zo], z)
    c.output(c.call("DequantizeLinear", [z, so, zo], (c.values[z].astype(np.float64) - 128) * c.of(so)), ["batch", 5])


if __name__ == "__main__":
    for seed, make in enumerate((convolutions, transformer, recurrent, control_flow, quantised)):
        made = case(seed)
        make(made)
        made.write(pathlib.Path(sys.argv[1]) / make.__name__)
