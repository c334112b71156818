"""Starts runs and goes on; callbacks bring the results."""
import threading

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
images = np.random.RandomState(2).rand(6, 1, 8, 8).astype(np.float32)
results, all_done, lock = {}, threading.Event(), threading.Lock()


def callback(outputs, number, error):
    with lock:
        results[number] = outputs[0] if not error else error
        if len(results) == len(images):
            all_done.set()


for number in range(len(images)):
    session.run_async(["scores"], {"image": images[number : number + 1]}, callback, number)
print(all_done.wait(60), sorted(results))
for number in sorted(results):
    print(number, results[number][0, :5])
print(np.allclose(np.concatenate([results[i] for i in range(6)]), session.run(None, {"image": images})[0], rtol=1e-4,
                  atol=1e-4))
