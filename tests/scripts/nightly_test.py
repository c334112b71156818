"""scripts/nightly goes on after a failure, keeps a summary, and says by its exit status whether a step failed."""
import contextlib
import datetime
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DAY = datetime.date(2026, 2, 3)


def load():
    loader = importlib.machinery.SourceFileLoader("nightly", str(ROOT / "scripts/nightly"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly", loader))
    loader.exec_module(module)
    return module


nightly = load()


class Summary(unittest.TestCase):
    def run_steps(self, *commands):
        """Runs steps that are called a, b, …; returns the exit status and the summary."""
        with tempfile.TemporaryDirectory() as place:
            steps = [nightly.Step(name, command, skips=True) for name, command in zip("abc", commands)]
            with contextlib.redirect_stdout(io.StringIO()) as said:
                status = nightly.run_all(steps, DAY, pathlib.Path(place))
            summary = pathlib.Path(place, "2026-02-03.txt").read_text()
            self.assertEqual(said.getvalue(), summary)
            self.assertTrue(pathlib.Path(place, "2026-02-03/a.log").exists())
        return status, summary

    def test_all_pass(self):
        status, summary = self.run_steps("echo one", "say two")
        self.assertEqual(status, 0)
        self.assertEqual(re.sub(r"\d+ s:", "N s:", summary),
                         "passed  a: echo one\n        status 0, N s: one\n"
                         "passed  b: say two\n        status 0, N s: == two\n"
                         "2 steps: 2 passed, 0 FAILED, 0 SKIPPED\n")

    def test_a_failure_does_not_stop_what_follows(self):
        status, summary = self.run_steps("false; echo never", "die 'a reason'", "echo three")
        self.assertEqual(status, 1)
        self.assertRegex(summary, r"FAILED  a: .*\n +status 1, \d+ s: \(printed nothing\)")
        self.assertRegex(summary, r"FAILED  b: .*\n +status 1, \d+ s: error: a reason")
        self.assertRegex(summary, r"passed  c: .*\n +status 0, \d+ s: three")

    def test_what_could_not_run_is_no_success(self):
        self.assertEqual(self.run_steps("exit 3", "true")[0], 2)
        self.assertEqual(self.run_steps("exit 3", "false")[0], 1)


class List(unittest.TestCase):
    def test_days_have_seeds_of_their_own(self):
        for step in nightly.steps_of(DAY):
            for count in re.findall(r"random-graphs (\d+)", step.command):
                self.assertLessEqual(int(count), nightly.SEEDS_A_DAY)
        self.assertEqual(nightly.seed_of(DAY + datetime.timedelta(days=1)) - nightly.seed_of(DAY), nightly.SEEDS_A_DAY)

    def test_list_names_scripts_that_are_there(self):
        command = [ROOT / "scripts/nightly", "--list", "--date", "2026-02-03"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        scripts = set(re.findall(r"scripts/[\w-]+", done.stdout))
        self.assertLessEqual({"scripts/fuzz", "scripts/mutate", "scripts/random-graphs"}, scripts)
        for script in scripts:
            self.assertTrue(os.access(ROOT / script, os.X_OK), script)

    def test_an_unknown_step_is_refused(self):
        done = subprocess.run([ROOT / "scripts/nightly", "--list", "other"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no step other", done.stderr)


if __name__ == "__main__":
    unittest.main()
