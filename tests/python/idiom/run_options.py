"""Options of runs: names and levels of the log, and an end before the beginning."""
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("examples/digits/digits.onnx", providers=["CPUExecutionProvider"])
image = np.full((1, 1, 8, 8), 0.5, np.float32)
options = onnxruntime.RunOptions()
print(options.terminate, options.logid == "", options.only_execute_path_to_fetches)
options.log_severity_level = 3
options.logid = "request 1"
print(options.logid, session.run(["scores"], {"image": image}, options)[0][0])
options.terminate = True
try:
    session.run(["scores"], {"image": image}, run_options=options)
    print("ran")
except Exception as problem:
    print("ended:", isinstance(problem, Exception))
options.terminate = False
print(session.run(["scores"], {"image": image}, options)[0].argmax())
