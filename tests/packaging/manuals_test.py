"""Man pages: one for the command and each subcommand, with every option, and man shows them without a warning."""
import gzip
import pathlib
import subprocess
import sys
import unittest

import help

COMMAND, FOLDER = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))


class Manuals(unittest.TestCase):
    def test_there_is_one_for_each_subcommand(self):
        wanted = {"troupe.1.gz"} | {f"troupe-{name}.1.gz" for name in help.subcommands(COMMAND)}
        self.assertGreater(len(wanted), 10)
        self.assertEqual({file.name for file in FOLDER.iterdir()}, wanted)

    def test_they_have_every_option(self):
        for name in help.subcommands(COMMAND):
            text = gzip.decompress((FOLDER / f"troupe-{name}.1.gz").read_bytes()).decode().replace("\\-", "-")
            self.assertIn(f"\ntroupe-{name} - ", text)
            for names, _ in help.options(COMMAND, name):
                for option in names:
                    self.assertRegex(text, rf"(?m)^\.TP\n.*\\fB{option}\\fR", f"{option} of {name}")

    def test_man_shows_them_without_a_warning(self):
        for file in FOLDER.iterdir():
            done = subprocess.run(["man", "--warnings", "-l", file], capture_output=True,
                                  env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin", "MANWIDTH": "80"})
            self.assertEqual((done.returncode, done.stderr.decode()), (0, ""), file.name)
            self.assertIn("SEE ALSO", done.stdout.decode(), file.name)


if __name__ == "__main__":
    unittest.main()
