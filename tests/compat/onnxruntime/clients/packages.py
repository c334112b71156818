"""Packages from npm for the tests, in versions that are stated, in the build folder; programs of theirs on troupe."""
import fcntl
import os
import pathlib
import re
import subprocess
import sys

OURS = pathlib.Path(__file__).resolve().parent / "ours.cjs"
OTHER_LIBRARY = 9  # the status of a program that did not run on troupe's library, by ours.cjs


def checked():
    """Returns the environment for programs of Node that have to run on troupe's library."""
    return os.environ | {"NODE_OPTIONS": f"--require {OURS}"}


def install(build, *packages):
    """Returns the folder node_modules that holds the packages ("NAME@VERSION"), installed if need be; exits with 77,
    which CTest calls skipped, where npm does not give them. Tests side by side may want the same."""
    folder = build / "clients" / "+".join(re.sub("[/@:]+", "-", p.strip("@")) for p in packages)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        install_into(folder, packages)
    return folder / "node_modules"


def install_into(folder, packages):
    done = folder / "installed"
    if not done.exists():
        command = ["npm", "install", "--silent", "--prefix", folder, "--ignore-scripts", *packages]
        try:
            run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=900)
            problem = (run.stderr.strip() or "npm failed").splitlines()[-1] if run.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
        if problem:
            print(f"SKIPPED: {', '.join(packages)} cannot be had from npm: {problem}")
            sys.exit(77)
        done.touch()
