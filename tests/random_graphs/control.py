"""If, Loop and Scan, nested, with values captured from outside; the trip counts and conditions known or not."""
import numpy as np
from onnx import helper

DEPTH = 2  # of bodies within bodies


def depth(g):
    return 0 if g.parent is None else 1 + depth(g.parent)


def finish(body, outputs, inputs=()):
    """The GraphProto of a body. `outputs`, `inputs`: values."""
    info = lambda v, dims: helper.make_tensor_value_info(v.name, body.onnx(v.type), dims)
    used = {name for node in body.nodes for name in node.input} | {v.name for v in outputs} | nested_names(body.nodes)
    kept = [t for t in body.initializers if t.name in used]
    return helper.make_graph(body.nodes, body.name("body"), [info(v, list(v.dims)) for v in inputs],
                             [info(v, None) for v in outputs], kept)


def nested_names(nodes):
    """The values that bodies of these nodes take from outside."""
    names = set()
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= {n for inner in attribute.g.node for n in inner.input} | nested_names(attribute.g.node)
                names |= {o.name for o in attribute.g.output}
    return names


def grow(body, steps, count):
    """Some steps in a body."""
    for _ in range(count):
        mark = body.mark()
        body.random.choice(steps)(body)
        if body.too_large(mark):
            body.back_to(mark)


def to_dims(body, x, dims):
    """x brought to these dims: its sum, added to a constant of these dims."""
    if x.dims == tuple(dims):
        return body.op("Identity", [x], dims, x.type, x.bound)
    # Not the mean, which ONNX leaves undefined if there is nothing.
    total = body.op("Tanh", [body.op("ReduceSum", [x], (), keepdims=0)], ()) if x.size else body.scalar(0.5)
    return body.op("Add", [total, body.const(np.full(dims, 0.25))], dims)


def flag(g):
    """A condition: an input that the run knows, a computed one, or a constant."""
    kind = g.random.choice(["input", "shape", "constant", "input"])
    if kind == "constant":
        return g.const(g.chance(0.5), "bool")
    if kind == "input":
        return flag_input(g)
    x = g.pick(lambda v: v.rank > 0)
    if not x:
        return g.const(True, "bool")
    size = g.node("Gather", [g.node("Shape", [x])[0], g.const(0, "i64")], axis=0)[0]
    return g.op("Greater", [size, g.scalar(g.random.choice([0, 1, 3]), "i64")], (), "bool")


def flag_input(g):
    taken = g.chance(0.5)
    return g.input("bool", [], lambda d: np.array(taken))


def branch(g, steps):
    if depth(g) >= DEPTH:
        return None
    x = g.pick(lambda v: v.size < 4000)
    if not x:
        return None
    test = flag(g)
    count = g.random.choice([1, 1, 2])
    dims = [x.dims] + [g.pick().dims for _ in range(count - 1)]
    bodies = []
    for _ in range(2):
        body = g.child()
        if body.chance(0.85):
            grow(body, steps, body.random.randint(1, 4))
        outputs = [to_dims(body, body.pick(), d) for d in dims]
        bodies.append(finish(body, outputs))
    names = g.node("If", [test], count, then_branch=bodies[0], else_branch=bodies[1])
    return [g.value(n, "f", d) for n, d in zip(names, dims)][-1]


def branch_of_other_rank(g):
    """Branches whose outputs differ in rank: the one that is taken decides at run time."""
    if g.parent:
        return None
    x = g.pick(lambda v: 0 < v.size < 2000 and v.rank < 4)
    if not x:
        return None
    taken = g.chance(0.5)
    test = g.input("bool", [], lambda d: np.array(taken))
    then, other = g.child(), g.child()
    kept = then.op("Tanh", [x], x.dims)
    total = (other.op("ReduceMax", [x], (), keepdims=0) if g.chance(0.5)
             else other.op("Reshape", [x, other.ints(-1)], (x.size,)))
    name = g.node("If", [test], then_branch=finish(then, [kept]), else_branch=finish(other, [total]))[0]
    return g.value(name, "f", kept.dims if taken else total.dims)


def growing(g):
    """A Loop that appends to its carried value."""
    x = g.pick(lambda v: v.rank in (2, 3) and 0 < v.size < 800)
    if not x or g.parent:
        return None
    trips, count = trip_count(g, g.chance(0.4))
    body = g.child()
    step, keep = body.value(body.name("step"), "i64", (), bound=10), body.value(body.name("keep"), "bool", ())
    carried = body.value(body.name("carried"), "f", x.dims)
    axis = g.random.randrange(x.rank)
    piece = body.op("Mul", [x, body.scalar(0.5)], x.dims)
    longer = body.op("Concat", [carried, piece], x.dims, axis=axis)
    graph = finish(body, [body.op("Identity", [keep], (), "bool"), longer], [step, keep, carried])
    del graph.input[2].type.tensor_type.shape.dim[:]
    graph.input[2].type.tensor_type.ClearField("shape")
    name = g.node("Loop", [trips, g.const(True, "bool"), x], body=graph)[0]
    return g.value(name, "f", [d * (count + 1) if i == axis else d for i, d in enumerate(x.dims)])


def trip_count(g, known):
    count = g.random.choice([1, 2, 3, 5])
    if known:
        return g.const(count, "i64"), count
    if g.chance(0.4):
        x = g.pick(lambda v: v.rank > 0 and 0 < v.dims[0] <= 6)
        if x:
            return g.node("Gather", [g.node("Shape", [x])[0], g.const(0, "i64")], axis=0)[0], x.dims[0]
    return g.input("i64", [], lambda d: np.array(count)), count


def loop(g, steps):
    """A Loop with carried values and scan outputs; its end by count or by condition."""
    if depth(g) >= DEPTH:
        return None
    carried = [g.pick(lambda v: v.size < 1500) for _ in range(g.random.choice([1, 1, 2]))]
    if None in carried:
        return None
    trips, count = trip_count(g, g.chance(0.5))
    body = g.child()
    step = body.value(body.name("step"), "i64", (), bound=10)
    keep = body.value(body.name("keep"), "bool", ())
    inside = [body.value(body.name("carried"), "f", v.dims) for v in carried]
    grow(body, steps, body.random.randint(1, 5))
    outputs = [to_dims(body, squash(body), v.dims) for v in carried]
    scans = [scan_output(body) for _ in range(g.random.choice([0, 1, 1]))]
    limited = g.chance(0.4)
    stop = g.random.randint(1, 4)
    if limited:
        again = body.op("Less", [step, body.scalar(stop - 1, "i64")], (), "bool")
        count = min(count, stop)
    else:
        again = body.op("Identity", [keep], (), "bool")
    graph = finish(body, [again, *outputs, *scans], [step, keep, *inside])
    start = g.const(True, "bool") if g.chance(0.7) else None
    if start is None and not limited and g.opset >= 11:
        start = g.const(True, "bool")
    names = g.node("Loop", [trips, start, *carried], len(carried) + len(scans), body=graph)
    for n, v in zip(names[len(carried):], scans):
        g.value(n, "f", (count,) + v.dims)
    return [g.value(n, "f", v.dims) for n, v in zip(names, carried)][-1]


def squash(body):
    """A carried value must not grow from turn to turn."""
    x = body.pick()
    return body.op("Tanh", [x], x.dims)


def scan_output(body):
    x = body.pick(lambda v: v.rank < 5 and v.size < 1500) or squash(body)
    return body.op("Identity", [x], x.dims)


def scan(g, steps):
    """A Scan over one axis of one or two values, forward or backward."""
    if depth(g) >= DEPTH:
        return None
    x = g.pick(lambda v: v.rank in (2, 3) and 0 < max(v.dims) <= 16 and min(v.dims) > 0 and v.size < 3000)
    if not x:
        return None
    axis = g.random.randrange(x.rank)
    length = x.dims[axis]
    slice_dims = x.dims[:axis] + x.dims[axis + 1:]
    state = g.pick(lambda v: 0 < v.size < 500)
    if not state:
        return None
    body = g.child()
    carried = body.value(body.name("carried"), "f", state.dims)
    piece = body.value(body.name("piece"), "f", slice_dims)
    grow(body, steps, body.random.randint(1, 4))
    outputs = [to_dims(body, squash(body), state.dims), to_dims(body, body.pick(), slice_dims)]
    graph = finish(body, outputs, [carried, piece])
    attributes = {"num_scan_inputs": 1, "scan_input_axes": [axis], "scan_input_directions": [int(g.chance(0.3))],
                  "scan_output_axes": [0], "scan_output_directions": [int(g.chance(0.3))]}
    names = g.node("Scan", [state, x], 2, body=graph, **attributes)
    g.value(names[0], "f", state.dims)
    return g.value(names[1], "f", (length,) + slice_dims)
