"""Debts: violations that were there before their rule. scripts/check_debts.json has their number by rule and path.

A debt can only shrink. More violations than listed are a problem. Fewer are one too, until `scripts/check --update`
has lowered the number, so that they do not come back. A file that is moved takes its number along by hand: the sum of
a rule is what must not grow.
"""
import collections
import json
import re

FILE = "scripts/check_debts.json"
SHOWN = 10  # violations that a message has


def read(tree):
    return json.loads(tree.text(FILE)) if FILE in tree.paths else {}


def changed_lines(tree, base, path):
    """Returns the numbers of the lines that differ from the revision `base`."""
    hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", tree.git("diff", "-U0", base, "--", path) or "", re.M)
    return {line for first, count in hunks for line in range(int(first), int(first) + int(count or 1))}


def compare(rule, violations, debts, changed):
    """Yields what is wrong with the violations of one rule, given the debts by path.

    `changed` returns the changed lines of a path: a violation that is new is probably there.
    """
    found = collections.defaultdict(list)
    for violation in violations:
        found[violation.path].append(violation)
    for path in sorted({*found, *debts}):
        here, allowed = found.get(path, []), debts.get(path, 0)
        if len(here) > allowed and allowed == 0:
            yield from map(str, here)
        elif len(here) > allowed:
            lines = changed(path)
            new = [violation for violation in here if violation.line in lines] or here
            shown = "".join(f"\n    {violation}" for violation in new[:SHOWN])
            more = len(here) - allowed
            yield f"{path}: {len(here)} violations of {rule}, the debt is {allowed}: mend {more} of{shown}"
        elif len(here) < allowed:
            yield f"{path}: {len(here)} violations of {rule}, the debt is {allowed}: scripts/check --update lowers it"


def lower(found, debts):
    """Returns the debts after an update: no number grows. A rule that has no debts yet takes what is found."""
    lowered = {}
    for rule, violations in found.items():
        count = collections.Counter(violation.path for violation in violations)
        allowed = debts.get(rule, count)
        lowered[rule] = {path: min(number, allowed[path]) for path, number in sorted(count.items()) if path in allowed}
    return lowered


def write(tree, debts):
    (tree.root / FILE).write_text(json.dumps(debts, indent=1, sort_keys=True) + "\n")


def grown(tree, base, debts):
    """Yields the rules whose sum is larger than at the revision `base`, where they had one."""
    before = tree.git("show", f"{base}:{FILE}")
    for rule, paths in json.loads(before).items() if before else ():
        allowed, now = sum(paths.values()), sum(debts.get(rule, {}).values())
        if now > allowed:
            yield f"{FILE}: the debts of {rule} grew from {allowed} to {now} since {base}"
