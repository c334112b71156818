"""Chooses providers: the preferred ones that are there, the CPU at the end."""
import numpy as np
import onnxruntime

preferred = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
there = onnxruntime.get_available_providers()
print("CPUExecutionProvider" in there, there == list(dict.fromkeys(there)), isinstance(onnxruntime.get_device(), str))
providers = [name for name in preferred if name in there]
print(providers)
image = np.ones((2, 1, 8, 8), np.float32)
chosen = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=providers)
print(chosen.run(None, {"image": image})[0][0])
with_options = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=[("CPUExecutionProvider", {})])
print(with_options.run(None, {"image": image})[0][1], len(with_options.get_providers()))
last = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=there[-1:])
print(there[-1:], last.run(None, {"image": image})[0].argmax(1))
