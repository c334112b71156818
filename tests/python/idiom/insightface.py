"""Starts as insightface does: a session that can be pickled, shapes that say what a model is for, the CPU chosen
afterwards."""
import pickle

import numpy as np
import onnxruntime


class PickableInferenceSession(onnxruntime.InferenceSession):
    def __init__(self, model_path, **kwargs):
        super().__init__(model_path, **kwargs)
        self.model_path = model_path

    def __getstate__(self):
        return {"model_path": self.model_path}

    def __setstate__(self, values):
        self.__init__(values["model_path"])


class Detector:
    def __init__(self, session):
        self.session = session
        shape = session.get_inputs()[0].shape
        self.input_size = None if isinstance(shape[2], str) else tuple(shape[2:4][::-1])
        self.input_name = session.get_inputs()[0].name
        self.output_names = [output.name for output in session.get_outputs()]

    def prepare(self, ctx_id):
        if ctx_id < 0:
            self.session.set_providers(["CPUExecutionProvider"])


onnxruntime.set_default_logger_severity(3)
image = np.random.RandomState(2).rand(1, 1, 8, 8).astype(np.float32)
detector = Detector(PickableInferenceSession("examples/digits/digits.onnx",
                                             providers=["CUDAExecutionProvider", "CPUExecutionProvider"]))
detector.prepare(-1)
print(detector.input_name, detector.input_size, detector.output_names, len(detector.session.get_providers()))
before = detector.session.run(detector.output_names, {detector.input_name: image})[0]
after = pickle.loads(pickle.dumps(detector.session)).run(detector.output_names, {detector.input_name: image})[0]
print(before.shape, np.allclose(before, after, rtol=1e-4, atol=1e-4))
try:
    onnxruntime.InferenceSession("examples/digits/digits.onnx", None).run(["no such"], {detector.input_name: image})
except Exception as problem:
    print(isinstance(problem, (ValueError, onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument)))
