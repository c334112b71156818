"""The contents of the command's help: subcommands, and the options of each."""
import re
import subprocess


def printed(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def subcommands(command):
    listed = printed(command, "--help").split("\nSubcommands:\n")[1]
    return re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)


def options(command, subcommand):
    """Returns each option's names, whether it takes a value, and the value's type; an argument has no names."""
    found = []
    text = printed(command, subcommand, "--help-all")
    for names, rest in re.findall(r"^  (-[^ ,]*(?:, -[^ ,]*)*)(.*)", text, re.MULTILINE):
        type_name = re.match(r" ([A-Z][^ ]*)", rest)
        found.append((names.split(", "), type_name[1].split(":")[0] if type_name else None))
    return found
