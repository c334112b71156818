"""Where the dynamic linker looks for the libraries of what is built: never in the current folder, which an empty path
means. And how often D3 is in them."""
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))


class Linking(unittest.TestCase):
    def test_no_path_is_empty_or_relative(self):
        files = [BUILD / "bin/troupe", *BUILD.glob("lib/**/*.so"), *BUILD.glob("python/troupe/*.so")]
        self.assertGreater(len(files), 1)
        for file in files:
            facts = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
            for paths in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", facts):
                for path in paths.split(":"):
                    self.assertRegex(path, r"^(/|\$ORIGIN(/|$))", f"{file}: {paths}")

    def test_d3_is_once_in_what_draws_and_not_in_the_core(self):
        def count(file):
            return file.read_bytes().count(b"https://d3js.org v")
        libraries = BUILD / "lib"
        self.assertEqual(count(BUILD / "bin/troupe"), 1)
        if (libraries / "libtroupe-lab.so").exists():
            self.assertEqual(count(libraries / "libtroupe-lab.so"), 1)
            self.assertEqual([count(libraries / name) for name in ("libtroupe.so", "libtroupe-core.so")], [0, 0])


if __name__ == "__main__":
    unittest.main()
