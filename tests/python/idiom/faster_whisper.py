"""Starts as faster-whisper's voice detection does: quiet, without an arena, two states, all windows in one batch."""
import numpy as np
from onnx import TensorProto, helper
import onnxruntime

value = helper.make_tensor_value_info
nodes = [
    helper.make_node("MatMul", ["input", "w"], ["gates"]),
    helper.make_node("Add", ["gates", "h"], ["sum"]),
    helper.make_node("Sigmoid", ["sum"], ["speech_probs"]),
    helper.make_node("Tanh", ["sum"], ["hn"]),
    helper.make_node("Add", ["c", "hn"], ["cn"]),
]
inputs = [value("input", TensorProto.FLOAT, [None, 576]), value("h", TensorProto.FLOAT, [1, None, 4]),
          value("c", TensorProto.FLOAT, [1, None, 4])]
outputs = [value(name, TensorProto.FLOAT, None) for name in ("speech_probs", "hn", "cn")]
w = np.cos(np.arange(576 * 4, dtype=np.float32)).reshape(576, 4)
weights = [helper.make_tensor("w", TensorProto.FLOAT, [576, 4], w.ravel())]
graph = helper.make_graph(nodes, "vad", inputs, outputs, weights)
model = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 13)])
model.ir_version = 8

options = onnxruntime.SessionOptions()
options.inter_op_num_threads = 1
options.intra_op_num_threads = 1
options.enable_cpu_mem_arena = False
options.log_severity_level = 4
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"],
                                       sess_options=options)

audio = np.sin(np.arange(3 * 576, dtype=np.float32) / 7).reshape(3, 576)
h, c = np.zeros((1, 1, 4), dtype="float32"), np.zeros((1, 1, 4), dtype="float32")
for window in audio:
    output, h, c = session.run(None, {"input": window[None], "h": h, "c": c})
    print(output.shape, output.argmax(), np.allclose(output, 1 / (1 + np.exp(-np.arctanh(h))), atol=1e-3))
print(session.get_session_options().enable_cpu_mem_arena, session.get_session_options().intra_op_num_threads)
