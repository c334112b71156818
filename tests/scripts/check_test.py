"""scripts/check reports each rule: a line that breaks it is planted in a small tree, and that rule alone reports it.

The tree is a git repository with a copy of scripts/check, a few files that keep all rules, and a program in place of
the built command.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBTS = "scripts/check_debts.json"
NO_DEBTS = {"line_length": {}, "methods": {}, "plain_words": {}}
OPERATORS = {"": ["Add", "Pow", "Relu"]}
COMMAND = f"#!/bin/sh\n[ \"$2\" = --json ] && echo '{json.dumps(OPERATORS)}' || echo table\n"
TABLE = "<!-- operators -->\n```text\ntable\n```\n<!-- /operators -->\n"

GOOD = {
    ".gitignore": "/build/\n__pycache__/\n/scripts/check\n/scripts/house_rules/\n",
    ".clang-format": (ROOT / ".clang-format").read_text(),
    "docs/operators.md": f"# Operators\n\n{TABLE}",
    "include/troupe/a.hpp": "// A public header.\n#include <vector>\n",
    "include/troupe/troupe.hpp": '// `a.hpp`\n#include "troupe/a.hpp"\n',
    "src/base/a.hpp": "// Helpers.\nint f();\n",
    "src/ops/a.cpp": 'auto rows = {op_row("Add", 1), label_row<a<b>>("Relu", 1)};\n',
    "src/ops/onnx/pow.cpp": 'op_def pow_row{.name = "Pow"};\n',
    "src/plan/plan.hpp": "// The plan.\n",
    "src/plan/place/place.cpp": '#include "plan/plan.hpp"\n',
    "src/plan/place/place.hpp": "// Placement.\n",
    "src/plan/show/show.cpp": '#include "plan/place/place.hpp"\n',
    "cli/main.cpp": 'auto help = "Print the plan";\n',
    "shaders/a.comp": "// A kernel.\nvoid main() {}\n",
    "tests/mutations.json": '[{"name": "m", "file": "src/base/a.hpp", "replace": "int f"}]\n',
    DEBTS: json.dumps(NO_DEBTS),
}


def class_of(methods):
    """A class with constructors and the like, which are not methods, and a number of methods."""
    head = """class many {
public:
  many();
  ~many();
  many(const many&) = delete;
  bool operator==(const many&) const;
  std::function<void(int)> member;
  int value = f(3);
  void (*pointer)(int);
  using alias = int(int);
"""
    return head + "".join(f"  int m_{i}(int a = f({{}})) const {{ return a; }}\n" for i in range(methods)) + "};\n"


def body(lines, head="void f() {", indent=""):
    """A function of that many lines."""
    return "".join([f"{indent}{head}\n", *[f"{indent}  g();\n"] * (lines - 2), f"{indent}}}\n"])


def inside(name=""):
    """A namespace of that name inside troupe, or troupe itself, with something in it."""
    name = f"troupe::{name}" if name else "troupe"
    return f"namespace {name} {{\nint f();\n}} // namespace {name}\n"


CONSTRUCTOR = "b() : i_{1}, j_(2) {"
TWO_LINES = f"auto f(int {'a' * 60}, int {'b' * 60}) -> int {{"  # when it is formatted
LONG = "// " + "a " * 60

# Rule → the files that break it: by their path, new or in place of a good one.
PLANTED = {
    "formatted": [{"src/base/a.cpp": "int  f();\n"}],
    "file_length": [{"src/base/a.cpp": "int i;\n" * 401}, {"tests/a.py": "i = 1\n" * 401}],
    "function_length": [{"src/base/a.cpp": body(51, "layout f() {")}, {"shaders/a.comp": body(161)},
                        {"src/base/a.cpp": "namespace {\n" + body(51) + "} // namespace\n"},
                        {"src/base/a.cpp": "class a {\n" + body(51, indent="  ") + "};\n"},
                        {"src/base/a.cpp": "struct {\n" + body(51, indent="  ") + "} a;\n"},
                        {"src/base/a.cpp": f"struct a {{\n  struct b {{\n{body(51, CONSTRUCTOR, '    ')}  }};\n}};\n"},
                        {"src/base/a.cpp": body(50, TWO_LINES)}],
    "line_length": [{"src/base/a.cpp": LONG + "\n"}, {"a.md": "- " + "a " * 60 + "\n"}, {"shaders/a.glsl": LONG + "\n"},
                    {"cmake/A.cmake": f"#{LONG}\n"}, {"scripts/run": f"#!/bin/sh\n#{LONG}\n"},
                    {"tests/a.py": f"i = '{LONG}'\n"}],
    "methods": [{"src/base/a.hpp": "int f();\n" + class_of(26)},
                {"src/base/a.cpp": f"namespace {{\n\n{class_of(26)}\n}} // namespace\n"}],
    "layering": [{"src/base/a.cpp": '#include "plan/plan.hpp"\n'}, {"src/plan/a.cpp": '#include "loader/a.hpp"\n'},
                 {"src/plan/a.cpp": '#include "cli/a.hpp"\n'}, {"actors/a.cpp": '#include "sim/a.hpp"\n'},
                 {"include/troupe/a.hpp": '#include "base/a.hpp"\n'},
                 {"include/troupe/a.hpp": "#include <fmt/format.h>\n"}],
    "doors": [{"src/base/a.cpp": "#include <caf/all.hpp>\n"}, {"src/plan/a.cpp": "#include <openssl/evp.h>\n"}],
    "matchers": [{"tests/a_test.cpp": "using Catch::Matchers::Contains;\n"}],
    "first_header": [{"include/troupe/troupe.hpp": "// `a.hpp`\n"},
                     {"include/troupe/troupe.hpp": '#include "troupe/a.hpp"\n'},
                     {"include/troupe/b.hpp": "// A public header.\n"}],
    "sub_rooms": [{"src/plan/place/place.cpp": '#include "plan/show/show.hpp"\n'},
                  {"src/plan/place/place.cpp": '#include "plan/place/policies/a.hpp"\n'},
                  {"src/ops/pow.hpp": '#include "ops/onnx/a.hpp"\n'}],
    "unknown_rooms": [{"src/plan/other/a.cpp": "int i;\n"}, {"src/ops/other/a.hpp": "int f();\n"}],
    "namespaces": [{"src/sim/a.cpp": inside("sim"), "src/sim/b.cpp": inside("sim"), "src/sim/c.cpp": inside()},
                   {"src/sim/a.cpp": inside("sim"), "src/sim/b.hpp": "// A header.\n" + inside("sim") + inside()},
                   {"src/sim/a.cpp": inside("simulation"), "src/sim/b.cpp": inside("simulation")}],
    "operator_literals": [{"src/plan/plan.cpp": f'bool b = name == "{name}";\n'} for name in OPERATORS[""]],
    "operator_names": [{"src/ops/onnx/pow.cpp": "int i;\n"}],
    "operator_table": [{"docs/operators.md": TABLE.replace("table\n", "other\n")}],
    "plain_words": [{"include/troupe/a.hpp": "// A header.\n\n/// Whoever reads it.\nint f();\n"},
                    {"a/README.md": "It stands\nfor a text.\n"},
                    {"cli/main.cpp": 'auto help = "Print so many plans";\n'},
                    {"src/base/a.cpp": 'auto why = "it fits on "\n           "none of the devices";\n'},
                    {"compat/a.cpp": 'auto why = "nobody has it";\n'},
                    {"src/base/b.hpp": "// The file lies here.\n"},
                    {"tests/a.py": '"""Read by nobody."""\n'}, {"scripts/run": "#!/bin/sh\n# None of them.\n"},
                    {"src/base/b.hpp": "// It waits behind the others.\n"},
                    {"src/base/a.cpp": "int f() {\n  return 1; // Nobody waits.\n}\n"},
                    {"shaders/a.comp": "void main() {} // for so\n// many\n"},
                    {"python/a.py": "i = 1  # None of them.\n"}],
    "sorted_tables": [{"src/base/a.cpp": "// scripts/check: sorted\nint b;\nint a;\n"},
                      {"src/base/a.cpp": "// scripts/check: sorted\nint a;\nint a;\n"}],
    "mutations": [{"src/base/a.hpp": "// Helpers.\nint f(), g();\nint f;\n"}],
    "figure_tables": [{"bench/tables": "import sys\nsys.exit('stale')\n"}],
}

# Files that a rule names in place of the planted one.
ELSEWHERE = ["bench/README.md", "include/troupe/troupe.hpp", "tests/mutations.json", "scripts/house_rules/words.py"]

# Lines that look like violations and are none.
ALLOWED = [
    {"a.md": "| " + "a " * 60 + "|\n- [" + "a" * 60 + "](" + "b" * 70 + ")\n"},
    {"src/base/a.cpp": body(50) + class_of(25)},
    {"src/base/a.cpp": "// A text.\nauto text = R\"(void f() {\n" + "\n" * 60 + ")\";\n"},
    {"tests/a.cpp": "// A file.\n\n// Whoever reads below the top\n\n/// is nobody.\nint i;\n"},
    {"shaders/a.comp": body(160)},
    {"src/plan/plan.cpp": '#include "plan/place/place.hpp"\n#include "plan/show/show.hpp"\n\nint i; // "Relu"\n'},
    {"cli/main.cpp": "int behind = nobody(); // none\nint i;               // of these\n"},
    {"src/sim/a.cpp": inside("sim"), "src/sim/b.cpp": inside("sim") + "\n" + inside()},
    {"src/cpu/a.cpp": inside("int8"), "src/cpu/b.cpp": inside(), "src/cpu/c.cpp": inside()},
    {"src/base/a.cpp": "// scripts/check: sorted\nint a;\nint b;\n\nint a;\n"},
]


class Planted:
    """A copy of the good tree with other files in it."""

    def __init__(self, files=None, built=True):
        self.place = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.place.name)
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/check", self.root / "scripts/check")
        shutil.copytree(ROOT / "scripts/house_rules", self.root / "scripts/house_rules",
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.write(GOOD)
        if built:
            self.write({"build/release/bin/troupe": COMMAND})
            (self.root / "build/release/bin/troupe").chmod(0o755)
        self.git("init", "-q")
        self.commit()
        self.write(files or {})
        self.commit()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.cleanup()

    def write(self, files):
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.root, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a")

    def check(self, *options):
        path = f"{self.root / 'build/tools'}:{os.environ['PATH']}"
        done = subprocess.run([self.root / "scripts/check", *options], env={**os.environ, "PATH": path},
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def add_tool(self, name, script):
        """Puts a program in place of the one of that name."""
        self.write({f"build/tools/{name}": f"#!/bin/sh\n{script}\n"})
        (self.root / "build/tools" / name).chmod(0o755)

    def debts(self):
        return json.loads((self.root / DEBTS).read_text())


def format_of(files):
    """Formats the planted files, so that their format is not reported."""
    def formatted(text):
        command = ["clang-format", f"--style=file:{ROOT / '.clang-format'}"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return {path: formatted(text) if path.endswith((".cpp", ".hpp")) else text for path, text in files.items()}


class Check(unittest.TestCase):
    # clang-tidy has a test of its own: a revision with the same files has nothing for it to look at.
    OPTIONS = ("--base", "HEAD")

    def test_good_tree(self):
        with Planted() as tree:
            status, said = tree.check(*self.OPTIONS)
            self.assertEqual(status, 0, said)
            self.assertIn("follow the house rules", said)

    def test_each_rule_alone_reports_what_breaks_it(self):
        for rule, plants in PLANTED.items():
            for files in plants:
                planted = files if rule == "formatted" else format_of(files)
                with self.subTest(rule=rule, files=list(files)), Planted(planted) as tree:
                    status, said = tree.check(*self.OPTIONS)
                    self.assertEqual(status, 1, said)
                    self.assertEqual(set(re.findall(r" \[(\w+)\]$", said, re.M)), {rule}, said)
                    self.assertTrue(any(f"{path}:" in said for path in [*files, *ELSEWHERE]), said)

    def test_what_only_looks_like_a_violation_passes(self):
        for files in ALLOWED:
            with self.subTest(files=list(files)), Planted(format_of(files)) as tree:
                status, said = tree.check(*self.OPTIONS)
                self.assertEqual(status, 0, said)

    def test_every_rule_is_planted(self):
        with Planted() as tree:
            listed = set(re.findall(r"^(\w+): ", tree.check("--list")[1], re.M))
        self.assertEqual(listed - {"clang_tidy"}, set(PLANTED))


class Skips(unittest.TestCase):
    def test_a_check_without_the_built_command_is_skipped(self):
        with Planted(built=False) as tree:
            status, said = tree.check("--base", "HEAD")
        self.assertEqual(status, 2, said)
        self.assertRegex(said, r"(?m)^SKIPPED: operator_table: there is no build/release/bin/troupe")
        self.assertNotIn("follow the house rules", said)

    def test_clang_tidy_without_a_build_is_skipped(self):
        with Planted({"src/base/a.cpp": "int i;\n"}) as tree:
            status, said = tree.check()
        self.assertEqual(status, 2, said)
        self.assertRegex(said, r"(?m)^SKIPPED: clang_tidy: 1 files changed, and there is no build/release")

    def test_clang_tidy_without_a_revision_is_skipped(self):
        with Planted() as tree:
            status, said = tree.check("--base", "v0")
        self.assertEqual(status, 2, said)
        self.assertRegex(said, r"(?m)^SKIPPED: clang_tidy: there is no revision v0")

    def test_a_problem_outweighs_what_was_skipped(self):
        with Planted({"a.md": "a " * 70 + "\n"}, built=False) as tree:
            status, said = tree.check("--base", "HEAD")
        self.assertEqual(status, 1, said)
        self.assertIn("SKIPPED: ", said)


class ClangTidy(unittest.TestCase):
    """A changed file, and a program in place of clang-tidy."""

    def check_with(self, script, configures="true"):
        with Planted({"src/base/a.cpp": "int i;\n", "tests/a.cpp": "int i;\n"}) as tree:
            tree.write({"build/release/compile_commands.json": "[]"})
            tree.add_tool("cmake", configures)
            tree.add_tool("clang-tidy", script)
            return tree.check()

    def test_what_it_finds_is_a_problem(self):
        status, said = self.check_with('for file; do :; done; echo "$PWD/$file:1:5: error: no good [a-b]"; exit 1')
        self.assertEqual(status, 1, said)
        self.assertEqual(re.findall(r".* \[clang_tidy\]", said), ["src/base/a.cpp:1: no good [a-b] [clang_tidy]"])

    def test_nothing_found_passes(self):
        status, said = self.check_with("exit 0")
        self.assertEqual(status, 0, said)
        self.assertIn("clang-tidy on 1 changed files", said)

    def test_a_crash_is_a_problem(self):
        status, said = self.check_with("echo crashed >&2; exit 1")
        self.assertEqual(status, 1, said)
        self.assertIn("clang-tidy failed", said)

    def test_a_build_that_cannot_be_configured_skips_it(self):
        status, said = self.check_with("exit 0", configures="echo no compiler >&2; exit 1")
        self.assertEqual(status, 2, said)
        self.assertIn("SKIPPED: clang_tidy: build/files cannot be configured: no compiler", said)


class Debts(unittest.TestCase):
    """A file with two long lines, and debts."""

    def with_debt(self, number):
        debts = {**NO_DEBTS, "line_length": {"a.md": number}}
        return Planted({"a.md": ("a " * 70 + "\n") * 2, DEBTS: json.dumps(debts)})

    def test_the_debt_itself_passes(self):
        with self.with_debt(2) as tree:
            self.assertEqual(tree.check("--base", "HEAD")[0], 0)

    def test_more_is_a_problem_that_an_update_leaves(self):
        with self.with_debt(1) as tree:
            for options in [(), ("--update",), ()]:
                status, said = tree.check("--base", "HEAD", *options)
                self.assertEqual(status, 1, said)
                self.assertIn("a.md: 2 violations of line_length, the debt is 1: mend 1 of\n    a.md:1: 140 ", said)
            self.assertEqual(tree.debts()["line_length"], {"a.md": 1})

    def test_the_lines_that_changed_are_named(self):
        with self.with_debt(2) as tree:
            tree.write({"a.md": "a " * 70 + "\n" + "b " * 70 + "\n" + "a " * 70 + "\n"})
            said = tree.check("--base", "HEAD")[1]
        self.assertEqual(re.findall(r"^    (a.md:\d+)", said, re.M), ["a.md:2"], said)

    def test_fewer_is_a_problem_until_an_update_lowers_the_debt(self):
        with self.with_debt(3) as tree:
            status, said = tree.check("--base", "HEAD")
            self.assertEqual(status, 1, said)
            self.assertIn("scripts/check --update lowers it", said)
            self.assertEqual(tree.check("--base", "HEAD", "--update")[0], 0)
            self.assertEqual(tree.debts()["line_length"], {"a.md": 2})
            tree.write({"a.md": "a\n"})
            self.assertEqual(tree.check("--base", "HEAD", "--update")[0], 0)
            self.assertEqual(tree.debts()["line_length"], {})

    def test_a_sum_that_grew_is_a_problem(self):
        with self.with_debt(2) as tree:
            status, said = tree.check("--base", "HEAD~1")
            self.assertEqual(status, 1, said)
            self.assertIn("the debts of line_length grew from 0 to 2", said)

    def test_a_debt_may_move_with_its_file(self):
        with self.with_debt(2) as tree:
            tree.git("mv", "a.md", "b.md")
            tree.write({DEBTS: json.dumps({**NO_DEBTS, "line_length": {"b.md": 2}})})
            tree.commit()
            self.assertEqual(tree.check("--base", "HEAD~1")[0], 0)

    def test_a_new_rule_takes_its_debts_from_the_tree(self):
        with self.with_debt(2) as tree:
            tree.write({DEBTS: "{}"})
            self.assertEqual(tree.check("--base", "HEAD~1", "--update")[0], 1)  # the sum grew from none
            self.assertEqual(tree.debts()["line_length"], {"a.md": 2})


if __name__ == "__main__":
    if not shutil.which("clang-format"):
        print("clang-format is not installed")
        sys.exit(77)
    unittest.main()
