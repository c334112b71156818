"""Starts as transformers' ONNX tools do: one provider without fallback, outputs compared with names that are
expected."""
from pathlib import Path

import numpy as np
import onnxruntime


def create_model_for_provider(model_path, provider):
    known = onnxruntime.get_all_providers()
    assert provider in known, f"provider {provider} not found, {known}"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model_path, options, providers=[provider])
    session.disable_fallback()
    return session


session = create_model_for_provider(str(Path("examples") / "digits" / "digits.onnx"), "CPUExecutionProvider")
names = {argument.name for argument in session.get_outputs()}
print("names match:", {"scores"}.issubset(names))
inputs = {argument.name: argument for argument in session.get_inputs()}
print(sorted(inputs), {name: argument.type for name, argument in inputs.items()})
image = np.linspace(0, 1, 128, dtype=np.float32).reshape(2, 1, 8, 8)
onnx_inputs = {name: image for name in inputs}
reference = session.run(["scores"], onnx_inputs)
for name, value in zip(["scores"], session.run(["scores"], onnx_inputs)):
    print(name, value.shape, "amount of difference:", np.amax(np.abs(value - reference[0])))
