"""LSTM, GRU and RNN: directions, sequence lengths, initial states, peepholes, clipping."""
import numpy as np

from graph import reshape, squeeze

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def time_major(g):
    """[time, batch, channel]: a value that is so, or one that is turned."""
    x = g.pick(lambda v: v.rank == 3 and 0 < v.dims[0] <= 32 and 0 < v.dims[1] <= 32 and 0 < v.dims[2] <= 64
               and v.size < 8000)
    if not x:
        return None
    if g.chance(0.6):
        return g.op("Transpose", [x], (x.dims[1], x.dims[0], x.dims[2]), perm=[1, 0, 2])
    return x


def recurrent(g):
    x = time_major(g)
    if not x:
        return None
    kind, hidden = g.random.choice(["LSTM", "GRU", "RNN", "LSTM", "GRU"]), g.random.choice([3, 4, 8])
    time, batch, channels = x.dims
    direction = g.random.choice(["forward", "forward", "reverse", "bidirectional"])
    ways, gates = 2 if direction == "bidirectional" else 1, GATES[kind]
    weight = g.const(g.noise.randn(ways, gates * hidden, channels) / np.sqrt(channels))
    again = g.const(g.noise.randn(ways, gates * hidden, hidden) / np.sqrt(hidden))
    bias = g.const(g.noise.randn(ways, 2 * gates * hidden) * 0.2) if g.chance(0.7) else None
    lengths = sequence_lengths(g, time, batch) if g.chance(0.3) else None
    states = [g.const(g.noise.randn(ways, batch, hidden) * 0.5) if g.chance(0.4) else None]
    attributes = {"hidden_size": hidden, "direction": direction}
    if kind == "LSTM":
        states.append(g.const(g.noise.randn(ways, batch, hidden) * 0.5) if g.chance(0.4) else None)
        if g.chance(0.15):
            states.append(g.const(g.noise.randn(ways, 3 * hidden) * 0.3))
    if kind == "GRU" and g.chance(0.5):
        attributes["linear_before_reset"] = 1
    if g.chance(0.15):
        attributes["clip"] = 1.5
    if g.chance(0.15) and kind == "RNN":
        attributes["activations"] = [g.random.choice(["Relu", "Tanh", "Sigmoid"])] * ways
    names = g.node(kind, [x, weight, again, bias, lengths, *states], 3 if kind == "LSTM" else 2, **attributes)
    if g.chance(0.15):  # only the last state is wanted
        g.nodes[-1].output[0] = ""
        return g.value(names[1], "f", (ways, batch, hidden))
    y = g.value(names[0], "f", (time, ways, batch, hidden))
    for name in names[1:]:
        g.value(name, "f", (ways, batch, hidden))
    if g.chance(0.4):
        return y
    if ways == 1:
        return squeeze(g, y, [1])
    y = g.op("Transpose", [y], (time, batch, ways, hidden), perm=[0, 2, 1, 3])
    return reshape(g, y, (time, batch, ways * hidden), (0, 0, -1))


def sequence_lengths(g, time, batch):
    elements = g.noise.randint(1, time + 1, batch)
    if g.parent or g.chance(0.5):
        return g.const(elements, "i32")
    return g.input("i32", [batch], lambda d: elements)
