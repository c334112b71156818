"""The wheel: built without a network, installed elsewhere, run from there."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import models
import troupe

BUILD = pathlib.Path(troupe.__file__).absolute().parents[2]


class Wheel(unittest.TestCase):
    def test_it_runs_where_it_is_installed(self):
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment["TROUPE_PRESET"] = BUILD.name  # whose libraries are built; packages ship `generic`
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
            options = ["--no-build-isolation", "--no-deps", "--no-index"]
            subprocess.run([*pip, "wheel", *options, "-w", folder, models.ROOT], env=environment, check=True,
                           stdout=subprocess.DEVNULL)
            wheel = next(pathlib.Path(folder).glob("troupe-*.whl"))
            self.assertIn(f"{troupe.__version__}-cp3", wheel.name)
            installed = pathlib.Path(folder) / "installed"
            subprocess.run([*pip, "install", "--no-deps", "--no-index", "--root-user-action=ignore", "--target",
                            installed, wheel],
                           env=environment, check=True)  # fmt: skip
            script = (
                "import numpy, pathlib, troupe; "
                f"s = troupe.InferenceSession('{models.DIGITS}', providers=['cpu']); "
                "print(s.run(None, {'image': numpy.zeros((1, 1, 8, 8), 'f4')})[0].shape); "
                "print({line.split()[-1] for line in open('/proc/self/maps') if 'libtroupe' in line})"
            )
            environment["PYTHONPATH"] = str(installed)
            done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True,
                                  text=True)
            self.assertEqual(done.stderr, "")
            shape, libraries = done.stdout.splitlines()
            self.assertEqual(shape, "(1, 10)")
            self.assertTrue(all(path.startswith(str(installed)) for path in eval(libraries)), libraries)
            command = [sys.executable, "-m", "troupe", "--version"]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            self.assertEqual(done.stdout.strip(), troupe.__version__)


if __name__ == "__main__":
    unittest.main()
