"""Every command and snippet of the README files and of docs/ works: shell lines run, Python runs, C++ compiles and
links with libtroupe.

usage: snippets_test.py BUILD_FOLDER [FILE.md…]

A block is a fence or indented lines. A fence says what it is (```sh, python, cpp); before others stands a comment that
pages do not show, `<!-- snippet: sh -->`, also `python`, `cpp`, `text` for anything else (pictures, file formats,
output), or `skip: REASON`. A block without either fails, so does a shell line that fails. Of blocks with lines that
begin with `$ `, those are run, and the rest is what they print, or, after `>>> `, what they are given to read. Lines
that cannot run here are in not_run.txt, with the reason. Commands run in a scratch folder that has what the texts
assume: `model.onnx` and the like, small.
"""
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KINDS = ("sh", "python", "cpp", "text", "skip")


class Block:
    def __init__(self, file, line, kind, lines):
        self.place = f"{file.relative_to(ROOT)}:{line}"
        self.kind, self.lines = kind, lines


def blocks_of(file):
    """Yields the blocks of a Markdown file; those of no known kind as they are."""
    lines = file.read_text().splitlines()
    mark, at = "", 0
    while at < len(lines):
        line, begin = lines[at], at + 1
        comment = re.match(r"<!-- snippet: (sh|python|cpp|text|skip(?=: \S))(: .+)? -->$", line)
        fence = re.match(r"```(.*)", line)
        at += 1
        if comment:
            mark = comment[1]
        elif fence:
            end = next(i for i in range(at, len(lines)) if lines[i].startswith("```"))
            if not fence[1].startswith("{"):  # directives of the site are checked by scripts/docs
                yield Block(file, begin, mark or fence[1], lines[at:end])
            mark, at = "", end + 1
        elif line.startswith("    ") and (begin == 1 or not lines[begin - 2].strip()):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            yield Block(file, begin, mark, [row[4:] for row in lines[begin - 1 : at]])
            mark = ""
        elif line.strip():
            mark = ""


class NotRun:
    """The list of lines that cannot run here."""

    def __init__(self):
        rows = [row.rsplit(" | ", 1) for row in (HERE / "not_run.txt").read_text().splitlines()
                if row and not row.startswith("#")]
        self.patterns = {pattern: reason for pattern, reason in rows}
        self.used = set()

    def has(self, command):
        for pattern in self.patterns:
            if fnmatch.fnmatchcase(re.split(r"\s+#", command)[0], pattern):
                self.used.add(pattern)
                return True
        return False


def script_of(block, not_run):
    """Returns a shell block as a script, and how many commands it has."""
    commands, session = [], any(line.startswith("$ ") for line in block.lines)
    for line in block.lines:
        if session and line.startswith((">>> ", "... ")):
            commands[-1][1].append(line[4:])
        elif session and not line.startswith("$ "):
            continue
        elif line.strip():
            commands.append((line[2:] if session else line, []))
    parts = []
    for command, given in commands:
        if not not_run.has(command):
            parts.append(command if not given else f"{command} <<'GIVEN'\n" + "\n".join(given) + "\nGIVEN")
    return "\n".join(["set -eo pipefail", *parts]), len(parts)


def prepare(scratch, build):
    """Fills the scratch folder with the files that the texts assume; returns the environment of commands."""
    (scratch / "build").mkdir()
    (scratch / "build" / "release").symlink_to(build)
    for name in ("scripts", "README.md", "tests", "src"):
        (scratch / name).symlink_to(ROOT / name)
    (scratch / "examples").mkdir()
    for path in (ROOT / "examples").iterdir():
        (scratch / "examples" / path.name).symlink_to(path)
    subprocess.run(["bash", "-e", HERE / "prepare.sh", ROOT, build], cwd=scratch, check=True)
    home = scratch / "home"
    home.mkdir()
    environment = dict(os.environ, HOME=str(home), XDG_CACHE_HOME=str(home), XDG_CONFIG_HOME=str(home),
                       XDG_DATA_HOME=str(home))
    environment["PATH"] = f"{build}/bin:{environment['PATH']}"
    environment["PYTHONPATH"] = f"{build}/python"
    return environment


def run_shell(block, scratch, environment, not_run):
    script, count = script_of(block, not_run)
    done = subprocess.run(["bash", "-x", "-c", script], cwd=scratch, env=environment, capture_output=True, text=True,
                          timeout=300)
    if done.returncode != 0:
        return count, f"{block.place}: status {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}"
    return count, ""


def run_python(block, scratch, environment, _):
    done = subprocess.run(["/usr/bin/python3", "-"], input="\n".join(block.lines), cwd=scratch, env=environment,
                          capture_output=True, text=True)
    return 1, f"{block.place}: status {done.returncode}\n{done.stderr[-1500:]}" if done.returncode != 0 else ""


def compile_cpp(blocks, scratch, build):
    """Compiles all C++ snippets as functions of one program, after prelude.hpp, and links it; returns the errors."""
    includes, functions = [], []
    for number, block in enumerate(blocks):
        includes += [line for line in block.lines if line.startswith("#include")]
        body = "\n".join(line for line in block.lines if not line.startswith("#include"))
        file, line = block.place.rsplit(":", 1)
        functions.append(f'#line {line} "{file}"\nvoid snippet_{number}() {{\n{body}\n}}')
    calls = "\n".join(f"  snippet_{number}();" for number in range(len(blocks)))
    source = scratch / "snippets.cpp"
    source.write_text("\n".join([*sorted(set(includes)), '#include "prelude.hpp"', *functions,
                                 f"int main() {{\n{calls}\n}}"]))
    command = ["g++", "-std=c++20", "-O0", "-w", "-I", ROOT / "include", "-I", HERE, source, "-o", scratch / "snippets"]
    done = subprocess.run([*command, "-L", build / "lib", "-ltroupe", f"-Wl,-rpath-link,{build / 'lib'}"],
                          capture_output=True, text=True)
    return done.stderr[:3000] if done.returncode != 0 else ""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True,
                            text=True, check=True)
    files = [ROOT / name for name in sys.argv[2:] or listed.stdout.split()]
    blocks = [block for file in files if file.exists() for block in blocks_of(file)]
    problems = [f"{b.place}: a snippet that is not marked as one of {', '.join(KINDS)}" for b in blocks
                if b.kind not in KINDS]
    not_run, counts = NotRun(), {kind: 0 for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        environment = prepare(scratch, build)
        for block in blocks:
            runner = {"sh": run_shell, "python": run_python}.get(block.kind)
            count, problem = runner(block, scratch, environment, not_run) if runner else (1, "")
            counts[block.kind] = counts.get(block.kind, 0) + count
            problems += [problem] if problem else []
        problem = compile_cpp([block for block in blocks if block.kind == "cpp"], scratch, build)
        problems += [problem] if problem else []
    if len(sys.argv) == 2:
        problems += [f"not_run.txt: nothing is like '{pattern}'" for pattern in not_run.patterns
                     if pattern not in not_run.used]
    print("\n".join(problems) or f"{counts['sh']} commands ran, {counts['python']} Python snippets; {counts['cpp']} of "
                                 "C++ compiled and linked")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
