"""What the rules say about words: plain English, and names of operators that are written once."""
import re

from . import cpp
from .tree import CPP, SHADERS, Violation

# What to write instead of each word.
PLAIN = {"whoever": "the noun", "nobody": "no + the noun", "so many": "the number's name", "none of": "no + the noun",
         "stands for": "means", "lies": "is", "behind": "after, or the relation that is meant"}
GAP = r"[\s/#]+"  # between two words, also where a comment goes on in the next line
WORDS = re.compile(r"\b(" + "|".join(word.replace(" ", GAP) for word in PLAIN) + r")\b", re.I)
# The folders of what is shipped.
PRODUCT = ("actors/", "cli/", "compat/", "include/", "python/", "shaders/", "src/", "vulkan/")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')

# How the tables in src/ops name an operator: op_row("Abs", …), .name = "Pow", and the rows of scalar_function.hpp.
OPERATOR_ROWS = re.compile(r'\b\w*row(?:<[^();]*>)?\(\s*"([A-Z]\w*)"|\.name = "([A-Z]\w*)"|\{[\w:]+, "([A-Z]\w*)", \d')


def operators(tree):
    """Returns the names of all operators, as the tables in src/ops have them."""
    rows = (found for path in tree.select(*CPP, under="src/ops/") for found in OPERATOR_ROWS.finditer(tree.text(path)))
    return {row[1] or row[2] or row[3] for row in rows}


def operator_literals(tree):
    """The planner asks an operator's row what it must know. Where it compares names, a new operator of that kind is
    forgotten."""
    known = operators(tree)
    for path in tree.select(*CPP, under="src/plan/"):
        for number, line in enumerate(tree.lines(path), 1):
            for name in LITERAL.findall(line.split("//")[0]):
                if name in known:
                    yield Violation(path, number, f'src/plan names an operator: "{name}"')


def top_comment(path, text):
    """Returns the comment, or Python's docstring, that a file begins with."""
    text = re.sub(r"\A#!.*\n", "", text)
    if path.endswith(".py") or text.startswith('"""'):
        found = re.match(r'(?:#.*\n|\s)*"""(.*?)"""', text, re.S)
        return found[0] if found else ""
    mark = "//" if path.endswith((*CPP, *SHADERS)) else "#"
    return re.match(rf"(?:{mark}.*\n)*", text)[0]


def plain_words(tree):
    """Subject first, one idea a sentence, the noun named: a list of words that take a noun's place or are no native
    writer's choice.

    Looked at: README files, the comments and literals of the product (literals are what --help and errors print), and
    the comments that other files begin with.
    """
    sources = tree.select(*CPP, *SHADERS, ".py", ".sh") + tree.scripts + tree.cmake
    for path in sources + tree.select("README.md"):
        text = tree.text(path)
        if path.startswith(PRODUCT) and path.endswith((*CPP, *SHADERS)):
            text = cpp.prose(text)
        elif not path.startswith(PRODUCT) and not path.endswith("README.md"):
            top = top_comment(path, text)
            text = "\n" * text[:text.index(top)].count("\n") + top
        yield from words_in(path, text)


def words_in(path, text):
    for found in WORDS.finditer(text):
        word = re.sub(GAP, " ", found[1].lower())
        yield Violation(path, text.count("\n", 0, found.start()) + 1, f"'{word}': write {PLAIN[word]}")


def sorted_tables(tree):
    """The lines after a comment `scripts/check: sorted`, as far as they are indented alike, are in order: two
    branches merge, and each line is there once."""
    for path in tree.select(*CPP, ".py") + tree.shaders:
        lines = tree.lines(path)
        for start in (number for number, line in enumerate(lines, 1) if line.strip() == "// scripts/check: sorted"):
            yield from disorder(path, lines, start)


def disorder(path, lines, start):
    indent = re.match(" *", lines[start])[0]
    for number in range(start + 1, len(lines)):
        line, following = lines[number - 1], lines[number]
        if not re.match(indent + r"[\w&]", following):
            return
        if line >= following:
            problem = "twice" if line == following else "not in order"
            yield Violation(path, number + 1, f"{problem}: {following.strip()}")
