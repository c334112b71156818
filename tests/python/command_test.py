"""What Python has of the command: verify, profile, calibrate; plans as files."""
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import models
import numpy as np

import troupe
from troupe import errors

IMAGES = {"image": np.ones((4, 1, 8, 8), np.float32)}


class Command(unittest.TestCase):
    def test_answers_of_all_placements_are_compared(self):
        rows = troupe.verify(models.DIGITS, IMAGES, devices=["cpu"], strategy="work-stealing")
        self.assertEqual([row["placement"] for row in rows], ["cpu, nothing fused", "cpu", "cpu*2, work-stealing"])
        self.assertEqual({row["outcome"] for row in rows}, {"same"})
        self.assertGreaterEqual(sum(rows[-1]["pieces"]), 4)  # requests, of which each may be cut
        made_up = troupe.verify(str(models.DIGITS), devices="cpu", dims={"batch": 3}, strategy="none", rtol=0, atol=0)
        self.assertGreaterEqual(len(made_up), 3)

    def test_a_difference_is_a_row_and_no_error(self):
        rows = [{"placement": "cpu", "outcome": "DIFFERS", "difference": "'y': 1 is not 2"}]
        done = mock.Mock(returncode=1, stdout=json.dumps(rows), stderr="troupe: warning: slow")
        with mock.patch("subprocess.run", return_value=done), self.assertLogs("troupe", "WARNING") as log:
            self.assertEqual(troupe.verify("model.onnx"), rows)
        self.assertIn("warning: slow", log.output[0])

    def test_operators_are_measured_and_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "profiles.json"
            found = troupe.profile(models.DIGITS, devices="cpu", runs=2, keep=True, file=file, dims={"batch": 2})
            self.assertGreater(found["measured_ms"], 0)
            self.assertIn("predicted_ms", found["operators"][0])
            self.assertEqual(found["kept"][0]["device"], "cpu")
            with troupe.Engine("cpu", profile_file=str(file)) as engine:
                self.assertEqual(engine._core.profile_problem(), "")
        self.assertEqual(found["tuned"], [])
        self.assertIn("<table>", found._repr_html_())

    def test_devices_are_calibrated(self):
        rows = [{"device": "cpu", "measured": {"float32": 1e9}}]
        done = mock.Mock(returncode=0, stdout=json.dumps(rows), stderr="")
        with mock.patch("subprocess.run", return_value=done) as ran:
            self.assertEqual(troupe.calibrate("cpu", file="p.json"), rows)
        self.assertEqual(ran.call_args.args[0][1:], ["profile", "--calibrate", "--devices=cpu", "--file=p.json",
                                                     "--json"])

    def test_options_are_those_of_the_command(self):
        done = mock.Mock(returncode=0, stdout="[]", stderr="")
        with mock.patch("subprocess.run", return_value=done) as ran:
            troupe.verify("m.onnx", devices=["cpu", "slow:25"], dims={"a": 1, "b": 2}, pins=[("x*", "cpu")],
                          max_batch=8, no_fuse=True, insecure=False, precision=None)
        self.assertEqual(ran.call_args.args[0][2:], [
            "m.onnx", "--devices=cpu", "--devices=slow:25", "--rtol=0.001", "--atol=0.0001", "--dim=a=1", "--dim=b=2",
            "--pin=x*=cpu", "--max-batch=8", "--no-fuse", "--json",
        ])

    def test_what_is_wrong_is_an_error_of_its_kind(self):
        with self.assertRaisesRegex(errors.InvalidArgument, "--speed=3"):
            troupe.verify(models.DIGITS, speed=3)
        with self.assertRaisesRegex(errors.InvalidArgument, "^unknown device 'gpu:9'"):
            troupe.profile(models.DIGITS, devices="gpu:9")
        with self.assertRaisesRegex(errors.Fail, "nowhere.onnx"):
            troupe.verify("nowhere.onnx", devices="cpu")
        with self.assertRaisesRegex(errors.Fail, "no input 'picture'"):
            troupe.verify(models.DIGITS, {"picture": [1.0]}, devices="cpu")
        with mock.patch("pathlib.Path.exists", return_value=False), mock.patch("shutil.which", return_value=None):
            with self.assertRaisesRegex(errors.NoSuchFile, "install the package"):
                troupe.verify(models.DIGITS)


class PlanFiles(unittest.TestCase):
    def test_a_plan_is_saved_and_used_again(self):
        feed = {"image": np.ones((1, 1, 8, 8), np.float32)}
        with tempfile.TemporaryDirectory() as folder, troupe.Engine("cpu*2") as engine:
            text, file = (os.path.join(folder, name) for name in ("plan.txt", "plan.json"))
            plan = engine.load(models.DIGITS, policy="round-robin").plan(feed)
            plan.save(text)
            self.assertEqual(pathlib.Path(text).read_text(), plan)
            plan.save(file)
            saved = troupe.Plan.load(file)
            self.assertIn("<svg", saved._repr_svg_())
            again = engine.load(models.DIGITS, plan_file=file)
            used = json.loads(again.plan(feed, "json"))
            self.assertEqual([c["device"] for c in used["chunks"]], [c["device"] for c in json.loads(saved)["chunks"]])
            self.assertGreater(len({c["device"] for c in used["chunks"]}), 1)


if __name__ == "__main__":
    unittest.main()
