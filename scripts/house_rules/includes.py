"""Which folder may include which, where third-party headers are allowed, and which namespace a folder has."""
import collections
import pathlib
import re

from .tree import CPP, Violation

# Which folders a folder may include, besides itself. Inside src the order is that of the data. src/launch also includes
# shaders/parameters and src/ops shaders/scalar_codes.h, which no other folder does. The laboratory comes last: programs
# that run models are linked without it, so above src only the command and the benchmarks include it.
SHADER_DOORS = {"parameters": "src/launch", "scalar_codes.h": "src/ops"}
LABORATORY = ["pages", "schedules", "measure", "sim", "experiments"]
SRC_ORDER = ["base", "tensor", "graph", "ops", "layers", "loader", "rewrite", "cost", "launch", "plan", "device", "cpu",
             "trace", "run", "wire", "recording", "remote", "strategy", "monitoring", *LABORATORY]
# By folder, the folders above it in the order that it does without all the same.
NO_RUNS = ["cpu", "run", "wire", "recording", "remote", "strategy", "monitoring", "pages"]
OVER_PLAN = ["device", "trace", *NO_RUNS]
SRC_SKIPS = {"loader": ["layers"], "rewrite": ["layers"], "cost": ["loader", "rewrite"],
             "launch": ["loader", "rewrite", "cost", "layers"], "plan": ["loader", "rewrite", "layers"],
             "device": ["loader", "rewrite"], "cpu": ["loader", "rewrite"], "run": ["layers", "cpu", "loader"],
             "schedules": ["loader", "rewrite", "layers", *OVER_PLAN], "measure": ["loader", "rewrite", *NO_RUNS]}
ABOVE_SRC = {"vulkan": ["src"], "actors": ["src", "vulkan"], "cli": ["src", "vulkan", "actors", "laboratory"],
             "examples": [], "python": [], "compat": [], "bench": ["src", "vulkan", "actors", "laboratory", "cli"]}
# The public headers (include/troupe, "troupe/…"): all may include them; they, nothing but each other and the standard
# library.
PUBLIC = "include"
STANDARD = r"[a-z_0-9]+$"

# The folders inside a room, in their order: a file may include its own folder and those before it. What lies in the
# room itself (`.`) has a place in the order, or none: then it goes with all of them, as plan.hpp below and plan.cpp
# above the others do.
SUB_ROOMS = {"src/ops": [".", "onnx", "contrib", "ml", "composed"],
             "src/plan": ["estimate", "place", "place/policies", "split", "cut", "bind", "show"],
             "actors": ["network"], "shaders": ["parameters", "."]}

# One library, one door: the folder whose files may include a third-party header. OpenSSL has two: actors for TLS, and
# src/base for the names and keys that must hold against other members (content_hasher), which graph, ops and remote
# use far below actors.
DOORS = {r"caf/": ["actors/"], r"openssl/": ["actors/", "src/base/content_hasher."], r"dnnl|oneapi/dnnl": ["src/cpu/"],
         r"onnx/|google/protobuf": ["src/loader/"], r"xxhash": ["src/base/"], r"zip\.h": ["src/loader/"],
         r"vulkan/vulkan\.h": ["vulkan/"], r"spirv/": ["vulkan/"], r"CLI/": ["cli/"], r"omp\.h": ["src/base/"],
         r"leptonica/|re2/": ["src/ops/"], r"expat\.h": ["src/schedules/"],
         r"boost/": ["src/experiments/"], r"pybind11/|Python\.h": ["python/"]}


# The namespaces that a file opens: after `troupe` the first name, or nothing.
NAMESPACE = re.compile(r"^namespace troupe\b(?:::(\w+))?", re.M)


def includes(tree):
    """Yields (path, line, the character that opens the header's name, header) of every #include."""
    for path in tree.select(*CPP) + tree.shaders:
        for number, line in enumerate(tree.lines(path), 1):
            found = re.match(r'\s*#\s*include ([<"])([^>"]+)', line)
            if found:
                yield path, number, found[1], found[2]


def folder(path):
    return str(pathlib.PurePosixPath(path).parent)


def allowed_in_src(own, other):
    return SRC_ORDER.index(other) <= SRC_ORDER.index(own) and other not in SRC_SKIPS.get(own, [])


def room_in_src(name):
    return "laboratory" if name in LABORATORY else "src" if name in SRC_ORDER else None


def layering_problem(path, header):
    """Returns what is wrong with one #include "header" of ours, or None."""
    top, parts = path.split("/")[0], header.split("/")
    refused = f"{folder(path)} may not include {header}"
    if top == "shaders":
        fits = len(parts) == 1 or (parts[0] == "parameters" and folder(path) == top)
        return None if fits else refused
    if parts[0] == "shaders":
        return None if top == "tests" or SHADER_DOORS.get(parts[1]) == folder(path) else refused
    if top == PUBLIC:
        return None if parts[0] == "troupe" else f"a public header may not include {header}"
    target = parts[0] if parts[0] in ABOVE_SRC else room_in_src(parts[0])
    if target is None or top == "tests":
        return None
    if top == "src":
        own = path.split("/")[1]
        fits = target not in ABOVE_SRC and (own not in SRC_ORDER or allowed_in_src(own, parts[0]))
    else:
        fits = target == top or target in ABOVE_SRC[top]
    return None if fits else refused


def layering(tree):
    """A folder includes only what is before it in the order of the data, so that each can be read and tested without
    those after it."""
    for path, number, quote, header in includes(tree):
        problem = layering_problem(path, header) if quote == '"' else None
        if path.startswith(PUBLIC + "/") and quote == "<" and not re.match(STANDARD, header):
            problem = f"a public header may not include <{header}>"
        if problem:
            yield Violation(path, number, problem)


def doors(tree):
    """Only one folder knows a third-party library, so that another one can take its place."""
    for path, number, _, header in includes(tree):
        for pattern, allowed in DOORS.items():
            if re.match(pattern, header) and not path.startswith((*allowed, "tests/")):
                yield Violation(path, number, f"{header} belongs in {' or '.join(allowed)}")


def matchers(tree):
    """Catch2 2 and 3 mean different things by one matcher's name: tests take those of support/catch.hpp, in Catch."""
    for path in tree.select(*CPP, under="tests/"):
        if path != "tests/support/catch.hpp":
            for number, line in enumerate(tree.lines(path), 1):
                if "Catch::Matchers" in line:
                    yield Violation(path, number, "name the matcher as support/catch.hpp does: Catch::Contains")


def first_header(tree):
    """troupe.hpp names and includes all public headers: it is where a reader starts, and all that a program needs."""
    first, every = f"{PUBLIC}/troupe/troupe.hpp", tree.select(".hpp", under=f"{PUBLIC}/")
    included = {path: set() for path in every}
    for path, _, _, header in includes(tree):
        included.get(path, set()).add(f"{PUBLIC}/{header}")
    reached, found = set(), {first}
    while found:
        reached |= found
        found = {header for path in found for header in included.get(path, ())} - reached
    for path in every:
        name = pathlib.PurePosixPath(path).name
        if path != first and (path not in reached or f"`{name}`" not in tree.text(first)):
            yield Violation(first, 0, f"does not name and include {name}")


def sub_rooms(tree):
    """Includes between the folders of one room go one way, for the reason for which those between rooms do."""
    for path, number, quote, header in includes(tree):
        room, own = sub_room(path)
        target_room, target = sub_room(header_path(path, header))
        if quote != '"' or room != target_room or own == target:
            continue
        order = SUB_ROOMS[room]
        if own in order and target in order and order.index(target) > order.index(own):
            yield Violation(path, number, f"{place(room, own)} may not include {place(room, target)}: {header}")


def unknown_rooms(tree):
    """A new folder inside a room is given its place in the order when it is made; later its includes would decide."""
    first = {folder(path): path for path in reversed(tree.select(*CPP) + tree.shaders)}
    rooms = [*ABOVE_SRC, *(f"src/{name}" for name in SRC_ORDER), "shaders", PUBLIC + "/troupe"]
    for here, path in sorted(first.items()):
        room = next((room for room in rooms if here.startswith(room + "/")), None)
        separate = here.startswith(("examples/", "python/", "compat/"))  # programs, a module, a library of their own
        if room and not separate and here[len(room) + 1:] not in SUB_ROOMS.get(room, []):
            yield Violation(path, 0, f"{here} has no place in the order of {room}'s folders (SUB_ROOMS in includes.py)")


def namespaces(tree):
    """A name says where it is found: `sim::links` in src/sim. A folder whose files are mostly in a namespace inside
    `troupe` has that namespace's name, and all its files open it. Beside it, files that are no headers define in
    `troupe` what public headers declare."""
    rooms = collections.defaultdict(dict)
    for path in tree.select(*CPP, under="src/"):
        rooms[path.split("/")[1]][path] = NAMESPACE.findall(tree.text(path))
    for room, files in rooms.items():
        counts = collections.Counter(name for opened in files.values() for name in set(opened))
        own = max(counts, key=counts.get, default="")
        for path, opened in files.items() if own else ():
            if own in opened and own != room:
                yield Violation(path, 0, f"namespace troupe::{own} is not the name of src/{room}")
            elif own not in opened:
                yield Violation(path, 0, f"does not open namespace troupe::{own}, as other files of src/{room} do")
            elif "" in opened and path.endswith(".hpp"):
                yield Violation(path, 0, f"a header of src/{room} declares in troupe::{own} alone")


def header_path(path, header):
    """Returns the path in the tree that an #include of ours means, from the root."""
    top = path.split("/")[0]
    if top == "shaders":
        return f"shaders/parameters/{header}" if folder(path) == "shaders/parameters" else f"shaders/{header}"
    return f"src/{header}" if header.split("/")[0] in SRC_ORDER else header


def sub_room(path):
    """Returns the room with sub-folders that a path is in, and the sub-folder; (None, None) elsewhere."""
    for room in SUB_ROOMS:
        if path.startswith(room + "/"):
            inside = folder(path)[len(room) + 1:]
            return room, inside or "."
    return None, None


def place(room, inside):
    return room if inside == "." else f"{room}/{inside}"
