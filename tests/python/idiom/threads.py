"""One session, many threads."""
import concurrent.futures

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("examples/detect/detect.onnx", providers=["CPUExecutionProvider"])
random = np.random.RandomState(4)
images = [random.rand(1, 1, 8 * random.randint(2, 6), 8 * random.randint(2, 6)).astype(np.float32) for _ in range(24)]
alone = [session.run(["cells"], {"image": image})[0] for image in images]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    together = list(pool.map(lambda image: session.run(["cells"], {"image": image})[0], images))
print(all(np.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(alone, together)))
for cells in together[:6]:
    print(cells.shape, cells.ravel()[:3], float(cells.mean()))
