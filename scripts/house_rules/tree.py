"""The files that the rules look at, and what a rule reports."""
import dataclasses
import functools
import pathlib
import subprocess

CPP = (".cpp", ".hpp")
SHADERS = (".comp", ".glsl", ".h")


@dataclasses.dataclass(frozen=True)
class Violation:
    """One breach of a rule. `line` is 0 where the whole file is meant."""
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


class Skipped(Exception):
    """A check could not run; the message says why."""


class Tree:
    """The files that git tracks or would track. Paths are texts relative to the root, with slashes."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    @functools.cached_property
    def paths(self):
        command = ["git", "ls-files", "-coz", "--exclude-standard"]
        listed = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
        return sorted({name for name in listed.stdout.split("\0") if name and (self.root / name).is_file()})

    def select(self, *suffixes, under=""):
        """Returns the paths with one of these suffixes in the folder `under`."""
        return [path for path in self.paths if path.endswith(suffixes) and path.startswith(under)]

    @functools.cached_property
    def scripts(self):
        """Executable files without a suffix: scripts/check and the like."""
        return [path for path in self.paths
                if not pathlib.PurePosixPath(path).suffix and (self.root / path).read_bytes()[:2] == b"#!"]

    @functools.cached_property
    def cmake(self):
        return [path for path in self.paths if path.endswith((".cmake", "CMakeLists.txt"))]

    @functools.cached_property
    def shaders(self):
        return self.select(*SHADERS, under="shaders/")

    @functools.cache
    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    @functools.cache
    def lines(self, path):
        return self.text(path).split("\n")[:-1] if self.text(path).endswith("\n") else self.text(path).split("\n")

    def git(self, *arguments):
        """Runs git; returns what it printed, or None where it failed."""
        done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None
