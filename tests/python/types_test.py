"""Type hints: mypy accepts the package and what uses it rightly, and refuses what does not; the stub of the C++ module
is what the module has."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import models
import troupe

try:
    import mypy  # noqa: F401
except ImportError:
    print("mypy is not installed (Debian: python3-mypy)")
    sys.exit(77)

STRICT = ["--strict", "--allow-any-generics", "--allow-subclassing-any", "--ignore-missing-imports",
          "--no-error-summary"]
USE = """
from typing import List
import numpy as np
import troupe
import troupe as onnxruntime

with troupe.Engine("cpu", memory={"cpu": 1 << 30}) as engine:
    session = engine.load("model.onnx", policy="heft")
    array: np.ndarray = session.run({"x": np.zeros(3)})["y"]
    steps: int = session.bind({"next": "state"}).step
    names: List[str] = [value.name for value in session.inputs]
    done: bool = session.submit({"x": array}, timeout=1.5).cancel()
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
opened = onnxruntime.InferenceSession("model.onnx", options, providers=["cpu"])
outputs: List[np.ndarray] = opened.run(None, {"x": array})
outcome: str = troupe.verify("model.onnx", {"x": array}, dims={"batch": 2})[0]["outcome"]
session.plan({"x": array}).save("plan.json")
troupe.profile("model.onnx", keep=True, file="profiles.json").items()
"""
WRONG = {
    'engine.load(3)': "arg-type",
    'session.run({"x": array}, timeout="soon")': "arg-type",
    'session.plans({})': "attr-defined",
    'text: str = session.bind({}).step': "assignment",
    'onnxruntime.InferenceSession("model.onnx").run({"x": array})': "arg-type",
}


# Of pybind11: its classes have a metaclass of its own, and those that Python cannot make have a constructor that says
# so.
NOT_IN_THE_STUB = r"""
troupe\._core\.(BoundSession|Engine|Episode|Model|Question|Result|Session|Simulation|Stop|Trace|Value)
troupe\._core\.(BoundSession|Model|Question|Result|Session|Simulation|Trace|Value)\.__init__
"""


def run(*arguments):
    with tempfile.TemporaryDirectory() as cache:
        built = str(pathlib.Path(troupe.__file__).absolute().parents[1])
        environment = dict(os.environ, PYTHONPATH=built, MYPYPATH=str(models.ROOT / "python"), MYPY_CACHE_DIR=cache)
        return subprocess.run([sys.executable, "-m", *arguments], env=environment, cwd=cache, capture_output=True,
                              text=True)


class Types(unittest.TestCase):
    def test_the_package_is_right(self):
        done = run("mypy", *STRICT, str(models.ROOT / "python" / "troupe"))
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))

    def test_uses_are_accepted_and_mistakes_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "use.py"
            program.write_text(USE + "\n".join(WRONG))
            done = run("mypy", *STRICT, "--show-error-codes", str(program))
            first = USE.count("\n") + 1
            found = {line.split(":")[1]: line for line in done.stdout.splitlines() if ": error: " in line}
            for number, (mistake, code) in enumerate(WRONG.items(), first):
                self.assertIn(f"[{code}]", found.pop(str(number), "no error"), mistake)
            self.assertEqual(found, {})

    def test_the_stub_is_what_the_module_has(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as known:
            known.write(NOT_IN_THE_STUB)
            known.flush()
            done = run("mypy.stubtest", "troupe._core", "--ignore-unused-allowlist", "--concise", "--allowlist",
                       known.name)
        self.assertEqual((done.stdout.strip().replace("Success: no issues found in 1 module", ""), done.returncode),
                         ("", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
