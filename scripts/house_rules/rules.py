"""THE table of rules, and the command: scripts/check."""
import argparse
import functools
import sys

from . import debts, includes, sizes, tools, words
from .tree import Skipped, Tree

# Rules that the tree keeps.
RULES = [tools.formatted, sizes.file_length, sizes.function_length, includes.layering, includes.doors,
         includes.matchers, includes.sub_rooms, includes.first_header, includes.unknown_rooms, includes.namespaces,
         words.sorted_tables, words.operator_literals, tools.mutations, tools.figure_tables, tools.operator_names]
# Rules that are younger than what breaks them (debts.py).
RULES_WITH_DEBTS = [sizes.line_length, sizes.methods, words.plain_words]

USAGE = """Checks the house rules: format, layering, one door a library, sizes, words, and clang-tidy on what changed.

Exit status 0 if all rules hold, 1 if one does not, 2 if the others hold but a check could not run (SKIPPED).
Violations that are older than their rule are counted in scripts/check_debts.json, whose numbers can only shrink.
"""


class Report:
    def __init__(self):
        self.problems, self.skipped = [], []

    def take(self, rule, name, *arguments):
        """Runs one rule; returns its violations."""
        try:
            return list(rule(*arguments))
        except Skipped as why:
            self.skipped.append(f"SKIPPED: {name}: {why}")
            return []

    def status(self):
        return 1 if self.problems else 2 if self.skipped else 0


def check(tree, base, update):
    report = Report()

    def run(rule, *arguments):
        found = report.take(rule, rule.__name__, tree, *arguments)
        report.problems += [f"{violation} [{rule.__name__}]" for violation in found]

    for rule in RULES:
        run(rule)
    run(tools.clang_tidy, base)
    run(tools.operator_table, update)
    found = {rule.__name__: report.take(rule, rule.__name__, tree) for rule in RULES_WITH_DEBTS}
    allowed = debts.read(tree)
    if update:
        allowed = debts.lower(found, allowed)
        debts.write(tree, allowed)
    for rule, violations in found.items():
        changed = functools.partial(debts.changed_lines, tree, base)
        wrong = debts.compare(rule, violations, allowed.get(rule, {}), changed)
        report.problems += [f"{problem} [{rule}]" for problem in wrong]
    report.problems += debts.grown(tree, base, allowed)
    return report


def list_rules():
    for rule in [*RULES, tools.clang_tidy, tools.operator_table, *RULES_WITH_DEBTS]:
        print(f"{rule.__name__}: {' '.join(rule.__doc__.split())}")


def main(root):
    parser = argparse.ArgumentParser(description=USAGE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="HEAD~1", metavar="REV",
                        help="clang-tidy looks at what changed since this revision (default HEAD~1)")
    parser.add_argument("--update", action="store_true", help="write the operator table of docs; lower the debts")
    parser.add_argument("--list", action="store_true", help="print the rules with their reasons, and end")
    arguments = parser.parse_args()
    if arguments.list:
        list_rules()
        return
    tree = Tree(root)
    report = check(tree, arguments.base, arguments.update)
    print("\n".join(report.problems + report.skipped) or f"{len(tree.paths)} files follow the house rules")
    sys.exit(report.status())
