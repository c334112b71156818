"""How long files, functions, classes and lines may be."""
import re

from . import cpp
from .tree import CPP, Violation

MAX_FILE, MAX_FUNCTION, MAX_METHODS, MAX_LINE = 400, 50, 25, 120
MAX_KERNEL = 160


def file_length(tree):
    """A file of more than 400 lines has more than one subject."""
    for path in tree.select(*CPP, ".py") + tree.shaders:
        if len(tree.lines(path)) > MAX_FILE:
            yield Violation(path, 0, f"{len(tree.lines(path))} lines, at most {MAX_FILE} are allowed")


def function_length(tree):
    """A function of more than 50 lines does more than one thing. From the first line of its head to its closing brace.

    Functions inside classes and unnamed namespaces count like all others; a lambda counts as part of the function
    around it. A GPU kernel keeps its tile in registers, which drivers spill when arrays pass through functions: one
    more call in an epilogue took the float32 product from 30 to 10 TFLOP/s (H200). So a kernel's function may have
    160 lines.
    """
    for path in tree.select(*CPP) + tree.shaders:
        longest = MAX_FUNCTION if path.endswith(CPP) else MAX_KERNEL
        for function in cpp.read(tree.text(path)).functions:
            length = function.last - function.first + 1
            if length > longest:
                yield Violation(path, function.first, f"a function of {length} lines, at most {longest} are allowed")


def methods(tree):
    """A class with more than 25 methods is several classes. Each method above 25 is one violation.

    A method is a declaration of a member function in the class's body, private and static ones and each overload
    included. Not counted: constructors, the destructor, operators, friends, and what is `= default` or `= delete`.
    Nested classes count apart.
    """
    for path in tree.select(*CPP):
        for found in cpp.read(tree.text(path)).classes:
            for name in found.methods[MAX_METHODS:]:
                text = f"class {found.name} has {len(found.methods)} methods, at most {MAX_METHODS} are allowed: {name}"
                yield Violation(path, found.line, text)


def line_length(tree):
    """A line of more than 120 characters does not fit beside another file, nor into a review. Comments count as code
    does.

    Two kinds of lines in Markdown cannot be broken and are exempt: rows of tables (the line begins with `|`), and
    lines without a space after their indentation and list marker, such as a link alone on its line.
    """
    paths = tree.select(*CPP, ".comp", ".glsl", ".h", ".py", ".md", ".sh") + tree.scripts + tree.cmake
    for path in paths:
        for number, line in enumerate(tree.lines(path), 1):
            if len(line) > MAX_LINE and not (path.endswith(".md") and cannot_be_broken(line)):
                yield Violation(path, number, f"{len(line)} characters, at most {MAX_LINE} are allowed")


def cannot_be_broken(line):
    return line.lstrip().startswith("|") or " " not in re.sub(r"^\s*(?:[-*+>]\s+|\d+[.)]\s+)?", "", line).rstrip()
