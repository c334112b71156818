"""Sets the options of a session, one after the other; none changes the results."""
import numpy as np
import onnxruntime

image = np.random.RandomState(0).rand(8, 1, 8, 8).astype(np.float32)
options = onnxruntime.SessionOptions()
print(options.enable_profiling, options.enable_mem_pattern, options.enable_cpu_mem_arena, options.inter_op_num_threads)
print(options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
options.inter_op_num_threads = 1
options.log_severity_level = 3
options.logid = "mine"
options.add_free_dimension_override_by_name("batch", 8)
session = onnxruntime.InferenceSession("examples/digits/digits.onnx", sess_options=options,
                                       providers=["CPUExecutionProvider"])
plain = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
scores, expected = session.run(None, {"image": image})[0], plain.run(None, {"image": image})[0]
print(np.allclose(scores, expected, rtol=1e-4, atol=1e-4), scores.shape, scores[0])
kept = session.get_session_options()
print(kept.logid, kept.log_severity_level, kept.inter_op_num_threads,
      kept.execution_mode == onnxruntime.ExecutionMode.ORT_SEQUENTIAL)
