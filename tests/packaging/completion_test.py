"""Completion in bash: each line is completed as bash would, by the script that `troupe completion` prints."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import help

COMMAND, SCRIPT = sys.argv.pop(1), sys.argv.pop(1)
ASK = """
source /usr/share/bash-completion/bash_completion
source "$0"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_KEY=9
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_troupe
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(line, folder="/"):
    """Returns what bash would offer at the end of the line: what follows its last ':' or '='."""
    words = [word for part in re.split(r"(?<= )", line) for word in re.findall(r"[:=]+|[^:= ]+", part)]
    if line[-1] in " :=":
        words.append("")
    done = subprocess.run(["bash", "-c", ASK, SCRIPT, line, *words], cwd=folder, capture_output=True, text=True, check=True)
    return [reply.rstrip() for reply in done.stdout.splitlines()], done.stderr


class Completion(unittest.TestCase):
    def assert_completes(self, line, *wanted, **options):
        self.assertEqual((sorted(complete(line, **options)[0]), line), (sorted(wanted), line))

    def test_subcommands(self):
        self.assertEqual(complete("troupe "), (["--help", "--version", *help.subcommands(COMMAND)], ""))
        self.assert_completes("troupe com", "compare", "completion")
        self.assert_completes("troupe wor", "worker")

    def test_every_option_of_every_subcommand(self):
        for name in help.subcommands(COMMAND):
            wanted = [option for names, _ in help.options(COMMAND, name) for option in names]
            self.assertIn("--help", wanted)
            self.assert_completes(f"troupe {name} -", *wanted)

    def test_parts_of_options(self):
        self.assert_completes("troupe plan model.onnx --pol", "--policy", "--policy-plugin")
        self.assert_completes("troupe frobnicate --")

    def test_what_the_command_takes_is_offered(self):
        choices = {"--policy", "--strategy", "--precision", "--goal", "--schedule", "--shares"}
        for option in choices:
            offered = complete(f"troupe run {option} ")[0]
            self.assertGreater(len(offered), 1, option)
            for value in offered:
                strategy = ["--strategy", "pipeline"] if option in ("--schedule", "--shares") else []
                done = subprocess.run([COMMAND, "run", "no_such.onnx", "--devices", "null", option, value, *strategy], capture_output=True, text=True)
                self.assertIn("no_such.onnx", done.stderr, f"{option} {value}")
        done = subprocess.run([COMMAND, "run", "no_such.onnx", "--devices", "null", "--policy", "best"], capture_output=True, text=True)
        self.assertNotIn("no_such.onnx", done.stderr)
        known = re.findall(r"[a-z-]+", done.stderr.split("known are:")[1])
        self.assertEqual(complete("troupe run --policy ")[0], known)

    def test_values_with_an_equals_sign(self):
        self.assert_completes("troupe run --policy=hef", "heft")
        self.assert_completes("troupe run --strategy wo", "work-stealing")
        self.assert_completes("troupe run --json --policy=no-such")

    def test_lists_of_devices(self):
        self.assert_completes("troupe run --devices c", "cpu")
        self.assert_completes("troupe run --devices cpu,v", "cpu,vulkan:0")
        self.assert_completes("troupe run --devices vulkan:", "0")

    def test_files_and_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "model.onnx").touch()
            (pathlib.Path(folder) / "models").mkdir()
            self.assert_completes("troupe run mod", "model.onnx", "models", folder=folder)
            self.assert_completes("troupe run x --trace mod", "model.onnx", "models", folder=folder)
            self.assert_completes("troupe run x --output mod", "models", folder=folder)
            self.assert_completes("troupe run --input image=model.", "model.onnx", folder=folder)
            self.assert_completes("troupe run --input mod", folder=folder)
            self.assert_completes("troupe run --timeout mod", folder=folder)

    def test_every_value_that_is_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "place").mkdir()
            for name in help.subcommands(COMMAND):
                for names, type_name in help.options(COMMAND, name):
                    wanted = ["place"] if type_name in ("FILE", "FOLDER") else []
                    if type_name:
                        self.assert_completes(f"troupe {name} {names[-1]} pla", *wanted, folder=folder)


if __name__ == "__main__":
    unittest.main()
