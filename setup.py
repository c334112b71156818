"""Builds the wheel: CMake builds and installs the package, setuptools packs it.

    /usr/bin/python3 -m pip wheel --no-build-isolation --no-deps .

That wheel is for any x86-64 processor (the preset `generic`), and building it needs no network. The environment's
TROUPE_PRESET names another preset: a wheel of `release` is for this machine's processor alone. The wheel holds the
command and libtroupe; what they need of the system is in scripts/packages.txt.
"""
import os
import pathlib
import re
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"project\(troupe VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
PRESET = os.environ.get("TROUPE_PRESET", "generic")


class BuildWithCMake(build_py):
    """Has CMake fill the folder that the wheel is packed from."""

    def run(self):
        folder = pathlib.Path(self.build_lib).resolve()
        targets = ["troupe_python", "troupe_cli", "libtroupe"]
        subprocess.run(["cmake", "--preset", PRESET], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", "--preset", PRESET, "--target", *targets], cwd=ROOT, check=True)
        subprocess.run(
            ["cmake", "--install", f"build/{PRESET}", "--component", "python", "--strip", "--prefix", folder], cwd=ROOT,
            check=True
        )
        for link in folder.rglob("*.so.*"):  # a wheel has no links: libraries get the names that the linker looks for
            if link.is_symlink():
                link.resolve().replace(link)

    def get_outputs(self, include_bytecode=1):
        return [str(path) for path in pathlib.Path(self.build_lib).rglob("*") if path.is_file()]


class BinaryDistribution(Distribution):
    """One with compiled code, for this kind of processor."""

    def has_ext_modules(self):
        return True


setup(
    version=VERSION,
    packages=["troupe"],
    package_dir={"": "python"},
    cmdclass={"build_py": BuildWithCMake},
    distclass=BinaryDistribution,
    options={"egg_info": {"egg_base": "build"}},
)
