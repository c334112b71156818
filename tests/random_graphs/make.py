"""Makes random graphs, without outputs: make.py DIR SEED COUNT [NODES] [--half model|precision] [--flavour NAME]. `run`
says more.

A graph has a flavour, which says what steps it is mostly made of, an opset of 11 to 21 or newer, inputs whose dims are
partly symbols, and outputs: all that nothing takes, and some that something takes. Beside each case stands what the
oracle needs: probe.onnx, whose outputs are all values, and checks.json.
"""
import argparse
import json
import os
import sys
import traceback
import zlib

import onnx
from onnx import helper, numpy_helper

import control
import convolution as c
import dynamic as d
import elementwise as e
import exporter_forms
import integers as i
import large_constants
import movement as m
import near_miss
import norms as n
import products as p
import quantised as q
import recurrent as r
from graph import Graph, Value

VISION = [c.conv] * 8 + [c.feature_pyramid] * 4 + [c.inverted_residual] * 2 + [c.fire] * 3 + [c.conv_transpose] * 2 + \
         [c.pool] * 2 + [c.resize] * 3 + [c.squeeze_excite, c.batch_norm, c.shuffle, c.depth_space]
LANGUAGE = [p.matmul] * 4 + [p.attention] * 3 + [p.attention_operator, n.newer_norm, p.angles] + \
           [p.feed_forward] * 2 + [n.layer_norm] * 2 + [n.rms_norm, p.decode, p.grouped_heads, m.embedding, p.einsum]
POINTWISE = [e.unary] * 4 + [e.gelu] * 2 + [e.binary] * 7 + \
            [e.outer, e.rounding, e.whole_arithmetic, e.fmod, e.where, e.logic, e.logic, e.step_function, e.casts,
             e.not_a_number, e.constants, e.again]
MOVING = [m.transpose] * 3 + [m.reshaping] * 3 + [m.concat] * 2 + [m.slicing] * 2 + \
         [m.splitting, m.pad, m.expand, m.gather, m.gather_elements, m.gather_nd, m.scatter, m.one_hot, m.triangle,
          m.eye, m.reverse_sequence]
STATISTICS = [n.reduction] * 3 + [n.softmax, n.layer_norm, n.group_norm, n.other_norm, n.cumulative, n.arg_order,
                                  n.top_k]
INTEGER = [i.arithmetic] * 5 + [i.bits] * 4 + [i.comparison, i.reduction, i.conversion, i.product, i.to_float]
QUANTISED = [q.there_and_back] * 2 + [q.weight_product, q.weight_conv, q.full_qdq, q.full_qdq_conv, q.quantised_sum,
                                      q.dynamic, q.integer_product, q.integer_conv, q.linear_conv, q.linear_product,
                                      q.four_bits]
DYNAMIC = [d.computed_reshape] * 3 + [d.expand_like, d.filled, d.positions, d.causal, d.cut_half, d.pad_even,
                                      d.mean_by_size, d.tile_by_shape, d.chosen_by_data, d.found_by_value, d.distinct,
                                      d.range_of_floats]
# In bodies: nodes that need no check, and are small.
INSIDE = [e.unary] * 3 + [e.gelu] + [e.binary] * 5 + [p.matmul, m.transpose, m.reshaping, m.concat, m.slicing,
                                                      n.reduction, n.softmax, i.arithmetic, d.filled]


def branch(g):
    return control.branch(g, INSIDE + [branch, loop])


def loop(g):
    return control.loop(g, INSIDE + [branch, loop])


def scan(g):
    return control.scan(g, INSIDE + [branch])


CONTROL = [branch] * 4 + [loop] * 4 + [scan] * 2 + [control.growing, control.branch_of_other_rank]
EVERY = VISION + LANGUAGE + POINTWISE + MOVING + STATISTICS + DYNAMIC[:4] + INTEGER[:3] + \
        [r.recurrent, q.there_and_back, m.empty, branch, loop]
VISUAL = VISION * 3 + POINTWISE + MOVING + STATISTICS
SEQUENCE = LANGUAGE * 3 + POINTWISE + MOVING + STATISTICS

# The nodes of a flavour's graphs, and the ranks of their inputs.
FLAVOURS = {"vision": (VISUAL, "4"), "pyramid": ([c.feature_pyramid] * 12 + VISUAL, "4"), "sequence": (SEQUENCE, "3"),
            "mixed": (EVERY, "43"), "integer": (INTEGER * 4 + EVERY, "43"), "quantised": (QUANTISED * 6 + EVERY, "43"),
            "recurrent": ([r.recurrent] * 20 + EVERY, "3"), "control": (CONTROL * 3 + EVERY, "43"),
            "dynamic": (DYNAMIC * 5 + EVERY, "43")}
# Flavours of their own: patterns of fusions that are missed by a step or two, and constants in the place of inputs.
FLAVOURS |= {"near_miss": (exporter_forms.STEPS * 6 + VISUAL + SEQUENCE + QUANTISED, "43"),
             "large_constants": (VISUAL + SEQUENCE + INTEGER + MOVING * 3 + [m.splitting] * 12, "")}
DRAW = ["vision"] * 4 + ["pyramid"] * 2 + ["sequence"] * 3 + ["mixed"] * 3 + ["integer", "quantised", "recurrent",
                                                                              "control", "dynamic", "dynamic"]

IR_VERSIONS = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}


def image_input(g):
    batch, channels = g.random.choice([1, 1, 2, 3]), g.random.choice([1, 3, 4, 8])
    height, width = g.random.choice([4, 6, 8, 9, 12, 15]), g.random.choice([4, 6, 8, 10, 15])
    free = g.chance(0.5)
    declared = [g.free_dim(size, role) if free else size
                for size, role in ((batch, "batch"), (height, "height"), (width, "width"))]
    return g.input("f", [declared[0], channels, declared[1], declared[2]], lambda dims: g.noise.randn(*dims))


def sequence_input(g):
    batch, time, channels = g.random.choice([1, 2]), g.random.choice([1, 3, 5, 8, 16]), g.random.choice([8, 12, 16, 32])
    free = g.chance(0.5)
    declared = [g.free_dim(batch, "batch"), g.free_dim(time, "seq"), channels] if free else [batch, time, channels]
    return g.input("f", declared, lambda dims: g.noise.randn(*dims))


def build(seed, nodes, half, float16, flavour):
    g = Graph(seed, 0, half, float16)
    g.opset = g.random.choice(list(IR_VERSIONS))
    g.constant_nodes = g.chance(0.3)
    name = g.random.choice(DRAW)
    steps, ranks = FLAVOURS[flavour or name]
    # A recurrent layer of no steps gives its initial state here and zeros in ONNX Runtime; vision has none.
    g.may_be_empty = steps is VISUAL
    if flavour == "large_constants":
        large_constants.begin(g)
    for rank in ranks:
        (image_input if rank == "4" else sequence_input)(g)
        if g.chance(0.2):
            (image_input if rank == "4" else sequence_input)(g)
    tries = 0
    while len(g.nodes) < nodes and tries < nodes * 6:
        tries += 1
        mark = g.mark()
        g.random.choice(steps)(g)
        if g.too_large(mark):
            g.back_to(mark)
    if flavour == "near_miss":
        near_miss.change(g)
    if flavour == "large_constants":
        large_constants.end(g)
    return g


def choose_outputs(g):
    inputs = {v.name for v, *_ in g.inputs}
    used = {name for node in g.nodes for name in node.input} | control.nested_names(g.nodes)
    unused = [v for v in g.values if v.name not in used and v.name not in inputs]
    constants = {t.name for t in g.initializers}
    unused = [v for v in unused if v.name not in constants]
    inner = [v for v in g.values if v.name in used and v.name not in inputs | constants]
    chosen = unused + g.random.sample(inner, min(len(inner), g.random.choice([0, 0, 1, 2])))
    return chosen[:10] or g.values[-1:]


def model(g, outputs, probes=()):
    used = {name for node in [*g.nodes, *probes] for name in node.input} | control.nested_names(g.nodes)
    declared = [helper.make_tensor_value_info(v.name, g.onnx(v.type), dims) for v, dims, *_ in g.inputs]
    listed = [helper.make_tensor_value_info(v.name, g.onnx(v.type), None) for v in outputs]
    kept = [t for t in g.initializers if t.name in used]
    # Some constants are nodes, as older exporters write them.
    as_nodes = [t for t in kept if zlib.crc32(t.name.encode()) % 5 == 0] if g.constant_nodes else []
    constants = [helper.make_node("Constant", [], [t.name], value=t) for t in as_nodes]
    graph = helper.make_graph([*constants, *g.nodes, *probes], "random", declared, listed,
                              [t for t in kept if t not in as_nodes])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)])
    made.ir_version = IR_VERSIONS[g.opset]
    return made


def write(g, folder, twin, outputs):
    """The case, and data for the oracle: every value as an output, the twin of other precision."""
    os.makedirs(folder, exist_ok=True)
    onnx.save(model(g, outputs), f"{folder}/model.onnx")
    inputs = {v.name for v, *_ in g.inputs}
    constants = {t.name for t in g.initializers}
    shown = [v for v in g.values if v.name not in inputs | constants]
    checked = [check["value"] for check in g.checks]
    probed = [name for name in dict.fromkeys(checked) if name not in {v.name for v in shown} | inputs]
    onnx.save(model(g, shown + [Value(name, "f", ()) for name in probed], g.probes), f"{folder}/probe.onnx")
    if twin:
        onnx.save(model(twin, [v for v in twin.values if v.name in {o.name for o in outputs}]), f"{folder}/twin.onnx")
    with open(f"{folder}/checks.json", "w") as file:
        json.dump({"checks": g.checks, "outputs": [v.name for v in outputs],
                   "floats": [v.name for v in shown if v.type == "f" and v.bound is None]}, file)
    sets = 2 if any(size != other for size, other in g.symbols.values()) else 1
    for k in range(sets):
        os.makedirs(f"{folder}/test_data_set_{k}", exist_ok=True)
        for j, (value, _, *arrays) in enumerate(g.inputs):
            with open(f"{folder}/test_data_set_{k}/input_{j}.pb", "wb") as file:
                file.write(numpy_helper.from_array(arrays[k], value.name).SerializeToString())


def make(seed, arguments):
    half = arguments.half is not None
    # Floats from the same draws: a half-precision model and its float32 twin are the same graph.
    g = build(seed, arguments.nodes, half, arguments.half == "model", arguments.flavour)
    twin = build(seed, arguments.nodes, half, arguments.half != "model", arguments.flavour) if half else None
    outputs = choose_outputs(g)
    if not outputs or not g.nodes:
        return
    subsets = large_constants.subsets(g, outputs) if arguments.flavour == "large_constants" else [outputs]
    for k, some in enumerate(subsets):
        write(g, f"{arguments.directory}/g{seed}" + (f"_{k}" if k else ""), twin, some)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("nodes", type=int, nargs="?", default=14)
    parser.add_argument("--half", choices=["model", "precision"],
                        help="float16 models, or float32 models that float16 may compute")
    parser.add_argument("--flavour", choices=sorted(FLAVOURS))
    arguments = parser.parse_args()
    wrong = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            make(seed, arguments)
        except Exception:  # a mistake of the generator: said, counted, and no reason to lose the other graphs
            wrong += 1
            print(f"g{seed}:", traceback.format_exc().strip().replace("\n", " | ")[-400:], file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
