"""ONNX's test cases through onnxruntime-node, its native binding unchanged, with troupe in the place of its library.

usage: node_cases.py BUILD_FOLDER [--every N] [--devices NAMES] [--rtol R] [--atol A] [--version V] [--own] FOLDER…

Every case of the folders, or every Nth, is run by `troupe test` and by onnxruntime-node under `troupe exec`. 98 % of
those that JavaScript can say must have the same verdict: passed, or not. The others are printed with the reasons.
--own: with the package's own library, to see what it passes. The package comes from npm, in the version given, into the
build folder; exit status 77 says that npm could not be reached.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

from packages import OTHER_LIBRARY, checked, install

HERE = pathlib.Path(__file__).resolve().parent
SAME = 0.98  # of the cases


def by_troupe(troupe, cases, args):
    """Returns whether each case passes in `troupe test`, and why not."""
    command = [troupe, "test", *cases, "--json", "--devices", args.devices, "--rtol", args.rtol, "--atol", args.atol]
    report = json.loads(subprocess.run([str(c) for c in command], capture_output=True, text=True).stdout)
    return {case["name"]: (case["outcome"] == "passed", case.get("reason", "")) for case in report["cases"]}


def run_node(troupe, packages, cases, args, own):
    """Returns node's report on the cases, as far as it came."""
    command = [] if own else [troupe, "exec", "--devices", args.devices, "--"]
    command += ["node", HERE / "cases.mjs", packages, "--rtol", args.rtol, "--atol", args.atol]
    done = subprocess.run([str(c) for c in command], input="\n".join(cases), capture_output=True, text=True,
                          env=None if own else checked())
    if done.returncode == OTHER_LIBRARY:
        sys.exit(done.stderr)
    return {row["name"]: (row["verdict"], row["why"]) for row in map(json.loads, done.stdout.splitlines())}


def by_node(troupe, packages, cases, args):
    """Returns the verdict of each case through the package, and why. In some cases the binding ends the process, or
    throws what it lacks, a name for an element type say: those in which it does the same with its own library are
    skipped, others are failures."""
    found, rest = {}, list(cases)
    while rest:
        found.update(run_node(troupe, packages, rest, args, args.own))
        rest = [case for case in rest if case not in found]
        if rest:
            ends = not run_node(troupe, packages, rest[:1], args, own=True)
            found[rest[0]] = ("skipped" if ends else "failed", "the binding ends the process" if ends else "a crash")
            rest = rest[1:]
    thrown = [case for case, (verdict, _) in found.items() if verdict == "thrown"]
    own = run_node(troupe, packages, thrown, args, own=True) if thrown and not args.own else {}
    for case in thrown:
        found[case] = ("skipped" if own.get(case) == found[case] else "failed", found[case][1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--rtol", default="1e-3")
    parser.add_argument("--atol", default="1e-7")
    parser.add_argument("--version", default="1.30.0")
    parser.add_argument("--own", action="store_true")
    args = parser.parse_args()
    packages = install(args.build, f"onnxruntime-node@{args.version}")
    found = sorted(str(file.parent) for folder in args.folders for file in folder.rglob("model.onnx"))
    cases = found[:: args.every]
    if not cases:
        print(f"SKIPPED: there are no cases in {', '.join(map(str, args.folders))}")
        sys.exit(77)
    troupe = args.build / "bin/troupe"
    node = by_node(troupe, packages, cases, args)
    own = by_troupe(troupe, cases, args)
    said = [case for case in cases if node[case][0] != "skipped"]
    other = [case for case in said if (node[case][0] == "passed") != own[case][0]]
    passed = sum(node[case][0] == "passed" for case in said)
    for case in other:
        verdict = "passed" if own[case][0] else "did not"
        print(f"{case}: node {node[case][0]}: {node[case][1]}; troupe test {verdict}: {own[case][1]}")
    reasons = collections.Counter(why for verdict, why in node.values() if verdict == "skipped")
    for why, count in reasons.most_common():
        print(f"{count} skipped: {why}")
    share = 1 - len(other) / max(1, len(said))
    print(f"{len(cases)} cases, {len(said)} that JavaScript can say, {passed} passed, "
          f"{share:.1%} with the verdict of troupe test")
    sys.exit(0 if said and share >= SAME else 1)


if __name__ == "__main__":
    main()
