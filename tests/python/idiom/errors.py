"""Makes mistakes, and catches the errors by class."""
import numpy as np
import onnxruntime

state = onnxruntime.capi.onnxruntime_pybind11_state
session = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
image = np.zeros((1, 1, 8, 8), np.float32)


def trial(what, action, *kinds):
    try:
        action()
        print(what, "nothing")
    except kinds as problem:
        print(what, "raises", kinds[0].__name__, "with a text" if str(problem) else "without a text")


trial("no input", lambda: session.run(None, {}), ValueError)
trial("another type", lambda: session.run(None, {"image": image.astype(np.float64)}), state.InvalidArgument)
trial("another rank", lambda: session.run(None, {"image": image[0]}), state.InvalidArgument)
trial("another shape", lambda: session.run(None, {"image": image[..., :7]}), state.InvalidArgument)
trial("an unknown input", lambda: session.run(None, {"image": image, "more": image}), ValueError, state.InvalidArgument)
trial("an unknown output", lambda: session.run(["more"], {"image": image}), ValueError, state.InvalidArgument)
trial("no file", lambda: onnxruntime.InferenceSession("no/such.onnx", providers=["CPUExecutionProvider"]),
      state.NoSuchFile)
trial("no model", lambda: onnxruntime.InferenceSession(b"nonsense", providers=["CPUExecutionProvider"]),
      state.InvalidProtobuf)
print("and then", session.run(None, {"image": image})[0][0])
