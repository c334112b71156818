"""`python -m troupe`: the troupe command, which is installed beside this package."""
import os
import sys

from troupe._command import command
from troupe.errors import NoSuchFile


def main() -> None:
    try:
        program = command()
    except NoSuchFile as failure:
        sys.exit(f"troupe: {failure}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
