"""Starts as Optimum's ORTModel does: provider options beside providers, names and types in dicts, outputs bound by
pointers."""
from pathlib import Path

import numpy as np
import onnxruntime


class ORTModel:
    dtypes = {"tensor(float)": np.float32, "tensor(int64)": np.int64}

    def __init__(self, session):
        self.session = session
        self.path = Path(session._model_path)
        self.input_names = {argument.name: index for index, argument in enumerate(session.get_inputs())}
        self.output_names = {argument.name: index for index, argument in enumerate(session.get_outputs())}
        self.input_dtypes = {argument.name: argument.type for argument in session.get_inputs()}
        self.output_dtypes = {argument.name: argument.type for argument in session.get_outputs()}

    @classmethod
    def from_pretrained(cls, path, provider="CPUExecutionProvider", session_options=None, provider_options=None):
        if provider not in onnxruntime.get_available_providers():
            raise ValueError(f"asked to use {provider}, but {onnxruntime.get_available_providers()} are available")
        session_options = session_options or onnxruntime.SessionOptions()
        options = None if provider_options is None else [provider_options]
        return cls(onnxruntime.InferenceSession(path, providers=[provider], sess_options=session_options,
                                                provider_options=options))

    def forward(self, output_shapes, **inputs):
        binding = self.session.io_binding()
        kept = {}
        for name in self.input_names:
            kept[name] = np.ascontiguousarray(inputs[name])
            dtype = self.dtypes[self.input_dtypes[name]]
            binding.bind_input(name, "cpu", 0, dtype, tuple(kept[name].shape), kept[name].ctypes.data)
        for name in self.output_names:
            kept[name] = np.empty(output_shapes[name], self.dtypes[self.output_dtypes[name]])
            binding.bind_output(name, "cpu", 0, kept[name].dtype, kept[name].shape, kept[name].ctypes.data)
        binding.synchronize_inputs()
        self.session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        return {name: kept[name] for name in self.output_names}


model = ORTModel.from_pretrained("examples/digits/digits.onnx", provider_options={})
print(model.path, model.input_names, model.output_names, model.input_dtypes, model.output_dtypes)
image = np.random.RandomState(3).rand(4, 1, 8, 8).astype(np.float32)
scores = model.forward({"scores": (4, 10)}, image=image)["scores"]
print(scores.shape, np.allclose(scores, model.session.run(None, {"image": image})[0], rtol=1e-4, atol=1e-4))
print(len(model.session.get_providers()), len(model.session.get_provider_options()),
      model.session.get_modelmeta().version >= 0)
