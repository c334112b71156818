"""Generates text with a decoder whose cache goes from output to input, by hand and by binding."""
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("examples/generate/generate.onnx", providers=["CPUExecutionProvider"])
letters = session.get_modelmeta().custom_metadata_map["characters"]
past = [argument.name for argument in session.get_inputs() if argument.name.startswith("past.")]
present = [name.replace("past.", "present.") for name in past]
prompt = np.array([[letters.index(c) for c in "The Rays of the Sun "]], np.int64)


def by_hand(steps):
    cache, token, text = [np.zeros((1, 4, 0, 24), np.float32)] * len(past), prompt, ""
    for _ in range(steps):
        logits, *cache = session.run(["logits", *present], {"tokens": token, **dict(zip(past, cache))})
        token = logits[:, -1:].argmax(-1)
        text += letters[token[0, 0]]
    return text, logits[0, -1, :5]


def by_binding(steps):
    binding = session.io_binding()
    cache, token, text = [onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, 4, 0, 24), np.float32))
                          for _ in past], prompt, ""
    for _ in range(steps):
        binding.bind_cpu_input("tokens", token)
        for name, value in zip(past, cache):
            binding.bind_ortvalue_input(name, value)
        for name in ("logits", *present):
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        logits, *cache = binding.get_outputs()
        token = logits.numpy()[:, -1:].argmax(-1)
        text += letters[token[0, 0]]
    return text, cache[0].shape()


text, logits = by_hand(24)
print(repr(text), logits)
bound, shape = by_binding(24)
print(bound == text, shape)
