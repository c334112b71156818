"""Where the dynamic linker looks for the libraries of what is built: never in the current folder, which an empty path means."""
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


if __name__ == "__main__":
    unittest.main()
