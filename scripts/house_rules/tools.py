"""Checks by other programs: clang-format, clang-tidy, the built command. Where one cannot run, it is skipped, which
is no success."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from . import words
from .tree import CPP, Skipped, Violation

TABLE_PAGE = "docs/operators.md"
TABLE = re.compile(r"(<!-- operators -->\n).*?(<!-- /operators -->)", re.S)


def need(program):
    if not shutil.which(program):
        raise Skipped(f"{program} is not installed")


def formatted(tree):
    """The format is clang-format's, so that no review is about it."""
    files = tree.select(*CPP)
    need("clang-format")
    done = run(tree, "clang-format", "--dry-run", "-Werror", *files)
    names = sorted({line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line})
    for name in names:
        yield Violation(name, 0, "not formatted (clang-format -i)")
    if done.returncode != 0 and not names:
        yield Violation(".clang-format", 0, f"clang-format failed: {last_line(done.stderr)}")


def clang_tidy(tree, base):
    """clang-tidy finds what compilers let pass. It takes a minute for ten files, so it looks at what changed since
    `base`."""
    if tree.git("rev-parse", "-q", "--verify", f"{base}^{{commit}}") is None:
        raise Skipped(f"there is no revision {base} to say what changed: name one with --base")
    changed = tree.git("diff", "--name-only", base, "--", "*.cpp").split()
    untracked = tree.git("ls-files", "-o", "--exclude-standard", "--", "*.cpp").split()
    known = set(tree.select(".cpp")) - set(tree.select(".cpp", under="tests/"))
    files = [path for path in dict.fromkeys(changed + untracked) if path in known]
    if not files:
        return
    if not (tree.root / "build/release/compile_commands.json").exists():
        raise Skipped(f"{len(files)} files changed, and there is no build/release (scripts/build)")
    need("clang-tidy")
    # One command a file, not a batch: a file that lacks an #include shows.
    build = tree.root / "build/files"
    done = run(tree, "cmake", "--preset", "release", "-B", build, "-DTROUPE_BATCHES=OFF")
    if done.returncode != 0:
        raise Skipped(f"build/files cannot be configured: {last_line(done.stderr)}")
    print(f"clang-tidy on {len(files)} changed files", flush=True)
    # clang 14 has no _Float16 on x86; its storage type of the same format takes its place here. Its own header of
    # float16 instructions does not compile with that.
    half = ["-D_Float16=__fp16", "-mno-avx512fp16", "-Xclang", "-fallow-half-arguments-and-returns"]
    half.append("-Wno-unknown-warning-option")
    command = ["clang-tidy", "-quiet", "-p", build, *(f"--extra-arg={argument}" for argument in half)]
    done = run(tree, "xargs", "-P", "2", "-n", "4", *command, given="\n".join(files))
    found = [re.match(r"(.*?):(\d+):\d+: (?:warning|error): (.*)", line) for line in done.stdout.splitlines()]
    for line in filter(None, found):
        path = pathlib.Path(line[1])
        inside = path.is_relative_to(tree.root)
        yield Violation(str(path.relative_to(tree.root)) if inside else line[1], int(line[2]), line[3])
    if done.returncode != 0 and not any(found):
        yield Violation(".clang-tidy", 0, f"clang-tidy failed: {last_line(done.stderr)}")


def mutations(tree):
    """Each planted defect (scripts/mutate) still has one place to be planted in: otherwise it proves nothing."""
    for mutation in json.loads(tree.text("tests/mutations.json")):
        path = mutation["file"]
        found = tree.text(path).count(mutation["replace"]) if path in tree.paths else 0
        if found != 1:
            yield Violation("tests/mutations.json", 0, f"'{mutation['name']}': its text occurs {found} times in {path}")


def operator_table(tree, update):
    """docs/operators.md shows the operators as `troupe operators` prints them: readers look for an operator there
    first."""
    table = run_troupe(tree, "operators")
    text = tree.text(TABLE_PAGE)
    wanted = TABLE.sub(lambda found: f"{found[1]}```text\n{table}```\n{found[2]}", text)
    if wanted != text and update:
        (tree.root / TABLE_PAGE).write_text(wanted)
    elif wanted != text:
        yield Violation(TABLE_PAGE, 0, "not the operators that `troupe operators` prints: scripts/check --update")


def figure_tables(tree):
    """The figures of bench/README.md are made from the raw files beside it: a number that is typed by hand cannot be
    checked."""
    if "bench/tables" not in tree.paths:
        return
    done = run(tree, sys.executable, "bench/tables", "--check")
    if done.returncode != 0:
        why = last_line(done.stderr)
        yield Violation("bench/README.md", 0, f"not the tables of bench/results (bench/tables): {why}")


def operator_names(tree):
    """The rule about operators' names knows them from the text of src/ops: here it is shown that it misses none."""
    printed = json.loads(run_troupe(tree, "operators", "--json"))
    known = words.operators(tree)
    for name in sorted({name for domain, names in printed.items() if domain != "on_cpu" for name in names} - known):
        yield Violation("scripts/house_rules/words.py", 0, f"OPERATOR_ROWS does not find {name} in src/ops")


def run_troupe(tree, *arguments):
    command = tree.root / "build/release/bin/troupe"
    if not command.exists():
        raise Skipped("there is no build/release/bin/troupe (scripts/build)")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout


def run(tree, *command, given=""):
    return subprocess.run(command, cwd=tree.root, input=given, capture_output=True, text=True)


def last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]
