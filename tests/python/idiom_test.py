"""Scripts written for onnxruntime (idiom/*.py) print the same with `import troupe as onnxruntime`, numbers within 1e-4.

What onnxruntime prints is in idiom/expected; where onnxruntime is installed (Debian 13: python3-onnxruntime), it runs
them, too.

usage: idiom_test.py             the tests
       idiom_test.py --write     has onnxruntime write idiom/expected
"""
import importlib.util
import math
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPTS = sorted((HERE / "idiom").glob("*.py"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
TOLERANCE = 1e-4


def printed_by(script, module):
    """Returns what a script prints if `module` is what it imports."""
    text = script.read_text()
    assert text.count("\nimport onnxruntime\n") == 1, f"{script.name} imports onnxruntime in a line of its own, once"
    text = text.replace("\nimport onnxruntime\n", f"\nimport {module} as onnxruntime\n")
    done = subprocess.run([sys.executable, "-"], input=text, cwd=ROOT, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{script.name} with {module} ends with status {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def difference(a, b):
    """Returns the first difference of two texts, numbers within the tolerance and white space aside; empty if there is
    none."""
    words = [re.sub(r"\s+", "", NUMBER.sub("#", text)) for text in (a, b)]
    if words[0] != words[1]:
        at = next(i for i, (x, y) in enumerate(zip(words[0] + "\0", words[1] + "\0")) if x != y)
        return f"'{words[0][max(0, at - 40) : at + 20]}' is not '{words[1][max(0, at - 40) : at + 20]}'"
    for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
        if not math.isclose(float(x), float(y), rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            return f"{x} is not {y}"
    return ""


class Comparison(unittest.TestCase):
    def test_it_sees_differences(self):
        self.assertEqual(difference("a [1.00001 2]\n", "a [ 1.0 2 ]"), "")
        self.assertEqual(difference("a 1.0", "a 1.001"), "1.0 is not 1.001")
        self.assertIn("is not", difference("a 1.0", "b 1.0"))
        self.assertIn("is not", difference("a 1.0", "a 1.0 2"))


class Idiom(unittest.TestCase):
    def test_there_are_at_least_eighteen(self):
        self.assertGreaterEqual(len(SCRIPTS), 18)

    def test_troupe_prints_what_is_expected(self):
        for script in SCRIPTS:
            with self.subTest(script.stem):
                expected = (HERE / "idiom" / "expected" / f"{script.stem}.txt").read_text()
                self.assertEqual(difference(printed_by(script, "troupe"), expected), "")

    @unittest.skipUnless(importlib.util.find_spec("onnxruntime"),
                         "onnxruntime is not installed (Debian 13: python3-onnxruntime)")
    def test_onnxruntime_prints_the_same(self):
        for script in SCRIPTS:
            with self.subTest(script.stem):
                self.assertEqual(difference(printed_by(script, "troupe"), printed_by(script, "onnxruntime")), "")


def write_expected():
    for script in SCRIPTS:
        (HERE / "idiom" / "expected" / f"{script.stem}.txt").write_text(printed_by(script, "onnxruntime"))
        print(script.stem)


if __name__ == "__main__":
    write_expected() if sys.argv[1:] == ["--write"] else unittest.main()
