"""Models that the tests of the Python package run."""
import pathlib

from onnx import TensorProto, ValueInfoProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
DIGITS_DATA = ROOT / "examples" / "digits" / "digits_test.npz"


def value(name, element_type, dims):
    return helper.make_tensor_value_info(name, element_type, dims)


def model(nodes, inputs, outputs, initializers=(), opset=13):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers))
    made = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", opset)])
    made.ir_version = 8
    return made.SerializeToString()


def unary(operator, element_type, opset=13, dims=("n",)):
    """y = operator(x)"""
    return model(
        [helper.make_node(operator, ["x"], ["y"])], [value("x", element_type, dims)], [value("y", element_type, dims)],
        opset=opset
    )


def cast(from_type, to_type):
    node = helper.make_node("Cast", ["x"], ["y"], to=to_type)
    return model([node], [value("x", from_type, ["n"])], [value("y", to_type, ["n"])])


def maps():
    """y = the values of map x, by their keys; z = those of map w for "a" and "b"."""
    kinds = {"x": TensorProto.INT64, "w": TensorProto.STRING}
    inputs = []
    for name, key in kinds.items():
        inputs.append(ValueInfoProto(name=name))
        inputs[-1].type.map_type.key_type = key
        inputs[-1].type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    nodes = [
        helper.make_node("CastMap", ["x"], ["y"], domain="ai.onnx.ml"),
        helper.make_node("DictVectorizer", ["w"], ["z"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]),
    ]
    graph = helper.make_graph(nodes, "test", inputs,
                              [value("y", TensorProto.FLOAT, [1, "n"]), value("z", TensorProto.FLOAT, [1, 2])])
    opsets = [helper.make_operatorsetid("", 13), helper.make_operatorsetid("ai.onnx.ml", 1)]
    made = helper.make_model(graph, opset_imports=opsets)
    made.ir_version = 8
    return made.SerializeToString()


def counter():
    """A step of a state: next = state + x; seen = state + x."""
    nodes = [helper.make_node("Add", ["state", "x"], ["next"]), helper.make_node("Identity", ["next"], ["seen"])]
    floats = [value(name, TensorProto.FLOAT, ["n"]) for name in ("state", "x")]
    return model(nodes, floats, [value(name, TensorProto.FLOAT, ["n"]) for name in ("next", "seen")])


def long_loop(steps):
    """y = x after a number of rounds of Sin, which nothing can shorten."""
    body = helper.make_graph(
        [helper.make_node("Sin", ["before"], ["after"]), helper.make_node("Identity", ["going"], ["go"])],
        "body",
        [value("i", TensorProto.INT64, []), value("going", TensorProto.BOOL, []),
         value("before", TensorProto.FLOAT, ["n"])],
        [value("go", TensorProto.BOOL, []), value("after", TensorProto.FLOAT, ["n"])],
    )
    trips = helper.make_tensor("trips", TensorProto.INT64, [], [steps])
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    return model([node], [value("x", TensorProto.FLOAT, ["n"])], [value("y", TensorProto.FLOAT, ["n"])], [trips])


def shared_outputs():
    """Outputs that are a constant, the input, the same value twice, and a value of their own."""
    constant = helper.make_tensor("constant", TensorProto.FLOAT, [4], [1, 2, 3, 4])
    nodes = [
        helper.make_node("Identity", ["constant"], ["fixed"]),
        helper.make_node("Identity", ["x"], ["passed"]),
        helper.make_node("Neg", ["x"], ["own"]),
        helper.make_node("Identity", ["own"], ["twin"]),
        helper.make_node("Shape", ["x"], ["size"]),
    ]
    outputs = [value(name, TensorProto.FLOAT, None) for name in ("fixed", "passed", "own", "twin")]
    return model(nodes, [value("x", TensorProto.FLOAT, [4])], outputs + [value("size", TensorProto.INT64, [1])],
                 [constant])


def lines_of(name):
    """Returns the cases that a list of tests/conformance names."""
    text = (ROOT / "tests" / "conformance" / name).read_text()
    return {line.split("#")[0].strip() for line in text.splitlines()} - {""}
