#!/usr/bin/env python3
"""Compiles a kernel whose instructions name ids of its own module (group_matrix.glsl).

usage: compile_twice.py HEADER VARIABLE DEPENDENCIES GLSLANG ARGUMENT…

The first compilation gives the ids of the scalar types and of all functions; the second gets them as definitions and
writes the module as an array of C++. SPIR-V: a module is words of 32 bits, five of a header, then instructions; the
first word of one has its length above its code (SPIR-V specification, 2.3).
"""
import pathlib
import struct
import subprocess
import sys
import tempfile

TYPE_INT, TYPE_FLOAT, NAME = 21, 22, 5
ANY_IDS = [f"-DTYPE_{name}=1" for name in ("F16", "F32", "U8", "I32")]  # for the first compilation


def ids_of(module):
    """Definitions of what the module calls its scalar types and functions."""
    words = struct.unpack(f"<{len(module) // 4}I", module)
    found = {}
    at = 5
    while at < len(words):
        length, code = words[at] >> 16, words[at] & 0xFFFF
        if code == TYPE_FLOAT:
            found[f"TYPE_F{words[at + 2]}"] = f"{words[at + 1]}"
        elif code == TYPE_INT:
            found[f"TYPE_{'UI'[words[at + 3]]}{words[at + 2]}"] = f"{words[at + 1]}"
        elif code == NAME:
            name = struct.pack(f"<{length - 2}I", *words[at + 2:at + length]).split(b"\0")[0].decode()
            if "(" in name:  # "weight(u1;u1;f1;": a function
                found[f"FUNCTION_{name.split('(')[0]}"] = f"{words[at + 1]}u"
        at += length
    return [f"-D{name}={value}" for name, value in found.items()]


def run_compiler(command):
    done = subprocess.run([*command, "--keep-uncalled"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def main():
    header, variable, dependencies, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        first = pathlib.Path(folder) / "first.spv"
        run_compiler([*command, *ANY_IDS, "-o", first])
        run_compiler([*command, *ids_of(first.read_bytes()), "--depfile", dependencies, "--vn", variable, "-o", header])


if __name__ == "__main__":
    main()
