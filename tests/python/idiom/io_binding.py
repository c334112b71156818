"""Binds inputs and outputs once and runs many times."""
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
image = np.random.RandomState(1).rand(4, 1, 8, 8).astype(np.float32)
binding = session.io_binding()
binding.bind_cpu_input("image", image)
binding.bind_output("scores")
for _ in range(3):
    session.run_with_iobinding(binding)
print(binding.copy_outputs_to_cpu()[0][0], len(binding.get_outputs()))

value = onnxruntime.OrtValue.ortvalue_from_numpy(image[:2], "cpu", 0)
given = np.zeros((2, 10), np.float32)
binding.clear_binding_inputs()
binding.clear_binding_outputs()
binding.bind_input("image", value.device_name(), 0, np.float32, value.shape(), value.data_ptr())
binding.bind_output("scores", "cpu", 0, np.float32, given.shape, given.ctypes.data)
session.run_with_iobinding(binding)
print(given)

own = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2, 10], np.float32, "cpu", 0)
binding.bind_ortvalue_input("image", value)
binding.bind_ortvalue_output("scores", own)
session.run_with_iobinding(binding)
print(np.array_equal(own.numpy(), given), binding.get_outputs()[0].shape())
