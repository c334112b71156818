#!/usr/bin/env python3
"""Writes the two small models of the loader's mutation test, small_cnn.onnx and small_transformer.onnx, and
decoder.onnx, whose state grows by a row in each step.

Needs only NumPy: ONNX files are protobuf messages, and `field` below writes the few kinds that they need. The numbers
are those of onnx.proto. Weights are seeded, so running this again writes the same bytes.
"""
import pathlib

import numpy as np

FLOAT, INT64 = 1, 7
CODES = {np.dtype(t): code for t, code in
         ((np.float32, FLOAT), (np.uint8, 2), (np.int8, 3), (np.int32, 6), (np.int64, INT64), (np.bool_, 9))}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """One field: an integer, or text, bytes or a message after its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + np.float32(value).tobytes()
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, array, raw=True):
    code = CODES[array.dtype]
    out = b"".join(field(1, d) for d in array.shape) + field(2, code) + field(8, name)
    if raw:
        return out + field(9, array.tobytes())
    if code == FLOAT:
        return out + field(4, array.tobytes())  # packed float_data
    return out + field(7, b"".join(varint(int(v)) for v in array.ravel()))  # packed int64_data


def attribute(name, value):
    out = field(1, name)
    if isinstance(value, int):
        return out + field(3, value) + field(20, 2)
    if isinstance(value, float):
        return out + field(2, value) + field(20, 1)
    if isinstance(value, bytes):  # a graph
        return out + field(6, value) + field(20, 5)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    return out + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, name="", **attributes):
    out = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name or outputs[0])
    return out + field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())


def value_info(name, dims, code=FLOAT):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, code) + field(2, shape)))


def graph(name, nodes, initializers, inputs, outputs):
    out = b"".join(field(1, n) for n in nodes) + field(2, name) + b"".join(field(5, t) for t in initializers)
    return out + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)


def model(*parts):
    return field(1, 8) + field(2, "troupe tests") + field(7, graph(*parts)) + field(8, field(1, "") + field(2, 17))


def small_cnn(rng):
    def weights(*dims):
        return (rng.standard_normal(dims) * 0.3).astype(np.float32)

    nodes = [
        node("Conv", ["image", "conv1.w", "conv1.b"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
        node("BatchNormalization", ["c1", "bn.scale", "bn.bias", "bn.mean", "bn.var"], ["n1"], epsilon=1e-5),
        node("Relu", ["n1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "conv2.w"], ["c2"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=2),
        node("Relu", ["c2"], ["r2"]),
        node("Add", ["r2", "p1"], ["a2"]),
        node("GlobalAveragePool", ["a2"], ["g"]),
        node("Flatten", ["g"], ["f"], axis=1),
        node("Gemm", ["f", "fc.w", "fc.b"], ["logits"], transB=1, alpha=1.0, beta=1.0),
        node("Softmax", ["logits"], ["probabilities"], axis=-1),
    ]
    initializers = [
        tensor("conv1.w", weights(8, 1, 3, 3)), tensor("conv1.b", weights(8)),
        tensor("bn.scale", 1 + weights(8)), tensor("bn.bias", weights(8)),
        tensor("bn.mean", weights(8), raw=False), tensor("bn.var", np.abs(weights(8)) + 0.5, raw=False),
        tensor("conv2.w", weights(8, 4, 3, 3)), tensor("fc.w", weights(10, 8)), tensor("fc.b", weights(10)),
    ]
    return model("small_cnn", nodes, initializers, [value_info("image", ["batch", 1, 8, 8])],
                 [value_info("probabilities", ["batch", 10])])


def small_transformer(rng):
    width, heads, vocabulary = 16, 2, 20

    def weights(*dims):
        return (rng.standard_normal(dims) * 0.2).astype(np.float32)

    def integers(*values):
        return np.array(values, np.int64)

    nodes, initializers = [], [
        tensor("embedding", weights(vocabulary, width)), tensor("split_heads", integers(0, 0, heads, width // heads)),
        tensor("join_heads", integers(0, 0, width), raw=False), tensor("scale", np.float32([(width // heads) ** -0.5])),
        tensor("two", np.float32([2.0])), tensor("epsilon", np.float32([1e-5])),
    ]

    def linear(x, y, rows, columns):
        initializers.extend([tensor(y + ".w", weights(rows, columns)), tensor(y + ".b", weights(columns))])
        nodes.extend([node("MatMul", [x, y + ".w"], [y + ".m"]), node("Add", [y + ".m", y + ".b"], [y])])

    nodes.append(node("Gather", ["embedding", "tokens"], ["x"], axis=0))
    # Layer norm as exporters write it.
    nodes.extend([
        node("ReduceMean", ["x"], ["mean"], axes=[-1], keepdims=1), node("Sub", ["x", "mean"], ["centred"]),
        node("Pow", ["centred", "two"], ["squares"]), node("ReduceMean", ["squares"], ["var"], axes=[-1], keepdims=1),
        node("Add", ["var", "epsilon"], ["var_eps"]), node("Sqrt", ["var_eps"], ["std"]),
        node("Div", ["centred", "std"], ["normed"]),
    ])
    for part in "qkv":
        linear("normed", part, width, width)
        nodes.append(node("Reshape", [part, "split_heads"], [part + "4"]))
        nodes.append(node("Transpose", [part + "4"], [part + "t"], perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]))
    nodes.extend([
        node("MatMul", ["qt", "kt"], ["scores"]), node("Mul", ["scores", "scale"], ["scaled"]),
        node("Softmax", ["scaled"], ["attention"], axis=-1), node("MatMul", ["attention", "vt"], ["mixed"]),
        node("Transpose", ["mixed"], ["mixed_t"], perm=[0, 2, 1, 3]),
        node("Reshape", ["mixed_t", "join_heads"], ["joined"]),
    ])
    linear("joined", "projected", width, width)
    nodes.append(node("Add", ["x", "projected"], ["y"]))
    linear("y", "hidden", width, 2 * width)
    nodes.extend([node("Sigmoid", ["hidden"], ["gate"]), node("Mul", ["hidden", "gate"], ["silu"])])
    linear("silu", "down", 2 * width, width)
    nodes.append(node("Add", ["y", "down"], ["out"]))
    return model("small_transformer", nodes, initializers, [value_info("tokens", ["batch", "seq"], INT64)],
                 [value_info("out", ["batch", "seq", width])])


def decoder():
    nodes = [node("Concat", ["past", "x"], ["present"], axis=0), node("Mul", ["present", "mask"], ["masked"])]
    return model("decoder", nodes, [],
                 [value_info("x", [1, 4]), value_info("mask", ["total", 1]), value_info("past", ["past", 4])],
                 [value_info("masked", ["total", 4]), value_info("present", ["total", 4])])


if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
    (folder / "small_cnn.onnx").write_bytes(small_cnn(np.random.default_rng(1)))
    (folder / "small_transformer.onnx").write_bytes(small_transformer(np.random.default_rng(2)))
    (folder / "decoder.onnx").write_bytes(decoder())
