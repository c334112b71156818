"""Convolutions, pools, resizes and the blocks that vision models build of them, feature pyramids above all."""
import numpy as np
from onnx import numpy_helper

from elementwise import function
from graph import reduce, reshape

ACTIVATIONS = ["Relu", "Sigmoid", "HardSwish", "Tanh", "LeakyRelu", "Clip6", "Elu"]


def image(g, least=2, channels=64, rank=4, most=24):
    """A value that looks like [batch, channel, spatial…]."""
    return g.pick(lambda v: v.rank == rank and v.dims[0] > 0 and min(v.dims[2:]) >= least and max(v.dims[2:]) <= most
                  and 1 <= v.dims[1] <= channels)


def out_size(size, kernel, stride, before, after, dilation=1):
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def activate(g, x):
    return function(g, x, g.random.choice(ACTIVATIONS))


def conv(g):
    rank = g.random.choice([4, 4, 4, 4, 3, 5])
    x = image(g, rank=rank) or image(g)
    if not x:
        return None
    r, kernel = g.random, g.random.choice([1, 1, 3, 3, 5, 2])
    stride, dilation = r.choice([1, 1, 1, 2]), r.choice([1, 1, 1, 2]) if kernel == 3 else 1
    channels = x.dims[1]
    group = r.choice([1, 1, channels, 2 if channels % 2 == 0 else 1])
    out = (channels * r.choice([1, 2]) if group == channels and group > 1
           else max(group, r.choice([4, 6, 8, 12, 16, 24]) // group * group))
    y = convolve(g, x, out, kernel, stride, dilation, group)
    if not y:
        return None
    if g.chance(0.4):
        y = batch_norm(g, y)
    if g.chance(0.3):
        other = g.same(y)
        if other is not y:
            y = g.op("Add", [y, other] if g.chance(0.5) else [other, y], y.dims)
    return activate(g, y) if g.chance(0.5) else y


def convolve(g, x, out, kernel=3, stride=1, dilation=1, group=1, pad=None, bias=0.6):
    """Any Conv; None where the kernel is larger than the image."""
    n = x.rank - 2
    attributes = {"kernel_shape": [kernel] * n, "strides": [stride] * n, "dilations": [dilation] * n, "group": group}
    before = [g.random.choice([kernel // 2 * dilation, 0, 1]) if pad is None else pad] * n
    after = list(before)
    if pad is None and g.chance(0.15):
        after[-1] += 1
    if pad is None and dilation == 1 and g.chance(0.15):
        mode = attributes["auto_pad"] = g.random.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        sizes = [out_size(s, kernel, stride, 0, 0) if mode == "VALID" else -(-s // stride) for s in x.dims[2:]]
    else:
        attributes["pads"] = before + after
        sizes = [out_size(s, kernel, stride, b, a, dilation) for s, b, a in zip(x.dims[2:], before, after)]
    if min(sizes) < 1:
        return None
    weight = g.weight(out, x.dims[1] // group, *[kernel] * n)
    inputs = [x, weight] + ([g.weight(out, scale=0.2)] if g.chance(bias) else [])
    return g.op("Conv", inputs, (x.dims[0], out, *sizes), **attributes)


def batch_norm(g, x=None):
    x = x or g.pick(lambda v: v.rank >= 2)
    if not x:
        return None
    c, n = x.dims[1], g.noise
    return g.op("BatchNormalization", [x]
                + [g.const(a) for a in (n.rand(c) + 0.5, n.randn(c) * 0.2, n.randn(c) * 0.2, n.rand(c) + 0.5)], x.dims)


def conv_transpose(g):
    x = image(g, least=1, channels=32, rank=g.random.choice([4, 4, 4, 3]), most=16)
    if not x:
        return None
    kernel, stride, pad, extra = g.random.choice([(2, 2, 0, 0), (3, 2, 1, 0), (4, 2, 1, 0), (3, 1, 1, 0), (3, 2, 1, 1)])
    group = g.random.choice([1, 1, 1, x.dims[1], 2 if x.dims[1] % 2 == 0 else 1])
    out = g.random.choice([4, 8, 3 * group]) // group
    n = x.rank - 2
    sizes = [(s - 1) * stride - 2 * pad + kernel + extra for s in x.dims[2:]]
    if min(sizes) < 1 or out < 1:
        return None
    attributes = {"kernel_shape": [kernel] * n, "strides": [stride] * n, "group": group, "pads": [pad] * (2 * n)}
    if extra:
        attributes["output_padding"] = [extra] * n
    bias = [g.weight(out * group, scale=0.2)] if g.chance(0.5) else []
    return g.op("ConvTranspose", [x, g.weight(x.dims[1], out, *[kernel] * n)] + bias, (x.dims[0], out * group, *sizes),
                **attributes)


def pool(g):
    x = image(g, least=3, rank=g.random.choice([4, 4, 4, 3, 5])) or image(g, least=3)
    if not x:
        return None
    kind = g.random.choice(["MaxPool", "AveragePool", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool",
                            "GlobalMaxPool", "GlobalLpPool"])
    if kind == "GlobalLpPool" and g.opset >= 22:  # ONNX Runtime has none
        kind = "GlobalMaxPool"
    if kind.startswith("Global"):
        return g.op(kind, [x], x.dims[:2] + (1,) * (x.rank - 2))
    n = x.rank - 2
    kernel, stride, pad = g.random.choice([(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0)])
    attributes = {"kernel_shape": [kernel] * n, "strides": [stride] * n, "pads": [pad] * (2 * n)}
    dilation = 2 if kind == "MaxPool" and kernel == 2 and g.chance(0.3) else 1
    if dilation > 1:
        attributes["dilations"] = [dilation] * n
    if kind == "AveragePool" and g.chance(0.5):
        attributes["count_include_pad"] = 1
    span = dilation * (kernel - 1) + 1
    ceil = kind != "LpPool" and g.chance(0.2)
    sizes = [(-(-(s + 2 * pad - span) // stride) if ceil else (s + 2 * pad - span) // stride) + 1 for s in x.dims[2:]]
    if min(sizes) < 1 or (ceil and any((o - 1) * stride >= s + pad for o, s in zip(sizes, x.dims[2:]))):
        return None
    if ceil:
        attributes["ceil_mode"] = 1
    if kind == "MaxPool" and x.bound is not None and g.chance(0.5):
        values, indices = g.node(kind, [x], 2, **attributes)
        g.value(indices, "i64", x.dims[:2] + tuple(sizes), bound=MOST_INDEX)
        return g.value(values, "f", x.dims[:2] + tuple(sizes), x.bound)
    return g.op(kind, [x], x.dims[:2] + tuple(sizes), bound=x.bound if kind == "MaxPool" else None, **attributes)


MOST_INDEX = 40000


def resize(g, x=None, sizes=None):
    """Resize by factors or to sizes, in all the modes that are defined everywhere."""
    x = x or image(g, most=16)
    if not x:
        return None
    mode = g.random.choice(["nearest", "nearest", "linear", "linear", "cubic"])
    if mode == "nearest":
        attributes = {"coordinate_transformation_mode": g.random.choice(["asymmetric", "half_pixel"]),
                      "nearest_mode": g.random.choice(["floor", "round_prefer_floor", "round_prefer_ceil", "ceil"])}
    else:
        modes = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
        attributes = {"coordinate_transformation_mode": g.random.choice(modes)}
        if mode == "cubic" and g.chance(0.5):
            attributes["cubic_coeff_a"] = -0.5
    nothing = None if g.opset >= 13 else g.const(np.zeros(0))
    factors = [1.0, 1.0] + [g.random.choice([2, 2, 3, 0.5, 1]) for _ in x.dims[2:]]
    factors = [2.0 if f == 0.5 and s % 2 else float(f) for f, s in zip(factors, x.dims)]
    target = sizes or [int(s * f) for s, f in zip(x.dims, factors)]
    if sizes is None and g.chance(0.5):
        if 0.5 in factors and attributes["coordinate_transformation_mode"] == "align_corners":
            # Of odd sizes: ONNX's own cases take the corner of the unrounded size, ONNX Runtime that of the rounded
            # one.
            attributes["coordinate_transformation_mode"] = "half_pixel"
        return g.op("Resize", [x, nothing, real32(g, factors)], target, mode=mode, **attributes)
    empty = None if g.opset >= 13 else real32(g, [])
    return g.op("Resize", [x, nothing, empty, g.ints(*target)], target, mode=mode, **attributes)


def real32(g, numbers):
    """A float32 constant whatever the model's float type is: scales of a Resize."""
    name = g.name("c")
    g.initializers.append(numpy_helper.from_array(np.array(numbers, np.float32), name))
    return name


def resize_like(g, x, like):
    """x at the height and width of `like`, the way exporters write it: sizes cut from the shape, or a factor."""
    target = x.dims[:2] + like.dims[2:]
    attributes = g.random.choice([{"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                                   "nearest_mode": "floor"},
                                  {"mode": "linear",
                                   "coordinate_transformation_mode": g.random.choice(["half_pixel",
                                                                                      "align_corners"])}])
    nothing, empty = (None, None) if g.opset >= 13 else (g.const(np.zeros(0)), real32(g, []))
    if g.chance(0.4) and all(t % s == 0 for s, t in zip(x.dims, target)):
        factors = [float(t // s) for s, t in zip(x.dims, target)]
        return g.op("Resize", [x, nothing, real32(g, factors)], target, **attributes)
    if g.chance(0.3):
        return g.op("Resize", [x, nothing, empty, g.ints(*target)], target, **attributes)
    first = g.node("Slice", [g.node("Shape", [x])[0], g.ints(0), g.ints(2), g.ints(0)])[0]
    last = g.node("Slice", [g.node("Shape", [like])[0], g.ints(2), g.ints(4), g.ints(0)])[0]
    sizes = g.node("Concat", [first, last], axis=0)[0]
    return g.op("Resize", [x, nothing, empty, sizes], target, **attributes)


def feature_pyramid(g):
    """Two or three scales, their lateral 1 x 1 convolutions, and the way back up: Add(Resize(small), large)."""
    x = image(g, least=6, channels=32)
    if not x:
        return None
    width = g.random.choice([4, 8, 12])
    scales = [x]
    for _ in range(g.random.choice([1, 1, 2])):
        y = convolve(g, scales[-1], width, 3, 2, pad=1) if g.chance(0.7) else down(g, scales[-1])
        scales.append(activate(g, y) if g.chance(0.7) else y)
    lateral = [convolve(g, s, width, 1, pad=0) for s in scales]
    merged, level = [lateral[-1]], lateral[-1]
    for side in reversed(lateral[:-1]):
        up = resize_like(g, level, side)
        level = g.op("Add", [up, side] if g.chance(0.5) else [side, up], side.dims)
        if g.chance(0.5):
            level = activate(g, convolve(g, level, width, 3, pad=1))
        merged.append(level)
    if g.chance(0.5):
        same = [m if m.dims[2:] == level.dims[2:] else resize_like(g, m, level) for m in merged]
        return g.beside(same, g.op("Concat", same, (level.dims[0], width * len(same), *level.dims[2:]), axis=1), 1)
    return level


def down(g, x):
    kind = g.random.choice(["MaxPool", "AveragePool"])
    sizes = [s // 2 for s in x.dims[2:]]
    return g.op(kind, [x], x.dims[:2] + tuple(sizes), kernel_shape=[2, 2], strides=[2, 2])


def squeeze_excite(g):
    x = image(g, least=1, channels=32)
    if not x:
        return None
    small = max(1, x.dims[1] // 2)
    y = g.op("GlobalAveragePool", [x], x.dims[:2] + (1, 1)) if g.chance(0.6) else mean(g, x)
    y = g.op("Relu", [convolve(g, y, small, 1, pad=0, bias=1)], (x.dims[0], small, 1, 1))
    y = convolve(g, y, x.dims[1], 1, pad=0, bias=1)
    return g.op("Mul", [x, g.op(g.random.choice(["Sigmoid", "HardSigmoid"]), [y], y.dims)], x.dims)


def mean(g, x):
    return reduce(g, "ReduceMean", x, [2, 3])


def inverted_residual(g):
    """MobileNet's block: 1 x 1 up, depthwise, 1 x 1 down, a residual that may be the graph's input."""
    x = image(g, least=2, channels=16)
    if not x:
        return None
    wide = x.dims[1] * 2
    y = activate(g, convolve(g, x, wide, 1, pad=0))
    y = activate(g, convolve(g, y, wide, 3, pad=1, group=wide))
    group = 2 if x.dims[1] % 2 == 0 and g.chance(0.3) else 1
    y = convolve(g, y, x.dims[1], 1, pad=0, group=group)
    return g.op("Add", [x, y] if g.chance(0.5) else [y, x], x.dims)


def fire(g):
    """SqueezeNet's and Inception's block: convolutions of one image beside each other, and sometimes one that something
    else reads."""
    x = image(g, least=1)
    if not x:
        return None
    parts = []
    for _ in range(g.random.choice([2, 2, 3])):
        kernel = g.random.choice([1, 1, 3])
        group = x.dims[1] if g.chance(0.15) else 1
        y = convolve(g, x, group if group > 1 else g.random.choice([1, 4, 5, 8, 16]), kernel, pad=kernel // 2,
                     group=group)
        parts.append(activate(g, y) if g.chance(0.7) else y)
    joined = g.op("Concat", parts, (x.dims[0], sum(p.dims[1] for p in parts), *x.dims[2:]), axis=1)
    if g.chance(0.2):
        activate(g, parts[0])
    return activate(g, convolve(g, joined, 8, 1, pad=0)) if g.chance(0.6) else joined


def shuffle(g):
    """ShuffleNet's channel shuffle, and the concatenation before it."""
    x = image(g, least=1)
    if not x or x.dims[1] % 2:
        return None
    n, c, h, w = x.dims
    y = reshape(g, x, (n, 2, c // 2, h, w),
                (n if g.chance(0.5) else 0, 2, c // 2, h, w) if g.chance(0.5) else (-1, 2, c // 2, h, w))
    y = g.op("Transpose", [y], (n, c // 2, 2, h, w), perm=[0, 2, 1, 3, 4])
    return reshape(g, y, x.dims)


def depth_space(g):
    x = image(g, least=1)
    if not x:
        return None
    n, c, h, w = x.dims
    if c % 4 == 0 and g.chance(0.5):
        return g.op("DepthToSpace", [x], (n, c // 4, h * 2, w * 2), blocksize=2, mode=g.random.choice(["DCR", "CRD"]))
    if h % 2 == 0 and w % 2 == 0 and c <= 16:
        return g.op("SpaceToDepth", [x], (n, c * 4, h // 2, w // 2), blocksize=2)
    return None
