"""A reader of C++ and GLSL that knows as much as the rules need: where functions begin and end, and what classes
declare.

It needs no compiler. Comments, the text inside literals, and preprocessor lines are blanked first. What remains is
read character by character. At a brace, the text since the last `;`, `{` or `}` (the head) says what begins: a
namespace, a class, a function or an initialiser.
"""
import dataclasses
import functools
import re

# Comments; raw literals; literals; characters, but not the quotes in 10'000.
BLANKED = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|"""
                     r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
MACRO_LINE = re.compile(r"\s*[A-Z][A-Z0-9_]+\([^()]*\)")  # CAF_ALLOW_UNSAFE_MESSAGE_TYPE(type), which no `;` ends
TEMPLATE_HEAD = re.compile(r"^\s*template\s*<")
NOT_A_METHOD = re.compile(r"\b(using|typedef|friend|static_assert|operator)\b|=\s*(default|delete)\b")


@dataclasses.dataclass
class Function:
    head: str
    first: int  # lines, from 1
    last: int


@dataclasses.dataclass
class Class:
    name: str
    line: int
    methods: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Scope:
    kind: str  # namespace, class, function or braces
    head: str = ""
    line: int = 0
    parens: int = 0  # that were open outside
    type: Class = None


def blank(text):
    """Replaces comments, the insides of literals and preprocessor lines by spaces; lines stay where they are."""
    def spaces(found):
        whole = found[0]
        inside = re.sub(r"[^\n]", " ", whole)
        return f'"{inside[1:-1]}"' if whole[0] in "\"R" and len(whole) > 1 else inside
    return DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), BLANKED.sub(spaces, text))


def prose(text):
    """Returns the comments and literals of a text. A semicolon takes the place of what is between; lines stay."""
    kept, at = [], 0
    for found in BLANKED.finditer(text):
        code = text[at:found.start()]
        kept += [";" if code.strip() else " ", "\n" * code.count("\n"), found[0]]
        at = found.end()
    return "".join(kept)


def without_template(head):
    """Drops `template <…>` from the front of a head."""
    while TEMPLATE_HEAD.match(head):
        depth = 0
        for at, character in enumerate(head):
            depth += (character == "<") - (character == ">" and head[at - 1] != "-")
            if character == ">" and depth == 0:
                head = head[at + 1:]
                break
        else:
            return ""
    return head.strip()


def outside_angles(head):
    """Blanks what stands between angle brackets, so that `std::function<void(int)> f` shows no parameters."""
    head = head.replace("->", "  ")
    while True:
        shorter = re.sub(r"(?<=[\w:])\s*<[^<>;]*>", lambda found: " " * len(found[0]), head)
        if shorter == head:
            return head
        head = shorter


def is_type(head):
    plain = re.sub(r"\b(alignas|__attribute__)\s*\([^()]*\)", "", outside_angles(head))
    return re.search(r"\b(class|struct|union)\b", plain) and "(" not in plain and "=" not in plain


def type_name(head):
    found = re.search(r"\b(?:class|struct|union)\b(?:\s*\[\[.*?\]\])?\s*(?:[A-Z_]+\s+)?(\w+)?", head)
    return found[1] or "" if found else ""


def begins_body(head):
    """Returns whether a brace after this head begins a function's body."""
    plain = outside_angles(re.sub(r"operator\s*(?:\(\s*\)|[^\s(]+)", "operator_", head))
    if "(" not in plain or re.match(r"(layout\s*\(|enum\b)", plain):
        return False
    parts = re.sub(r"\([^()]*\)", "()", re.sub(r"\((?:[^()]|\([^()]*\))*\)", "()", plain))
    if re.search(r"(?<![=!<>])=(?!=)", parts):  # a variable with an initialiser
        return False
    constructor = re.search(r"\)\s*(?:noexcept\s*(?:\(\))?\s*)?:(?!:)", parts)
    return not (constructor and re.search(r"[\w>]\s*$", parts[constructor.end():] or "x"))


def method_name(head, name):
    """Returns the name of the member function that the head declares, or None: see the rule `methods` in sizes.py."""
    head = re.sub(r"\b(alignas|explicit|noexcept|decltype)\s*\([^()]*\)|\[\[.*?\]\]", "", without_template(head))
    if NOT_A_METHOD.search(head):
        return None
    found = re.match(r"([^()=]*?)(~?\w+)\s*\((?!\s*\*)", outside_angles(head))
    if not found or "=" in found[1] or found[2] in (name, "~" + name) or "~" in found[2]:
        return None
    return found[2] if found[1].strip() else None


class Reader:
    """Reads one file; afterwards `functions` and `classes` are filled."""

    def __init__(self, text):
        self.functions, self.classes = [], []
        self.scopes = [Scope("namespace")]
        self.head, self.head_line, self.parens, self.line = "", 0, 0, 1
        for character in blank(text):
            self.read(character)
        self.balanced = len(self.scopes) == 1 and self.parens == 0

    def read(self, character):
        if character == "\n":
            self.line += 1
            if MACRO_LINE.fullmatch(self.head):
                self.head = ""
        if character == "{":
            self.open()
        elif character == "}":
            self.close()
        elif self.scopes[-1].kind in ("function", "braces"):
            self.parens += (character == "(") - (character == ")")
        elif character == ";" and self.parens == 0:
            self.declare()
            self.head = ""
        else:
            self.parens += (character == "(") - (character == ")")
            if not self.head.strip() and not character.isspace():
                self.head, self.head_line = "", self.line
            self.head += character
            if character == ":" and re.fullmatch(r"\s*(public|private|protected)\s*:", self.head):
                self.head = ""

    def declare(self):
        here = self.scopes[-1]
        if here.kind == "class":
            name = method_name(self.head, here.type.name)
            if name:
                here.type.methods.append(name)

    def open(self):
        head = without_template(self.head)
        scope = Scope("braces", self.head, self.head_line, self.parens)
        if self.scopes[-1].kind not in ("function", "braces") and self.parens == 0:
            if re.match(r"(inline\s+)?namespace\b|extern\s*\"", head):
                scope.kind = "namespace"
            elif is_type(head) and not head.startswith("enum"):
                scope.kind, scope.type = "class", Class(type_name(head), self.head_line)
                self.classes.append(scope.type)
            elif begins_body(head):
                self.declare()
                scope.kind = "function"
        self.scopes.append(scope)
        if scope.kind in ("namespace", "class"):
            self.head = ""
        self.parens = 0

    def close(self):
        if len(self.scopes) == 1:  # branches of an #if that close the same brace
            return
        scope = self.scopes.pop()
        self.parens = scope.parens
        if scope.kind == "function":
            self.functions.append(Function(" ".join(scope.head.split()), scope.line, self.line))
        # An initialiser or a class may be followed by more of its declaration.
        self.head = scope.head + "{}" if scope.kind == "braces" else ""
        self.head_line = scope.line if scope.kind == "braces" else self.line


@functools.cache
def read(text):
    return Reader(text)
