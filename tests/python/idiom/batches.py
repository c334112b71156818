"""Classifies a data set batch by batch, the last one smaller."""
import numpy as np
import onnxruntime

data = np.load("examples/digits/digits_test.npz")
images, labels = data["images"][:, None].astype(np.float32) / 16, data["labels"]
session = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
right = np.zeros(10, int)
for begin in range(0, len(images), 50):
    (scores,) = session.run(["scores"], {"image": images[begin : begin + 50]})
    guesses = scores.argmax(1)
    right += np.bincount(guesses[guesses == labels[begin : begin + 50]], minlength=10)
    print(begin, scores.shape, scores[0, :4], float(scores.max()))
print(right.tolist(), right.sum(), "of", len(labels))
