"""The house rules that scripts/check enforces.

A rule is a function that takes the tree (tree.py) and yields violations. `rules.py` lists all rules. To add one:
write the function, with its reason in the docstring, add a row to the list, and plant a line that breaks the rule in
tests/scripts/check_test.py.
"""
