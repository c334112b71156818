"""Values of the runtime: made of arrays, asked about themselves, changed in place, passed to runs."""
import numpy as np
import onnxruntime

array = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8) / 64
value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
print(value.shape(), value.data_type(), value.element_type(), value.device_name(), value.has_value(), value.is_tensor())
print(value.is_sparse_tensor(), value.is_tensor_sequence(), np.array_equal(value.numpy(), array))
session = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
(scores,) = session.run_with_ort_values(["scores"], {"image": value})
print(type(scores).__name__, scores.shape(), scores.numpy()[0])
value.update_inplace(1 - array)
print(session.run_with_ort_values(None, {"image": value})[0].numpy()[0])
print(array[0, 0, 0, :3], session.run(None, {"image": value})[0].shape)
for kind in (np.int64, np.uint8, np.float64, np.float16, bool):
    empty = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2, 3], kind)
    print(empty.data_type(), empty.shape(), empty.numpy().dtype)
