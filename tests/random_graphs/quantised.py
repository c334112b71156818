"""Quantised arithmetic. Where a rounding meets noisy floats, the oracle's own nodes say how near it is to a tie; scales
that are powers of two make everything exact, ties included."""
import numpy as np
from onnx import TensorProto

from convolution import image, out_size

RANGE = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-32768, 32767)}


def scale_of(g, *dims):
    """A scale, or one for each channel: a power of two or anything."""
    if g.chance(0.5):
        return g.const(2.0 ** g.noise.randint(-6, -3, dims))
    return g.const(g.noise.rand(*dims) * 0.04 + 0.015)


def zero_point(g, type, *dims):
    low, high = {"u8": (100, 140), "i8": (-10, 10), "u16": (30000, 34000), "i16": (-100, 100), "i32": (0, 0)}[type]
    return g.const(g.noise.randint(low, high + 1, dims), type)


def quantize(g, x, type=None, axis=None):
    """QuantizeLinear; None where its rounding cannot be checked."""
    if not g.may_jump(x) or g.half:
        return None
    # 16 bits are finer than float32's noise: only for whole numbers.
    type = type or g.random.choice(["u8", "i8"] + (["u16", "i16"] if g.opset >= 21 and x.bound is not None else []))
    channels = () if axis is None else (x.dims[axis],)
    scale = scale_of(g, *channels)
    zero = zero_point(g, type, *channels)
    lead = [1] * x.rank
    if axis is not None:
        lead[axis] = x.dims[axis]
    # The check's own quotient; clipped, since far beyond the range nothing jumps.
    shaped = g.probe("Reshape", [scale, g.ints(*(lead if axis is not None else []))])
    if x.bound is None:
        g.check("half", g.probe("Clip", [g.probe("Div", [x, shaped]), g.scalar(-70000), g.scalar(70000)]), margin=1e-4)
    more = {} if axis is None else {"axis": axis}
    if type == "u8" and axis is None and g.chance(0.2):
        y = g.op("QuantizeLinear", [x, scale], x.dims, "u8", 255)
        return y, scale, None, more
    return g.op("QuantizeLinear", [x, scale, zero], x.dims, type, max(abs(v) for v in RANGE[type]),
                **more), scale, zero, more


def there_and_back(g):
    x = g.pick(lambda v: v.size < 4000)
    axis = g.random.randrange(x.rank) if x and x.rank and g.opset >= 13 and g.chance(0.4) else None
    made = x and quantize(g, x, axis=axis)
    if not made:
        return None
    y, scale, zero, more = made
    if g.chance(0.2):
        return y
    return g.op("DequantizeLinear", [y, scale] + ([zero] if zero else []), x.dims, **more)


def dequantized_weight(g, *dims):
    """A weight as quantising exporters store it: int8 and a scale, perhaps one a channel, perhaps one a block."""
    elements = np.clip(np.round(g.noise.randn(*dims) * 40), -127, 127)
    fan = float(np.prod(dims[1:])) if len(dims) > 2 else float(dims[0])
    most = 1 / np.sqrt(max(fan, 1)) / 40
    type = g.random.choice(["i8", "i8", "u8"])
    if type == "u8":
        elements = elements + 128
    weight = g.const(elements, type)
    axis = (0 if len(dims) > 2 else 1) if g.opset >= 13 and g.chance(0.5) else None
    channels = () if axis is None else (dims[axis],)
    zero = g.const(np.full(channels, 128 if type == "u8" else 0), type)
    scale = g.const((g.noise.rand(*channels) * 0.5 + 0.75) * most)
    more = {} if axis is None else {"axis": axis}
    if g.opset >= 21 and len(dims) == 2 and dims[0] % 4 == 0 and g.chance(0.3):
        scale = g.const((g.noise.rand(dims[0] // 4, dims[1]) * 0.5 + 0.75) * most)
        zero = g.const(np.full((dims[0] // 4, dims[1]), 128 if type == "u8" else 0), type)
        more = {"axis": 0, "block_size": 4}
    y = g.op("DequantizeLinear", [weight, scale, zero], dims, **more)
    g.values.remove(y)
    return y


def weight_product(g):
    x = g.pick(lambda v: v.rank >= 2 and 0 < v.dims[-1] <= 128)
    if not x or g.half:
        return None
    n = g.random.choice([4, 8, 20])
    return g.op("MatMul", [x, dequantized_weight(g, x.dims[-1], n)], x.dims[:-1] + (n,))


def weight_conv(g):
    x = image(g, least=3, channels=32)
    if not x or g.half:
        return None
    group = x.dims[1] if g.chance(0.3) else 1
    out = x.dims[1] if group > 1 else g.random.choice([4, 8, 12])
    weight = dequantized_weight(g, out, x.dims[1] // group, 3, 3)
    return g.op("Conv", [x, weight], (x.dims[0], out, *x.dims[2:]), kernel_shape=[3, 3], pads=[1] * 4, group=group)


def full_qdq(g):
    """Activation and weight both quantised, as a QDQ model has them."""
    x = g.pick(lambda v: v.rank >= 2 and 0 < v.dims[-1] <= 64 and v.size < 4000)
    made = x and quantize(g, x, g.random.choice(["u8", "i8"]))
    if not made:
        return None
    y, scale, zero, more = made
    y = g.op("DequantizeLinear", [y, scale] + ([zero] if zero else []), x.dims, **more)
    y = g.op("MatMul", [y, dequantized_weight(g, x.dims[-1], 8)], x.dims[:-1] + (8,))
    again = quantize(g, y, "u8")
    return g.op("DequantizeLinear", [again[0], again[1]] + ([again[2]] if again[2] else []), y.dims)


def dequantized_again(g, y):
    """y through QuantizeLinear and DequantizeLinear; y itself where its rounding cannot be checked."""
    made = quantize(g, y, g.random.choice(["u8", "i8"]))
    return g.op("DequantizeLinear", [made[0], made[1]] + ([made[2]] if made[2] else []), y.dims) if made else y


def full_qdq_conv(g):
    """The same for a convolution, perhaps with a bias and an activation before it is quantised again."""
    x = image(g, least=3, channels=32)
    made = x and x.size < 4000 and quantize(g, x, g.random.choice(["u8", "i8"]))
    if not made:
        return None
    y, scale, zero, more = made
    y = g.op("DequantizeLinear", [y, scale] + ([zero] if zero else []), x.dims, **more)
    group, stride = x.dims[1] if g.chance(0.3) else 1, g.random.choice([1, 2])
    out = x.dims[1] if group > 1 else g.random.choice([4, 8, 20])
    weight = dequantized_weight(g, out, x.dims[1] // group, 3, 3)
    bias = [g.const(g.noise.randn(out))] if g.chance(0.5) else []
    dims = (x.dims[0], out) + tuple(out_size(s, 3, stride, 1, 1) for s in x.dims[2:])
    y = g.op("Conv", [y, weight] + bias, dims, kernel_shape=[3, 3], pads=[1] * 4, strides=[stride] * 2, group=group)
    if g.chance(0.4):
        y = g.op("Relu", [y], dims)
    return dequantized_again(g, y)


def quantised_sum(g):
    """Add, and perhaps Relu, of values that have been quantised, as after a residual block."""
    x = g.pick(lambda v: v.rank >= 1 and 0 < v.size < 4000)
    if not x or g.half:
        return None
    y = g.op("Add", [dequantized_again(g, x), dequantized_again(g, x)], x.dims)
    if g.chance(0.5):
        y = g.op("Relu", [y], x.dims)
    return dequantized_again(g, y)


def bytes_value(g, fits, types=("u8", "i8")):
    """A quantised value: one that is there, or one made from a float."""
    x = g.pick(lambda v: v.bound is not None and fits(v), type=types)
    if x and g.chance(0.5):
        return x
    x = g.pick(fits)
    made = x and quantize(g, x, g.random.choice(types))
    return made and made[0]


def dynamic(g):
    """DynamicQuantizeLinear and the integer product or convolution after it."""
    x = g.pick(lambda v: v.rank >= 2 and 0 < v.size < 4000 and v.dims[-1] <= 128)
    if not x or g.half or g.parent:
        return None
    names = g.node("DynamicQuantizeLinear", [x], 3)
    y, scale, zero = g.value(names[0], "u8", x.dims, 255), g.value(names[1], "f", ()), g.value(names[2], "u8", (), 255)
    g.check("half", g.probe("Div", [x, scale]), margin=2e-4)
    # An engine whose float32 minimum is a bit off may have another zero point.
    g.check("half", g.probe("Div", [g.probe("ReduceMin", [x], keepdims=0), scale]), margin=2e-4)
    if g.chance(0.3):
        return g.op("DequantizeLinear", [y, scale, zero], x.dims)
    n = g.random.choice([4, 8, 20])
    type = g.random.choice(["i8", "u8"])
    weight = g.const(g.noise.randint(*((-60, 61) if type == "i8" else (60, 190)), (x.dims[-1], n)), type)
    inputs = [y, weight, zero] + ([zero_point(g, type)] if g.chance(0.4) else [])
    bound = 255 * 255 * x.dims[-1]
    product = g.op("MatMulInteger", inputs, x.dims[:-1] + (n,), "i32", bound)
    y = g.op("Cast", [product], product.dims, bound=bound, to=g.onnx("f"))
    factor = g.op("Mul", [scale, g.scalar(0.01 / np.sqrt(x.dims[-1]))], ())
    return g.op("Mul", [y, factor], y.dims)


def integer_product(g):
    x = bytes_value(g, lambda v: v.rank >= 2 and 0 < v.dims[-1] <= 128)
    if not x:
        return None
    type = g.random.choice(["i8", "u8"]) if x.type == "u8" else "i8"
    n = g.random.choice([3, 8, 17])
    per_column = g.chance(0.2)
    weight = g.const(g.noise.randint(*((-60, 61) if type == "i8" else (60, 190)), (x.dims[-1], n)), type)
    zeros = g.random.choice([[], [zero_point(g, x.type)],
                             [zero_point(g, x.type), zero_point(g, type, *((n,) if per_column else ()))]])
    return g.op("MatMulInteger", [x, weight] + zeros, x.dims[:-1] + (n,), "i32", 255 * 255 * x.dims[-1])


def integer_conv(g):
    x = bytes_value(g, lambda v: v.rank == 4 and min(v.dims[2:]) >= 3 and v.dims[1] <= 16, types=("u8",))
    if not x:
        return None
    type, stride = g.random.choice(["i8", "u8"]), g.random.choice([1, 2])
    weight = g.const(g.noise.randint(*((-60, 61) if type == "i8" else (60, 190)), (5, x.dims[1], 3, 3)), type)
    dims = (x.dims[0], 5) + tuple(out_size(s, 3, stride, 1, 1) for s in x.dims[2:])
    zeros = g.random.choice([[], [zero_point(g, "u8")], [zero_point(g, "u8"), zero_point(g, type)]])
    return g.op("ConvInteger", [x, weight] + zeros, dims, "i32", 255 * 255 * 9 * x.dims[1], pads=[1] * 4,
                strides=[stride] * 2)


def linear_conv(g):
    """QLinearConv; a probe of the same sum in floats says how near its rounding is to a tie."""
    type = g.random.choice(["u8", "u8", "i8"])
    x = bytes_value(g, lambda v: v.rank == 4 and min(v.dims[2:]) >= 3 and v.dims[1] <= 16, types=(type,))
    if not x:
        return None
    group, stride = x.dims[1] if g.chance(0.3) else 1, g.random.choice([1, 2])
    out = x.dims[1] if group > 1 else 6
    kind = "i8" if type == "i8" else g.random.choice(["i8", "u8"])
    weight = g.const(g.noise.randint(*((-60, 61) if kind == "i8" else (60, 190)), (out, x.dims[1] // group, 3, 3)),
                     kind)
    wide = kind == "i8" and g.chance(0.5)
    xs, zs = scale_of(g), zero_point(g, type)
    ws, zw = (scale_of(g, out), g.const(np.zeros(out), kind)) if wide else (scale_of(g), zero_point(g, kind))
    ys, zy = g.scalar(g.random.choice([0.25, 0.5, 0.37])), zero_point(g, type)
    bias = [g.const(g.noise.randint(-500, 500, out), "i32")] if g.chance(0.5) else []
    dims = (x.dims[0], out) + tuple(out_size(s, 3, stride, 1, 1) for s in x.dims[2:])
    shape = {"pads": [1] * 4, "strides": [stride] * 2, "group": group}
    y = g.op("QLinearConv", [x, xs, zs, weight, ws, zw, ys, zy] + bias, dims, type, 255, **shape)
    real = g.probe("Conv", [less(g, x, zs), less(g, weight, zw, spread=(-1, 1, 1, 1))]
                   + [g.probe("Cast", [b], to=1) for b in bias], **shape)
    factor = g.probe("Div", [g.probe("Mul", [xs, g.probe("Reshape", [ws, g.ints(-1, 1, 1)])]), ys])
    g.check("half", clipped(g, g.probe("Mul", [real, factor])), margin=1e-4)
    return y


def linear_product(g):
    type = g.random.choice(["u8", "u8", "i8"])
    x = bytes_value(g, lambda v: v.rank >= 2 and 0 < v.dims[-1] <= 128, types=(type,))
    if not x:
        return None
    kind, n = "i8" if type == "i8" else g.random.choice(["i8", "u8"]), g.random.choice([3, 8, 17])
    weight = g.const(g.noise.randint(*((-60, 61) if kind == "i8" else (60, 190)), (x.dims[-1], n)), kind)
    xs, zs, ws, zw = scale_of(g), zero_point(g, type), scale_of(g), zero_point(g, kind)
    ys, zy = g.scalar(g.random.choice([0.25, 0.5, 0.37])), zero_point(g, type)
    y = g.op("QLinearMatMul", [x, xs, zs, weight, ws, zw, ys, zy], x.dims[:-1] + (n,), type, 255)
    real = g.probe("MatMul", [less(g, x, zs), less(g, weight, zw)])
    g.check("half", clipped(g, g.probe("Mul", [real, g.probe("Div", [g.probe("Mul", [xs, ws]), ys])])), margin=1e-4)
    return y


def less(g, x, zero, spread=None):
    """A probe: x - zero as floats, exact."""
    zero = g.probe("Cast", [zero], to=1)
    if spread:
        zero = g.probe("Reshape", [zero, g.ints(*spread)])
    return g.probe("Sub", [g.probe("Cast", [x], to=1), zero])


def clipped(g, name):
    return g.probe("Clip", [name, g.scalar(-1000), g.scalar(1000)])


def four_bits(g):
    """A weight of 4-bit integers, one scale a block."""
    x = g.pick(lambda v: v.rank >= 2 and 0 < v.dims[-1] <= 64 and v.dims[-1] % 4 == 0)
    if not x or g.opset < 21 or g.half:
        return None
    k, n = x.dims[-1], 8
    signed = g.chance(0.5)
    nibbles = g.noise.randint(0, 16, k * n)
    packed = (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8)
    weight = TensorProto(name=g.name("c"), dims=[k, n], data_type=22 if signed else 21, raw_data=packed.tobytes())
    g.initializers.append(weight)
    scale = g.const((g.noise.rand(k // 4, n) * 0.5 + 0.75) / np.sqrt(k) / 5)
    y = g.op("DequantizeLinear", [weight.name, scale], (k, n), axis=0, block_size=4)
    g.values.remove(y)
    return g.op("MatMul", [x, y], x.dims[:-1] + (n,))
