"""ONNX's own test runner on troupe.backend: node, simple and PyTorch cases; and the interface by itself."""
import pathlib
import unittest
import warnings

import numpy as np

for name in ("object", "bool", "int", "float"):  # onnx 1.12 uses names that NumPy 1.24 no longer has
    if name not in np.__dict__:
        setattr(np, name, {"object": object, "bool": bool, "int": int, "float": float}[name])
warnings.simplefilter("ignore")

import onnx  # noqa: E402
import onnx.backend.test  # noqa: E402

import models  # noqa: E402
import troupe.backend  # noqa: E402
from troupe import errors  # noqa: E402

runner = onnx.backend.test.BackendTest(troupe.backend, __name__)
runner.exclude(r"_cuda$")
for faulty in models.lines_of("faulty_packaged.txt"):
    runner.exclude(rf"^{faulty.split('/')[-1]}_cpu$")
# The real models' cases are downloaded: they are left out.
globals().update({name: cases for name, cases in runner.test_cases.items() if name != "OnnxBackendRealModelTest"})


class Verdicts(unittest.TestCase):
    def test_what_is_refused_is_what_troupe_test_calls_unsupported(self):
        data = pathlib.Path("/usr/share/libonnx-testdata/data")
        folders = [file.parent for suite in ("node", "simple", "pytorch-converted", "pytorch-operator")
                   for file in data.glob(f"{suite}/*/model.onnx")]
        self.assertGreater(len(folders), 1000)
        refused = {str(folder.relative_to(data)) for folder in folders
                   if not troupe.backend.is_compatible(onnx.load(folder / "model.onnx"))}
        allowed = models.lines_of("unsupported_packaged.txt")
        allowed |= {str(folder.relative_to(data)) for folder in folders
                    if self.passes_more_than_tensors(folder / "model.onnx")}
        self.assertLessEqual(refused, allowed)

    @staticmethod
    def passes_more_than_tensors(file):
        """Sequences and optionals do not go in and out of Python."""
        graph = onnx.load(file).graph
        return any(value.type.WhichOneof("value") != "tensor_type" for value in list(graph.input) + list(graph.output))


class Interface(unittest.TestCase):
    def test_one_node(self):
        node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
        outputs = troupe.backend.run_node(node, [np.array([1, 2], np.float32), np.array([3, 4], np.float32)])
        self.assertEqual(outputs[0].tolist(), [4, 6])
        self.assertEqual(outputs["c"].tolist(), [4, 6])

    @staticmethod
    def cast(from_type, to_type, shape=("n",)):
        info = onnx.helper.make_tensor_value_info
        node = onnx.helper.make_node("Cast", ["a"], ["b"], to=to_type)
        graph = onnx.helper.make_graph([node], "cast", [info("a", from_type, shape)], [info("b", to_type, shape)])
        return troupe.backend.prepare(onnx.helper.make_model(graph,
                                                             opset_imports=[onnx.helper.make_operatorsetid("", 23)]))

    def test_types_that_numpy_does_not_have(self):
        for number, elements, values in (
            (17, np.array([0x38, 0xB8, 0x7E], np.uint8), [1, -1, 448]),  # float8e4m3fn
            (22, np.array([-8, 7, -1], np.int8), [-8, 7, -1]),  # int4, of which two share a byte
            (21, np.array([15, 0, 9], np.uint8), [15, 0, 9]),  # uint4
        ):
            with self.subTest(number):
                self.assertEqual(self.cast(number, 1).run([elements])[0].tolist(), values)
                if number in onnx.TensorProto.DataType.values():
                    back = self.cast(1, number).run([np.array(values, np.float32)])[0]
                    self.assertEqual(back.astype(elements.dtype).tolist(), elements.tolist())

    def test_scalars_stay_scalars(self):
        for number, element, value in ((17, np.array(0x38, np.uint8), 1), (22, np.array(-8, np.int8), -8),
                                       (16, np.array(2.5, np.float32), 2.5)):
            with self.subTest(number):
                self.assertEqual(self.cast(number, 1, ()).run([element])[0].tolist(), value)

    def test_devices(self):
        self.assertTrue(troupe.backend.supports_device("CPU"))
        self.assertFalse(troupe.backend.supports_device("CUDA"))
        with self.assertRaisesRegex(errors.InvalidArgument, "there is no device 'CUDA:3'"):
            troupe.backend.prepare(onnx.ModelProto(), "CUDA:3")

    def test_too_many_inputs(self):
        node = onnx.helper.make_node("Neg", ["a"], ["c"])
        with self.assertRaisesRegex(errors.InvalidArgument, "2 inputs were given to a model of 1"):
            graph = onnx.helper.make_graph(
                [node], "g", [onnx.helper.make_tensor_value_info("a", 1, [1])],
                [onnx.helper.make_tensor_value_info("c", 1, [1])]
            )
            troupe.backend.run_model(onnx.helper.make_model(graph,
                                                            opset_imports=[onnx.helper.make_operatorsetid("", 13)]),
                                                            [np.ones(1)] * 2)


if __name__ == "__main__":
    unittest.main()
