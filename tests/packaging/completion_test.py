"""Completion in bash: each line is completed as bash would, by the script that `troupe completion` prints."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import help

COMMAND, SCRIPT = sys.argv.pop(1), sys.argv.pop(1)
# Reads a line and its words in bash's sense, all ended by a unit separator; prints the replies, one a line, and a
# record separator.
ASK = r"""
source /usr/share/bash-completion/bash_completion
source "$0"
COMP_TYPE=9 COMP_KEY=9
while IFS=$'\x1f' read -ra given; do
  COMP_LINE=${given[0]} COMP_POINT=${#given[0]}
  COMP_WORDS=("${given[@]:1}") COMP_CWORD=$((${#given[@]} - 2)) COMPREPLY=()
  _troupe
  [ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
  printf '\x1e\n'
done
"""


def words_of(line):
    words = [word for part in re.split(r"(?<= )", line) for word in re.findall(r"[:=]+|[^:= ]+", part)]
    return words + [""] if line[-1] in " :=" else words


def complete_all(lines, folder="/"):
    """Returns what bash would offer at the end of each line: the part after its last ':' or '='."""
    asked = "".join("\x1f".join([line, *words_of(line)]) + "\x1f\n" for line in lines)
    done = subprocess.run(["bash", "-c", ASK, SCRIPT], input=asked, cwd=folder, capture_output=True, text=True,
                          check=True)
    answers = done.stdout.split("\x1e\n")
    assert len(answers) == len(lines) + 1 and done.stderr == "", done.stderr
    return [[reply.rstrip() for reply in answer.splitlines()] for answer in answers[:-1]]


def complete(line):
    return complete_all([line])[0]


class Completion(unittest.TestCase):
    def assert_completes(self, wanted, folder="/"):
        """wanted: the offered words, by line."""
        for (line, replies), offered in zip(wanted.items(), complete_all(list(wanted), folder)):
            self.assertEqual((sorted(offered), line), (sorted(replies), line))

    def test_subcommands(self):
        self.assertEqual(complete("troupe "), ["--help", "--help-all", "--version", *help.subcommands(COMMAND)])
        self.assert_completes({"troupe com": ["compare", "completion"], "troupe wor": ["worker"]})

    def test_every_option_of_every_subcommand(self):
        wanted = {}
        for name in help.subcommands(COMMAND):
            wanted[f"troupe {name} -"] = [option for names, _ in help.options(COMMAND, name) for option in names]
            self.assertIn("--help", wanted[f"troupe {name} -"])
        self.assert_completes(wanted)

    def test_parts_of_options(self):
        self.assert_completes({"troupe plan model.onnx --pol": ["--policy", "--policy-plugin"],
                               "troupe frobnicate --": []})

    def test_what_the_command_takes_is_offered(self):
        for option in ("--policy", "--strategy", "--precision", "--goal", "--schedule", "--shares"):
            offered = complete(f"troupe run {option} ")
            self.assertGreater(len(offered), 1, option)
            for value in offered:
                strategy = ["--strategy", "pipeline"] if option in ("--schedule", "--shares") else []
                self.assertIn("no_such.onnx", self.run_nothing(option, value, *strategy), f"{option} {value}")
        error = self.run_nothing("--policy", "best")
        self.assertEqual(complete("troupe run --policy "), re.findall(r"[a-z-]+", error.split("known are:")[1]))

    @staticmethod
    def run_nothing(*options):
        """Returns the complaint about the options, or, if they are right, about the model."""
        command = [COMMAND, "run", "no_such.onnx", "--devices", "null", *options]
        return subprocess.run(command, capture_output=True, text=True).stderr

    def test_values_with_an_equals_sign(self):
        self.assert_completes({"troupe run --policy=hef": ["heft"], "troupe run --strategy wo": ["work-stealing"],
                               "troupe run --json --policy=no": []})

    def test_lists_of_devices(self):
        lists = {"c": ["cpu"], "cpu,v": ["cpu,vulkan:0"], "vulkan:": ["0"]}
        self.assert_completes({f"troupe run --devices {given}": wanted for given, wanted in lists.items()})

    def test_files_and_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "model.onnx").touch()
            (pathlib.Path(folder) / "models").mkdir()
            wanted = {
                "mod": ["model.onnx", "models"],
                "x --trace mod": ["model.onnx", "models"],
                "x --output mod": ["models"],
                "--input image=model.": ["model.onnx"],
                "--input mod": [],
                "--timeout mod": [],
            }
            self.assert_completes({f"troupe run {line}": replies for line, replies in wanted.items()}, folder)

    def test_every_value_that_is_a_path(self):
        wanted = {}
        for name in help.subcommands(COMMAND):
            for names, type_name in help.options(COMMAND, name):
                if type_name:
                    wanted[f"troupe {name} {names[-1]} pla"] = ["place"] if type_name in ("FILE", "FOLDER") else []
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "place").mkdir()
            self.assert_completes(wanted, folder)


if __name__ == "__main__":
    unittest.main()
