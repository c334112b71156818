"""The package in processes: Ctrl-C, forks, the interpreter's end, memory over many runs, the command. Each in a process
of its own."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import troupe

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE), str(pathlib.Path(troupe.__file__).parents[1])]))
PRELUDE = """
import gc, os, signal, sys, threading, time
import models, numpy as np, troupe
from onnx import TensorProto
x = np.ones(4, np.float32)
def open_session(data): return troupe.InferenceSession(data, providers=["cpu"])
"""


def run(script, timeout=60, **options):
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + script], env=ENVIRONMENT, timeout=timeout, capture_output=True, text=True,
        **options
    )


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_a_run(self):
        script = """
session = open_session(models.long_loop(1_000_000_000))
print("running", flush=True)
try:
    session.run(None, {"x": x})
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(open_session(models.unary("Neg", TensorProto.FLOAT)).run(None, {"x": x})[0].tolist())
"""
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + script], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        self.assertEqual(process.stdout.readline(), "running\n")
        time.sleep(0.5)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.readline(), "interrupted\n")
        self.assertLess(time.monotonic() - asked, 5)
        self.assertEqual(process.communicate(timeout=30)[0], "[-1.0, -1.0, -1.0, -1.0]\n")
        self.assertEqual(process.returncode, 0)

    def test_a_bound_session_too(self):
        script = """
session = troupe.Engine("cpu").load(models.long_loop(1_000_000_000)).bind({"y": "x"})
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    session.run({"x": x})
except KeyboardInterrupt:
    print("interrupted at step", session.step)
"""
        self.assertEqual(run(script).stdout, "interrupted at step 0\n")


class Forks(unittest.TestCase):
    def test_a_fork_with_devices_open_is_an_error(self):
        script = """
session = open_session(models.unary("Neg", TensorProto.FLOAT))
session.run(None, {"x": x})
value = session.put(x, "cpu")
child = os.fork()
if child == 0:
    for what in (lambda: session.run(None, {"x": x}), lambda: troupe.Engine("cpu"), lambda: session.get_providers(),
                 lambda: session.run_async(None, {"x": x}, print, None), lambda: session.troupe_session.bind({})):
        try:
            what()
            print("no error")
        except troupe.errors.DeviceLost as e:
            print(type(e).__name__, "forked after troupe opened its devices" in str(e))
    sys.exit(7)  # with the interpreter's end and all destructors
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), session.run(None, {"x": x})[0].tolist())
"""
        done = run(script)
        self.assertEqual(done.stdout, "DeviceLost True\n" * 5 + "7 [-1.0, -1.0, -1.0, -1.0]\n", done.stderr)

    def test_a_fork_before_devices_are_open_is_none(self):
        script = """
child = os.fork()
if child == 0:
    print(open_session(models.unary("Neg", TensorProto.FLOAT)).run(None, {"x": x})[0].tolist())
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        self.assertEqual(run(script).stdout, "[-1.0, -1.0, -1.0, -1.0]\n0\n")


class Ends(unittest.TestCase):
    def test_the_interpreter_ends_with_runs_in_flight(self):
        script = """
session = troupe.Engine("cpu").load(models.long_loop(1_000_000_000))
pending = [session.run_async({"x": x}) for _ in range(3)]
time.sleep(0.2)
print("end")
"""
        done = run(script)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("end\n", "", 0))

    def test_a_closed_engine_says_so(self):
        script = """
with troupe.Engine("cpu") as engine:
    session = engine.load(models.unary("Neg", TensorProto.FLOAT))
for what in (lambda: session.run({"x": x}), lambda: engine.devices()):
    try:
        what()
    except troupe.errors.Cancelled as e:
        print("closed" in str(e))
"""
        done = run(script)
        self.assertEqual(done.stdout, "True\nTrue\n", done.stderr)


class ManyRuns(unittest.TestCase):
    def test_memory_is_flat(self):
        script = """
def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
session = open_session(models.DIGITS)
image = np.zeros((1, 1, 8, 8), np.float32)
references = sys.getrefcount(image)
binding = session.io_binding()
binding.bind_cpu_input("image", image)
binding.bind_output("scores")
def rounds(count):
    for i in range(count):
        session.run(None, {"image": image})
        if i % 4 == 0:
            session.run_with_iobinding(binding)
            session.troupe_session.submit({"image": image}).result()
            try:
                session.run(None, {"image": image[0]})
            except ValueError:
                pass
rounds(2000)
before = resident()
rounds(8000)
print(resident() - before)
del binding
session.run(None, {"image": image})
time.sleep(0.2)
session.run(None, {"image": np.zeros_like(image)})
print(sys.getrefcount(image) - references)
"""
        done = run(script, timeout=200)
        grown, references = map(int, done.stdout.split())
        self.assertLess(grown, 4 << 20)
        self.assertLessEqual(references, 1)


class Command(unittest.TestCase):
    def command(self, *arguments):
        return subprocess.run([sys.executable, "-m", "troupe", *arguments], env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=60)

    def test_it_is_troupe(self):
        self.assertEqual(self.command("--version").stdout.strip(), troupe.__version__)
        self.assertIn("cpu", self.command("devices", "--devices", "cpu").stdout)
        wrong = self.command("devises")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean 'devices'?", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
