# Sourced in an empty folder: makes the files that README files and docs assume. usage: prepare.sh ROOT BUILD
root=$1 build=$2
cp "$root/examples/digits/digits.onnx" model.onnx
cp model.onnx same.onnx
cp "$root/tests/data/small_cnn.onnx" .
cp "$root/examples/generate/generate.onnx" decoder.onnx
cp "$build/test_plugins/my_policy.so" libpolicy.so
cp "$build/test_plugins/my_strategy.so" libstrategy.so
cp -r /usr/share/libonnx-testdata/data/node/test_relu CASE_FOLDER
"$build/bin/troupe" run model.onnx --devices cpu --trace before.json >/dev/null 2>&1
cp before.json after.json
/usr/bin/python3 - <<'PYTHON'
import json, numpy, pathlib

image = numpy.load("examples/digits/digits_test.npz")["images"][:8, None] / numpy.float32(16)
numpy.save("photo.npy", image)
pathlib.Path("inputs").mkdir()
for request in range(3):
    numpy.savez(f"inputs/{request}.npz", image=image[request : request + 2])
# The same experiment, shorter.
given = pathlib.Path("examples/experiments/digits.json")
experiment = json.loads(given.read_text())
model = str(pathlib.Path("model.onnx").resolve())
experiment.update(models=[model], dims=[{"batch": 1}], repetitions=2, mode="simulated")
experiment["requests"]["count"] = 8
given.parent.unlink()
given.parent.mkdir()
given.write_text(json.dumps(experiment))
PYTHON
