"""A model of one operator call, for operator_models."""
import dataclasses

import numpy as np
import onnx
from onnx import helper, numpy_helper

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"  # domains besides ONNX's own
RANDOM = np.random.RandomState(1)


def floats(*dims):
    return RANDOM.uniform(-1, 1, dims).astype(np.float32)


def positive(*dims):
    return RANDOM.uniform(0.1, 1, dims).astype(np.float32)


def integers(*dims, low=-50, high=50, dtype=np.int64):
    return RANDOM.randint(low, high, dims).astype(dtype)


def whole(*values):
    return np.array(values, np.int64)


@dataclasses.dataclass
class Case:
    """One call: `inputs` are computed operands, `constants` known ones, both by their places."""

    name: str
    op: str
    inputs: dict
    constants: dict
    attributes: dict
    outputs: int = 1
    domain: str = ""
    opset: int = 21

    def model(self):
        count = 1 + max([*self.inputs, *self.constants], default=-1)
        names = ["" if i not in self.inputs and i not in self.constants else f"x{i}" for i in range(count)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, name="call", domain=self.domain, **self.attributes)
        types = onnx.helper.mapping.NP_TYPE_TO_TENSOR_TYPE
        declared = [helper.make_tensor_value_info(f"x{i}", types[a.dtype], a.shape) for i, a in self.inputs.items()]
        known = [numpy_helper.from_array(a, f"x{i}") for i, a in self.constants.items()]
        graph = helper.make_graph([node], "g", declared, [onnx.ValueInfoProto(name=name) for name in outputs], known)
        imports = [helper.make_opsetid("", self.opset)]
        if self.domain:
            imports.append(helper.make_opsetid(self.domain, 1 if self.domain == MICROSOFT else 3))
        return helper.make_model(graph, opset_imports=imports, ir_version=9)

    def write(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        onnx.save(self.model(), str(folder / "model.onnx"))
        for place, (i, a) in enumerate(self.inputs.items()):
            (data / f"input_{place}.pb").write_bytes(numpy_helper.from_array(a, f"x{i}").SerializeToString())


def call(op, *inputs, constants=None, name=None, outputs=1, domain="", opset=21, **attributes):
    """A case whose operands are `inputs` in their places, but for those that `constants` names."""
    known = dict(constants or {})
    given = {i: a for i, a in enumerate(inputs) if a is not None}
    return Case(name or op, op, given, known, attributes, outputs, domain, opset)


def with_constants(op, *operands, known, name=None, **more):
    """Two cases of one call: operands `known` as initializers, then all as inputs."""
    yield call(op, *[None if i in known else a for i, a in enumerate(operands)],
        constants={i: operands[i] for i in known}, name=f"{name or op}, constant", **more)
    yield call(op, *operands, name=f"{name or op}, computed", **more)
