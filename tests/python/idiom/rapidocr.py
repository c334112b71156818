"""Starts as RapidOCR does: no arena, threads from its configuration, the alphabet in the model's metadata."""
import os
import traceback

import numpy as np
from onnx import TensorProto, helper
import onnxruntime

value = helper.make_tensor_value_info
graph = helper.make_graph(
    [helper.make_node("Softmax", ["x"], ["softmax_0.tmp_0"], axis=2)],
    "recogniser",
    [value("x", TensorProto.FLOAT, [-1, -1, 5])],
    [value("softmax_0.tmp_0", TensorProto.FLOAT, [-1, -1, 5])],
)
model = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 13)])
model.ir_version = 8
for v in (model.graph.input[0], model.graph.output[0]):
    for d in list(v.type.tensor_type.shape.dim)[:2]:
        d.dim_value = -1  # as PaddlePaddle's older exporter writes an unknown dim
helper.set_model_props(model, {"character": "a\nb\nc"})


class OrtInferSession:
    def __init__(self, content, config):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.enable_cpu_mem_arena = False
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        threads = config.get("intra_op_num_threads", -1)
        if 1 <= threads <= (os.cpu_count() or 1):
            options.intra_op_num_threads = threads
        providers = [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]
        self.session = onnxruntime.InferenceSession(content, sess_options=options, providers=providers)

    def __call__(self, content):
        names = [v.name for v in self.session.get_inputs()]
        try:
            return self.session.run(None, dict(zip(names, [content])))
        except Exception as e:
            raise RuntimeError(traceback.format_exc()) from e

    def have_key(self, key="character"):
        return key in self.session.get_modelmeta().custom_metadata_map.keys()


recogniser = OrtInferSession(model.SerializeToString(), {"intra_op_num_threads": 1})
print(recogniser.have_key(), recogniser.session.get_modelmeta().custom_metadata_map["character"].splitlines())
for width in (3, 7):
    scores = recogniser(np.arange(width * 5, dtype=np.float32).reshape(1, width, 5) % 4)[0]
    print(scores.shape, scores.argmax(axis=2), scores[0, 0])
