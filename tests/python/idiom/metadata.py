"""Reads the metadata of models."""
import onnxruntime

for path in ("examples/digits/digits.onnx", "examples/generate/generate.onnx", "tests/data/small_transformer.onnx"):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta()
    print(path)
    for name in ("producer_name", "graph_name", "domain", "description", "graph_description"):
        print("  ", name, repr(getattr(about, name)))
    if "generate" in path:  # the others' files give no version
        print("  ", "version", about.version)
    print("  ", sorted(about.custom_metadata_map.items()))
