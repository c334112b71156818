"""`python -m troupe`: the troupe command, which is installed beside this package."""
import os
import pathlib
import shutil
import sys


def command() -> str:
    """Returns the command of this installation: the package's own, else the one in the path."""
    own = pathlib.Path(__file__).parent / "bin" / "troupe"
    found = str(own) if own.exists() else shutil.which("troupe")
    if not found:
        sys.exit("troupe: the command is neither in the package's folder bin nor in the path: install the package "
                 "troupe")
    return found


def main() -> None:
    program = command()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
