"""Writes the transformer of transformer.py as ONNX: a decoder with a cache.

Inputs: tokens [1, seq]; past.I.key and past.I.value [1, heads, past, size / heads] of each layer I. Outputs: logits [1,
seq, words], and present.I.key, present.I.value, which are the next step's past. Weights are stored as float16 and
computed with as float32.
"""
import numpy as np
import transformer
from onnx import TensorProto, helper, numpy_helper

HEAD_SIZE = transformer.SIZE // transformer.HEADS


class Writer:
    """Nodes and constants of a graph; each method adds one and returns the name of its output."""

    def __init__(self):
        self.nodes, self.constants = [], {}

    def constant(self, name, array):
        self.constants.setdefault(name, numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, name, array):
        return self("Cast", self.constant(name + ".half", array.astype(np.float16)), to=TensorProto.FLOAT)

    def __call__(self, operator, *inputs, output=None, **attributes):
        output = output or f"{operator}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output


def rms(g, x, gain):
    square = g("ReduceMean", g("Mul", x, x), axes=[-1], keepdims=1)
    root = g("Sqrt", g("Add", square, g.constant("epsilon", transformer.EPSILON)))
    return g("Mul", g("Div", x, root), gain)


def bias(g):
    """Returns the linear bias of the tokens that are new, [1, heads, seq, past + seq]."""
    length = lambda name, axis: g("Gather", g("Shape", name), g.constant(f"axis{axis}", np.int64(axis)), axis=0)
    past, new = length("past.0.key", 2), length("tokens", 1)
    end, one = g("Add", past, new), g.constant("one", np.int64(1))
    row = g("Unsqueeze", g("Range", past, end, one), g.constant("last", np.int64([1])))
    distance = g("Cast", g("Sub", row, g("Range", g.constant("axis0", np.int64(0)), end, one)), to=TensorProto.FLOAT)
    to_come = g("Less", distance, g.constant("zero", np.float32(0)))
    slopes = g.constant("slopes", -transformer.SLOPES[None, :, None, None])
    return g("Where", to_come, g.constant("never", np.float32(-1e9)), g("Mul", distance, slopes))


def attention(g, x, w, i, place):
    def heads(name):
        product = g("MatMul", x, g.weight(f"{i}.{name}", w[f"{i}.{name}"]))
        split = g("Reshape", product, g.constant("split", np.int64([1, -1, transformer.HEADS, HEAD_SIZE])))
        return g("Transpose", split, perm=[0, 2, 1, 3])

    key = g("Concat", f"past.{i}.key", heads("key"), axis=2, output=f"present.{i}.key")
    value = g("Concat", f"past.{i}.value", heads("value"), axis=2, output=f"present.{i}.value")
    scores = g("MatMul", heads("query"), g("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g("Add", g("Mul", scores, g.constant("scale", np.float32(HEAD_SIZE**-0.5))), place)
    mixed = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
    mixed = g("Reshape", mixed, g.constant("join", np.int64([1, -1, transformer.SIZE])))
    return g("MatMul", mixed, g.weight(f"{i}.out", w[f"{i}.out"]))


def write_model(w, characters, path):
    """Writes the model; what its tokens mean is in its metadata, `characters`."""
    g = Writer()
    words = g.weight("words", w["words"])
    place, x = bias(g), g("Gather", words, "tokens", axis=0)
    for i in range(transformer.LAYERS):
        normed = rms(g, x, g.weight(f"{i}.attention.gain", w[f"{i}.attention.gain"]))
        x = g("Add", x, attention(g, normed, w, i, place))
        normed = rms(g, x, g.weight(f"{i}.hidden.gain", w[f"{i}.hidden.gain"]))
        hidden = g("Relu", g("MatMul", normed, g.weight(f"{i}.up", w[f"{i}.up"])))
        x = g("Add", x, g("MatMul", hidden, g.weight(f"{i}.down", w[f"{i}.down"])))
    end = rms(g, x, g.weight("end.gain", w["end.gain"]))
    g("MatMul", end, g("Transpose", words, perm=[1, 0]), output="logits")
    cache = lambda when, length: [
        helper.make_tensor_value_info(f"{when}.{i}.{what}", TensorProto.FLOAT,
                                      [1, transformer.HEADS, length, HEAD_SIZE])
        for i in range(transformer.LAYERS)
        for what in ("key", "value")
    ]
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "seq"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "seq", len(characters)])
    graph = helper.make_graph(
        g.nodes, "generate", [tokens, *cache("past", "past")], [logits, *cache("present", "total")],
        list(g.constants.values())
    )
    model = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 17)],
                              producer_name="troupe examples/generate")
    model.ir_version, model.model_version = 8, 1
    helper.set_model_props(model, {"characters": "".join(characters)})
    path.write_bytes(model.SerializeToString())
