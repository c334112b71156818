"""Starts as Silero's VAD does: one thread each way, a state that goes from call to call."""
import numpy as np
from onnx import TensorProto, helper
import onnxruntime

value = helper.make_tensor_value_info
nodes = [
    helper.make_node("ReduceMax", ["input"], ["peak"], axes=[1], keepdims=1),
    helper.make_node("Add", ["state", "peak"], ["stateN"]),
    helper.make_node("Sigmoid", ["peak"], ["output"]),
]
inputs = [value("input", TensorProto.FLOAT, [None, None]), value("state", TensorProto.FLOAT, [2, None, 4]),
          value("sr", TensorProto.INT64, [])]
outputs = [value("output", TensorProto.FLOAT, [None, 1]), value("stateN", TensorProto.FLOAT, [None, None, None])]
model = helper.make_model(helper.make_graph(nodes, "vad", inputs, outputs),
                          opset_imports=[helper.make_operatorsetid("", 13)])
model.ir_version = 8


class OnnxWrapper:
    def __init__(self, path, force_onnx_cpu=False):
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = 1
        options.intra_op_num_threads = 1
        if force_onnx_cpu and "CPUExecutionProvider" in onnxruntime.get_available_providers():
            self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"], sess_options=options)
        else:
            self.session = onnxruntime.InferenceSession(path, sess_options=options)
        self.reset_states()
        self.sample_rates = [8000, 16000]

    def reset_states(self, batch_size=1):
        self._state = np.zeros((2, batch_size, 4), dtype="float32")

    def __call__(self, x, sr):
        out, self._state = self.session.run(None, {"input": x, "state": self._state, "sr": np.array(sr, dtype="int64")})
        return out


vad = OnnxWrapper(model.SerializeToString(), force_onnx_cpu=True)
vad.session.intra_op_num_threads = 1  # as its older versions did
sound = np.sin(np.arange(512, dtype=np.float32) / 10)[None]
for _ in range(3):
    print(vad(sound, 16000), vad._state.shape, vad._state[0, 0, 0])
print([argument.name for argument in vad.session.get_inputs()])
