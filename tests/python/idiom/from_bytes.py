"""Makes sessions of a model's bytes, as a service does that has its models in a store; several sessions side by
side."""
import pathlib

import numpy as np
import onnxruntime

image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
models = {path.stem: path.read_bytes()
          for path in map(pathlib.Path, ("examples/digits/digits.onnx", "examples/detect/detect.onnx"))}
sessions = {name: onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
            for name, data in models.items()}
for name, session in sessions.items():
    output = session.run(None, {session.get_inputs()[0].name: image})[0]
    print(name, output.shape, output.ravel()[:10])
of_file = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
print(np.array_equal(of_file.run(None, {"image": image})[0], sessions["digits"].run(None, {"image": image})[0]))
