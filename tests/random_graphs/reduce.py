#!/usr/bin/python3
"""Reduces a failing random graph: reduce.py CASE [options of `troupe test`]

For instance: reduce.py build/random_graphs/failed/g17 --devices vulkan:0

Leaves out outputs, cuts nodes off at the front (their values become inputs, with the elements that ONNX Runtime
computed) and takes nodes out of the middle, as long as the graph still fails. Writes CASE.reduced and prints its nodes.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import onnx
from onnx import helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
TROUPE = pathlib.Path(os.environ.get("TROUPE", HERE.parent.parent / "build/release/bin/troupe"))
MODULES = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "random-graphs/node_modules"


class Reducer:
    def __init__(self, case, options):
        self.place = pathlib.Path(f"{case}.reduced")
        self.options = options
        self.trials, self.way = 0, None
        self.model = onnx.load(case / "model.onnx")
        for data_set in sorted(case.glob("test_data_set_*")):
            tensors = [onnx.TensorProto.FromString(file.read_bytes()) for file in data_set.glob("input_*.pb")]
            self.inputs = {tensor.name: tensor for tensor in tensors}
            if self.fails(self.model, self.inputs):
                return
        sys.exit("the case does not fail with these options")

    def write(self, model, inputs):
        """A case of this model; False where ONNX Runtime does not run it."""
        shutil.rmtree(self.place, ignore_errors=True)
        data = self.place / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(model, self.place / "model.onnx")
        for i, declared in enumerate(model.graph.input):
            (data / f"input_{i}.pb").write_bytes(inputs[declared.name].SerializeToString())
        names = [o.name for o in model.graph.output]
        shutil.copy(self.place / "model.onnx", self.place / "probe.onnx")
        (self.place / "checks.json").write_text(json.dumps({"checks": [], "outputs": names, "floats": []}))
        root = self.place.parent / f"{self.place.name}.oracle"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        shutil.move(self.place, root / "case")
        subprocess.run(["node", HERE / "oracle.mjs", root], env=os.environ | {"NODE_PATH": str(MODULES)},
                       capture_output=True)
        kept = (root / "case").exists()
        if kept:
            shutil.move(root / "case", self.place)
        shutil.rmtree(root)
        return kept

    def outcome(self, model, inputs):
        """How this model fails, None where it does not (or says nothing)."""
        self.trials += 1
        if not model.graph.output or not self.write(model, inputs):
            return None
        compare = [] if "--l2" in self.options or "--rtol" in self.options else ["--rtol", "1e-3", "--atol", "1e-3"]
        try:
            done = subprocess.run([TROUPE, "test", "--json", *compare, *self.options, self.place], capture_output=True,
                                  text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return "hung"
        if done.returncode not in (0, 1) or not done.stdout:
            return "crashed"
        case = json.loads(done.stdout)["cases"][0]
        how = case["outcome"]
        if how == "failed":
            how = "differs" if ": got " in case["reason"] or "L2" in case["reason"] else "error"
        return None if how == "passed" else how

    def fails(self, model, inputs):
        """Whether this model fails in the way in which the whole graph does."""
        how = self.outcome(model, inputs)
        self.way = self.way or how
        return how is not None and how == self.way

    def take(self, model, inputs):
        """Goes on with this model if it still fails."""
        if not self.fails(model, inputs):
            return False
        self.model, self.inputs = model, inputs
        return True

    def values(self):
        """All values of the graph, by ONNX Runtime."""
        model = onnx.ModelProto.FromString(self.model.SerializeToString())
        names = [name for node in model.graph.node for name in node.output if name]
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        if not self.write(model, self.inputs):
            sys.exit("ONNX Runtime does not give all values of this graph")
        files = [self.place / "test_data_set_0" / f"output_{i}.pb" for i in range(len(names))]
        return {name: onnx.TensorProto.FromString(file.read_bytes()) for name, file in zip(names, files)}


def taken_by(nodes):
    """The names that nodes take, those in bodies too."""
    names = set()
    for node in nodes:
        names |= set(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= taken_by(attribute.g.node) | {o.name for o in attribute.g.output}
    return names


def pruned(model, outputs, values=None, inputs=None, cut=(), free=False):
    """The model with these outputs and what they need; values in `cut` are inputs. Returns it and its inputs'
    elements."""
    made, elements = onnx.ModelProto.FromString(model.SerializeToString()), dict(inputs)
    needed, nodes = set(outputs), []
    for node in reversed(model.graph.node):
        if set(node.output) & needed and not set(node.output) <= set(cut):
            nodes.insert(0, node)
            needed |= taken_by([node])
    del made.graph.node[:], made.graph.output[:], made.graph.input[:], made.graph.initializer[:]
    made.graph.node.extend(nodes)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    made.graph.initializer.extend(t for t in model.graph.initializer if t.name in needed)
    made.graph.input.extend(i for i in model.graph.input if i.name in needed)
    inside = {name for node in nodes for name in node.output}
    for name in sorted(needed & set(cut) - inside):
        dims = [f"{name}_{i}" if free else d for i, d in enumerate(values[name].dims)]
        made.graph.input.append(helper.make_tensor_value_info(name, values[name].data_type, dims))
        elements[name] = values[name]
        elements[name].name = name
    return made, elements


def fewer_outputs(r):
    names = [o.name for o in r.model.graph.output]
    for name in names:
        if len(names) > 1 and r.take(*pruned(r.model, [name], inputs=r.inputs)):
            return
    for name in names:
        rest = [o.name for o in r.model.graph.output if o.name != name]
        r.take(*pruned(r.model, rest, inputs=r.inputs))


def cut_front(r):
    """Makes inputs of the values that the first nodes compute: many at once, then one by one."""
    values = r.values()
    outputs = [o.name for o in r.model.graph.output]
    step = len(r.model.graph.node) // 2
    while step >= 1:
        at = step
        while at < len(r.model.graph.node):
            cut = [name for node in list(r.model.graph.node)[at - step:at] for name in node.output
                   if node.op_type != "Constant"]
            if not cut or set(cut) & set(outputs) or not any(
                    r.take(*pruned(r.model, outputs, values, r.inputs, cut, free)) for free in (True, False)):
                at += step
        step //= 2


def bypass(r):
    """Takes a node out: one of its inputs replaces its output."""
    i = len(r.model.graph.node) - 1
    while i >= 0:
        if i < len(r.model.graph.node):
            node = r.model.graph.node[i]
            for name in dict.fromkeys(n for n in node.input if n):
                made = onnx.ModelProto.FromString(r.model.SerializeToString())
                for other in made.graph.node:
                    other.input[:] = [name if n == node.output[0] else n for n in other.input]
                outputs = [name if o.name == node.output[0] else o.name for o in made.graph.output]
                inputs = {x.name for x in made.graph.input} | {t.name for t in made.graph.initializer}
                if not set(outputs) & inputs and r.take(*pruned(made, list(dict.fromkeys(outputs)), inputs=r.inputs)):
                    break
        i -= 1


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    r = Reducer(pathlib.Path(sys.argv[1]), sys.argv[2:])
    before = None
    while before != len(r.model.graph.node):
        before = len(r.model.graph.node)
        fewer_outputs(r)
        cut_front(r)
        bypass(r)
    r.fails(r.model, r.inputs)
    print(f"{before} nodes left after {r.trials} trials: {r.place}")
    print(onnx.helper.printable_graph(r.model.graph))


if __name__ == "__main__":
    main()
