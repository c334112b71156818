"""Asks models what they take and give, and feeds them with whatever fits."""
import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": bool}
SIZES = {"batch": 2, "n": 5, "seq": 7, "past": 3, "height": 24, "width": 16}


def made_up(argument, random):
    shape = [size if isinstance(size, int) else SIZES.get(size, 4) for size in argument.shape]
    return (random.random(shape) * 5).astype(TYPES[argument.type])


for path in ("examples/digits/digits.onnx", "examples/detect/detect.onnx", "examples/generate/generate.onnx",
             "tests/data/small_cnn.onnx"):
    random = np.random.RandomState(3)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    print(path)
    for argument in session.get_inputs():
        print("  takes", argument.name, argument.type, argument.shape)
    for argument in session.get_outputs():
        print("  gives", argument.name, argument.type, argument.shape)
    results = session.run(None, {argument.name: made_up(argument, random) for argument in session.get_inputs()})
    for argument, result in zip(session.get_outputs(), results):
        print("  ", argument.name, result.dtype, result.shape, result.ravel()[:3], float(np.abs(result).mean()))
    print("  overridable:", [argument.name for argument in session.get_overridable_initializers()])
