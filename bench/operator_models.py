"""Calls of operators at sizes that models have, for operator_ratio.

`cases()` yields them: float32 images of 64 channels, 56 × 56 pixels; rows of 256 positions and 768 features; products
of 512. Operands named `constant` are initializers, all others inputs: kernels that are fast for constant weights alone
show here.
"""
import numpy as np
from onnx import TensorProto

from operator_case import MICROSOFT, ML, call, floats, integers, positive, whole, with_constants


def elementwise():
    image, row = (1, 64, 56, 56), (1, 256, 768)
    for op in ("Abs Atan Ceil Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsNaN LeakyRelu Mish Neg Relu Round "
               "Selu "
               "Sigmoid Sign Sin Sinh Cosh Softplus Softsign Tan Tanh ThresholdedRelu Celu Shrink Asinh Acos Asin "
               "Atanh "
               "Identity IsInf").split():
        yield call(op, floats(*image))
    for op in "Log Sqrt Reciprocal".split():
        yield call(op, positive(*image))
    yield call("Acosh", 1 + positive(*image))
    for op in "Add Sub Mul Div Max Min Sum Mean".split():
        yield call(op, floats(*image), floats(*image))
    yield call("Add", floats(*image), floats(64, 1, 1), name="Add, by channel")
    yield call("Add", floats(*row), floats(768), name="Add, by row")
    yield call("Add", floats(64, 56, 1), floats(64, 1, 56), name="Add, outer")
    yield call("Pow", positive(*image), constants={1: np.float32(2.5)})
    yield call("Pow", positive(*image), constants={1: np.float32(2)}, name="Pow, square")
    yield call("PRelu", floats(*image), constants={1: floats(64, 1, 1)})
    yield call("Mod", integers(*image), integers(*image, low=1, high=9))
    yield call("Mod", floats(*image), positive(*image), name="Mod, floats", fmod=1)
    for op in "Add Mul Div Max".split():
        yield call(op, integers(*image), integers(*image, low=1), name=f"{op}, int64")
    for op in "Equal Greater Less GreaterOrEqual LessOrEqual".split():
        yield call(op, floats(*image), floats(*image))
    yield call("Equal", integers(*row), integers(*row), name="Equal, int64")
    flags = floats(*image) > 0
    for op in "And Or Xor".split():
        yield call(op, flags, flags[:, ::-1].copy())
    yield call("Not", flags)
    yield call("Where", flags, floats(*image), floats(*image))
    yield call("Where", flags, floats(*image), floats(1), name="Where, scalar")
    yield call("Clip", floats(*image), constants={1: np.float32(-0.5), 2: np.float32(0.5)})
    words = integers(*image, low=0, high=30, dtype=np.uint32)
    for op in "BitwiseAnd BitwiseOr BitwiseXor".split():
        yield call(op, words, words)
    yield call("BitwiseNot", words)
    yield call("BitShift", words, words, direction="LEFT")
    for to in "FLOAT16 DOUBLE INT64 INT32 UINT8 BOOL".split():
        yield call("Cast", floats(*image), name=f"Cast to {to}", to=getattr(TensorProto, to))
    yield call("Cast", integers(*image), name="Cast of int64", to=TensorProto.FLOAT)


def reductions():
    image, row = floats(1, 64, 56, 56), floats(1, 256, 768)
    for op in "Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare".split():
        x = np.abs(image) + 0.1 if op == "LogSum" else image
        yield call("Reduce" + op, x, constants={1: whole(2, 3)}, name=f"Reduce{op}, pixels")
        yield call("Reduce" + op, x, constants={1: whole(1)}, name=f"Reduce{op}, channels")
    yield call("ReduceMean", row, constants={1: whole(-1)}, name="ReduceMean, rows")
    yield call("ReduceSum", integers(1, 256, 768), constants={1: whole(-1)}, name="ReduceSum, int64")
    for op in "ArgMax ArgMin".split():
        yield call(op, row, axis=-1, name=f"{op}, rows")
        yield call(op, image, axis=1, name=f"{op}, channels")
    yield call("CumSum", row, constants={1: np.int64(1)})
    yield call("CumSum", row, constants={1: np.int64(2)}, name="CumSum, rows")
    yield call("Softmax", floats(12, 256, 256), axis=-1)
    yield call("Softmax", image, axis=1, name="Softmax, channels")
    yield call("LogSoftmax", floats(64, 30000), axis=-1)
    yield call("Hardmax", row, axis=-1)
    yield call("TopK", floats(64, 1000), constants={1: whole(5)}, outputs=2)
    yield call("TopK", floats(1, 8400), constants={1: whole(300)}, outputs=2, name="TopK, detections")


def movement():
    image, row = floats(1, 64, 56, 56), floats(1, 256, 768)
    yield call("Concat", image, image, axis=1)
    yield call("Concat", row, row, axis=-1, name="Concat, last axis")
    yield call("Split", floats(1, 256, 2304), constants={1: whole(768, 768, 768)}, outputs=3, axis=-1)
    yield call("Split", image, constants={1: whole(32, 32)}, outputs=2, axis=1, name="Split, channels")
    yield call("Slice", image, constants={1: whole(0, 0), 2: whole(56, 56), 3: whole(2, 3), 4: whole(2, 2)},
        name="Slice, steps")
    yield call("Slice", image, constants={1: whole(3, 5), 2: whole(50, 51), 3: whole(2, 3)})
    yield call("Slice", image, constants={1: whole(-1), 2: whole(-10000), 3: whole(3), 4: whole(-1)},
        name="Slice, backwards")
    for mode in "constant reflect edge".split():
        yield call("Pad", image, constants={1: whole(0, 0, 3, 3, 0, 0, 3, 3)}, mode=mode, name=f"Pad, {mode}")
    for name, perm, x in (
        ("heads", [0, 2, 1, 3], floats(1, 256, 12, 64)),
        ("channels last", [0, 2, 3, 1], image),
        ("matrix", [1, 0], floats(1024, 1024)),
        ("windows", [0, 1, 3, 2, 4, 5], floats(1, 8, 7, 8, 7, 96)),
    ):
        yield call("Transpose", x, perm=perm, name=f"Transpose, {name}")
    yield call("Reshape", image, constants={1: whole(1, 64, -1)})
    yield call("Flatten", image)
    yield call("Squeeze", image, constants={1: whole(0)})
    yield call("Unsqueeze", image, constants={1: whole(0)})
    yield call("Expand", floats(1, 64, 1, 1), constants={1: whole(1, 64, 56, 56)})
    yield call("Expand", floats(1, 8, 1, 256, 64), constants={1: whole(1, 8, 4, 256, 64)}, name="Expand, heads")
    yield call("Tile", floats(1, 64, 28, 28), constants={1: whole(1, 1, 2, 2)})
    yield from with_constants("Gather", floats(30000, 768), integers(1, 256, low=0, high=30000), known=(0,),
        name="Gather, embedding")
    yield call("Gather", image, constants={1: integers(32, low=0, high=64)}, axis=1, name="Gather, channels")
    yield call("GatherElements", row, integers(1, 256, 768, low=0, high=768), axis=2)
    yield call("GatherND", floats(256, 56, 64), integers(4096, 2, low=0, high=56))
    yield call("ScatterElements", row, integers(1, 256, 100, low=0, high=768), floats(1, 256, 100), axis=2)
    yield call("ScatterND", floats(1024, 768), np.arange(512).reshape(512, 1), floats(512, 768))
    yield call("DepthToSpace", floats(1, 256, 56, 56), blocksize=2)
    yield call("DepthToSpace", floats(1, 256, 56, 56), blocksize=2, mode="CRD", name="DepthToSpace, CRD")
    yield call("SpaceToDepth", floats(1, 64, 112, 112), blocksize=2)
    yield call("ReverseSequence", floats(256, 8, 512), integers(8, low=1, high=256), time_axis=0, batch_axis=1)
    yield call("Trilu", floats(12, 256, 256), upper=0)
    yield call("Compress", floats(1024, 768), floats(1024) > 0, axis=0)
    yield call("NonZero", floats(256, 256) > 0.5)
    yield call("Unique", integers(50000), sorted=1)
    yield call("OneHot", integers(1, 256, low=0, high=1000), constants={1: np.int64(1000), 2: np.array([0, 1],
        np.float32)})
    yield call("Range", np.int64(0), np.int64(200000), np.int64(1))
    yield call("EyeLike", floats(512, 512))
    yield call("ConstantOfShape", whole(64, 56, 56))
    yield call("CenterCropPad", image, constants={1: whole(48, 48)}, axes=[2, 3])
    yield call("Col2Im", floats(1, 64 * 9, 56 * 56), constants={1: whole(56, 56), 2: whole(3, 3)}, pads=[1, 1, 1, 1])


def convolutions():
    image, same = floats(1, 64, 56, 56), {"pads": [1, 1, 1, 1]}
    yield from with_constants("Conv", image, floats(64, 64, 3, 3), floats(64), known=(1, 2), name="Conv 3x3", **same)
    yield from with_constants("Conv", image, floats(64, 64, 1, 1), floats(64), known=(1, 2), name="Conv 1x1")
    yield from with_constants("Conv", image, floats(64, 1, 3, 3), floats(64), known=(1, 2), name="Conv depthwise",
        group=64, **same)
    yield from with_constants("Conv", image, floats(64, 8, 3, 3), known=(1, ), name="Conv of 8 groups", group=8, **same)
    yield from with_constants("Conv", image, floats(64, 64, 3, 3), known=(1,), name="Conv dilated", dilations=[2, 2],
        pads=[2, 2, 2, 2])
    yield from with_constants("Conv", floats(1, 3, 224, 224), floats(64, 3, 7, 7), known=(1,), name="Conv first layer",
        strides=[2, 2], pads=[3, 3, 3, 3])
    yield from with_constants("Conv", floats(1, 128, 1000), floats(128, 128, 5), known=(1,), name="Conv 1D", pads=[2,
        2])
    yield from with_constants("Conv", floats(1, 16, 16, 28, 28), floats(16, 16, 3, 3, 3), known=(1,), name="Conv 3D",
        pads=[1] * 6)
    yield from with_constants("ConvTranspose", image, floats(64, 64, 3, 3), known=(1,), name="ConvTranspose 3x3",
        strides=[2, 2], output_padding=[1, 1], **same)
    yield from with_constants("ConvTranspose", image, floats(64, 32, 2, 2), known=(1,), name="ConvTranspose 2x2",
        strides=[2, 2])
    yield from with_constants("ConvTranspose", floats(1, 64, 500), floats(64, 32, 16), known=(1,),
        name="ConvTranspose 1D", strides=[8], pads=[4, 4])
    yield call("DeformConv", floats(1, 64, 28, 28), floats(64, 64, 3, 3), floats(1, 18, 28, 28), opset=19, **same)
    half = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    for op in "MaxPool AveragePool LpPool".split():
        yield call(op, floats(1, 64, 112, 112), **half)
    yield call("MaxPool", floats(1, 64, 112, 112), name="MaxPool, indices", outputs=2, **half)
    yield call("MaxPool", floats(1, 64, 56, 56), name="MaxPool 13x13", kernel_shape=[13, 13], pads=[6, 6, 6, 6])
    yield call("AveragePool", floats(1, 32, 8, 28, 28), name="AveragePool 3D", kernel_shape=[2, 2, 2], strides=[2, 2,
        2])
    for op in "GlobalMaxPool GlobalAveragePool GlobalLpPool".split():
        yield call(op, floats(1, 512, 28, 28))
    yield call("MaxUnpool", floats(1, 64, 28, 28), np.arange(64 * 28 * 28).reshape(1, 64, 28, 28) * 4, kernel_shape=[2,
        2], strides=[2, 2])
    boxes = np.sort(positive(100, 4) * 50, axis=1).astype(np.float32)
    yield call("RoiAlign", floats(1, 64, 56, 56), boxes, np.zeros(100, np.int64), output_height=7, output_width=7,
        sampling_ratio=2, opset=16)
    yield call("MaxRoiPool", floats(1, 64, 56, 56), np.concatenate([np.zeros((100, 1), np.float32), boxes], 1),
        pooled_shape=[7, 7])
    twice = np.array([1, 1, 2, 2], np.float32)
    for mode in "nearest linear cubic".split():
        yield call("Resize", floats(1, 32, 56, 56), constants={2: twice}, mode=mode, name=f"Resize, {mode}")
    yield call("Resize", floats(1, 32, 112, 112), constants={2: np.array([1, 1, 0.5, 0.5], np.float32)}, mode="linear",
        name="Resize, down")
    grid = floats(1, 56, 56, 2)
    for mode in "linear nearest cubic".split():
        yield call("GridSample", floats(1, 32, 56, 56), grid, mode=mode, opset=20, name=f"GridSample, {mode}")
    yield call("AffineGrid", floats(1, 2, 3), constants={1: whole(1, 3, 224, 224)}, opset=20)


def products():
    for name, a, b in (
        ("MatMul 512", (512, 512), (512, 512)),
        ("MatMul heads", (12, 256, 64), (12, 64, 256)),
        ("MatMul one row", (1, 768), (768, 3072)),
        ("MatMul rows", (1, 256, 768), (768, 768)),
    ):
        yield from with_constants("MatMul", floats(*a), floats(*b), known=(1, ), name=name)
    yield from with_constants("Gemm", floats(64, 1024), floats(1000, 1024), floats(1000), known=(1, 2), transB=1)
    yield from with_constants("Gemm", floats(512, 256), floats(512, 256), known=(1,), transA=1,
        name="Gemm, A transposed")
    yield call("MatMul", floats(256, 256).astype(np.float64), floats(256, 256).astype(np.float64),
        name="MatMul, float64")
    yield call("MatMul", integers(128, 128), integers(128, 128), name="MatMul, int64")
    yield call("Einsum", floats(12, 256, 64), floats(12, 256, 64), equation="hqd,hkd->hqk")
    yield call("Einsum", floats(1, 256, 12, 64), floats(1, 256, 12, 64), equation="bqhd,bkhd->bhqk",
        name="Einsum, heads inside")
    yield call("Einsum", floats(8, 16, 32, 24), floats(8, 24, 32), equation="abcd,adc->ab", name="Einsum, two sums")
    data, weight = integers(256, 768, low=0, high=255, dtype=np.uint8), integers(768, 768, low=-127, high=127,
        dtype=np.int8)
    yield from with_constants("MatMulInteger", data, weight, known=(1, ), opset=21)
    scale, zero = np.float32(0.02), np.uint8(120)
    yield from with_constants("QLinearMatMul", data, scale, zero, weight, np.float32(0.01), np.int8(0), np.float32(1),
        zero, known=(1, 2, 3, 4, 5, 6, 7))
    picture, kernel = integers(1, 64, 56, 56, low=0, high=255, dtype=np.uint8), integers(64, 64, 3, 3, low=-127,
        high=127, dtype=np.int8)
    yield from with_constants("ConvInteger", picture, kernel, known=(1, ), pads=[1, 1, 1, 1])
    yield from with_constants("QLinearConv", picture, scale, zero, kernel, np.float32(0.01), np.int8(0), np.float32(1),
        zero, known=(1, 2, 3, 4, 5, 6, 7), pads=[1, 1, 1, 1])
    yield call("QuantizeLinear", floats(1, 64, 56, 56), constants={1: scale, 2: zero})
    yield call("QuantizeLinear", floats(1, 64, 56, 56), constants={1: positive(64), 2: np.zeros(64, np.int8)}, axis=1,
        name="QuantizeLinear, channels")
    yield call("DequantizeLinear", picture, constants={1: scale, 2: zero})
    yield call("DequantizeLinear", picture, constants={1: positive(64), 2: np.zeros(64, np.uint8)}, axis=1,
        name="DequantizeLinear, channels")
    yield call("DynamicQuantizeLinear", floats(1, 256, 768), outputs=3)
    yield call("Det", floats(64, 16, 16))


def norms():
    image, row = floats(1, 64, 56, 56), floats(1, 256, 768)
    yield from with_constants("BatchNormalization", image, floats(64), floats(64), floats(64), positive(64), known=(1,
        2, 3, 4))
    yield from with_constants("InstanceNormalization", image, floats(64), floats(64), known=(1, 2))
    yield from with_constants("GroupNormalization", image, floats(64), floats(64), known=(1, 2), num_groups=8)
    yield from with_constants("LayerNormalization", row, floats(768), floats(768), known=(1, 2))
    yield from with_constants("RMSNormalization", row, floats(768), known=(1, ), opset=23)
    yield call("LRN", image, size=5)
    yield call("LpNormalization", row, axis=-1)
    yield call("MeanVarianceNormalization", image)
    yield call("NegativeLogLikelihoodLoss", floats(256, 1000), integers(256, low=0, high=1000))
    yield call("SoftmaxCrossEntropyLoss", floats(256, 1000), integers(256, low=0, high=1000))
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        operands = (floats(64, 1, 256), floats(1, gates * 256, 256) / 16, floats(1, gates * 256, 256) / 16, floats(1,
            2 * gates * 256))
        yield from with_constants(op, *operands, known=(1, 2, 3), hidden_size=256)


def attention():
    heads = floats(2, 4, 1500, 16), floats(2, 4, 1500, 16), floats(2, 4, 1500, 16)
    yield call("Attention", *heads, opset=23)
    yield call("Attention", *heads, floats(1500, 1500), opset=23, name="Attention, mask")
    yield call("Attention", *heads, floats(1500, 1500) > -0.5, opset=23, name="Attention, flags")
    yield call("Attention", *heads, opset=23, is_causal=1, name="Attention, causal")
    yield call("Attention", floats(1, 256, 768), floats(1, 256, 768), floats(1, 256, 768), opset=23, q_num_heads=12,
        kv_num_heads=12, name="Attention, rows")
    yield call("Attention", floats(1, 12, 1, 64), floats(1, 12, 1, 64), floats(1, 12, 1, 64), None, floats(1, 12, 511,
        64), floats(1, 12, 511, 64), opset=23, outputs=3, name="Attention, decode step")
    rows = floats(1, 256, 768)
    yield call("MultiHeadAttention", rows, rows, rows, num_heads=12, domain=MICROSOFT)
    yield call("Attention", rows, constants={1: floats(768, 2304) / 28, 2: floats(2304)}, num_heads=12,
        domain=MICROSOFT, name="Attention of com.microsoft")
    yield call("GroupQueryAttention", floats(1, 256, 768), floats(1, 256, 256), floats(1, 256, 256), floats(1, 4, 256,
        64), floats(1, 4, 256, 64), np.array([255], np.int32), np.array(256, np.int32), num_heads=12, kv_num_heads=4,
        outputs=3, domain=MICROSOFT)
    yield call("RotaryEmbedding", floats(1, 12, 256, 64), constants={1: floats(1024, 32), 2: floats(1024, 32),
        3: np.arange(256).reshape(1, 256)}, opset=23)


def contrib():
    row = floats(1, 256, 768)
    for op in "FastGelu Gelu QuickGelu".split():
        yield call(op, row, domain=MICROSOFT, name=f"{op} of com.microsoft")
    yield call("BiasGelu", row, constants={1: floats(768)}, domain=MICROSOFT)
    yield call("SkipLayerNormalization", row, row, constants={2: floats(768), 3: floats(768), 4: floats(768)},
        domain=MICROSOFT)
    yield call("SkipSimplifiedLayerNormalization", row, row, constants={2: floats(768)}, domain=MICROSOFT)
    yield call("EmbedLayerNormalization", integers(1, 256, low=0, high=1000, dtype=np.int32), np.zeros((1, 256),
        np.int32), constants={2: floats(1000, 768), 3: floats(512, 768), 4: floats(2, 768), 5: floats(768),
        6: floats(768)}, outputs=2, domain=MICROSOFT)
    yield from with_constants("FusedMatMul", floats(256, 768), floats(768, 768), known=(1,), alpha=0.5,
        domain=MICROSOFT)
    yield call("FusedConv", floats(1, 64, 56, 56), constants={1: floats(64, 64, 3, 3)}, activation="Relu", pads=[1, 1,
        1, 1], domain=MICROSOFT)
    packed = integers(768, 24, 16, low=0, high=255, dtype=np.uint8)
    for rows in (1, 256):
        yield call("MatMulNBits", floats(rows, 768), constants={1: packed, 2: positive(768 * 24)}, K=768, N=768, bits=4,
            block_size=32, domain=MICROSOFT, name=f"MatMulNBits of {rows} rows")
    data, scale, zero = integers(1, 64, 56, 56, low=0, high=255, dtype=np.uint8), np.float32(0.02), np.uint8(120)
    for op in "QLinearAdd QLinearMul".split():
        yield call(op, data, None, None, data, constants={1: scale, 2: zero, 4: scale, 5: zero, 6: scale, 7: zero},
            domain=MICROSOFT)
    for op in "QLinearSigmoid QLinearLeakyRelu QLinearGlobalAveragePool".split():
        more = {"channels_last": 0} if op.endswith("Pool") else {}
        yield call(op, data, constants={1: scale, 2: zero, 3: scale, 4: zero}, domain=MICROSOFT, **more)
    yield call("QLinearAveragePool", data, constants={1: scale, 2: zero, 3: scale, 4: zero}, kernel_shape=[3, 3],
        domain=MICROSOFT)
    yield call("DynamicQuantizeMatMul", floats(256, 768), constants={1: integers(768, 768, low=-127, high=127,
        dtype=np.int8), 2: np.float32(0.01)}, domain=MICROSOFT)
    yield call("MatMulIntegerToFloat", integers(256, 768, low=0, high=255, dtype=np.uint8), None,
        constants={1: integers(768, 768, low=-127, high=127, dtype=np.int8), 2: scale, 3: np.float32(0.01)},
        domain=MICROSOFT)


def signals():
    yield call("DFT", floats(1, 64, 400, 1), onesided=1, axis=2, opset=17)
    yield call("DFT", floats(1, 64, 512, 1), onesided=1, axis=2, opset=17, name="DFT, 512")
    yield call("STFT", floats(1, 16000), np.int64(160), constants={2: positive(400)}, opset=17)
    yield call("HannWindow", np.int64(4000), opset=17)
    yield call("MelWeightMatrix", constants={0: np.int64(80), 1: np.int64(512), 2: np.int64(16000), 3: np.float32(0),
        4: np.float32(8000)}, opset=17)
    boxes = np.sort(positive(1, 2000, 4), axis=2).astype(np.float32)
    yield call("NonMaxSuppression", boxes, positive(1, 20, 2000), constants={2: whole(100), 3: np.float32(0.5),
        4: np.float32(0.4)})


def tables():
    features = floats(1000, 64)
    yield call("Scaler", features, domain=ML, offset=[0.1] * 64, scale=[2.0] * 64)
    yield call("Normalizer", features, domain=ML, norm="L2")
    yield call("Binarizer", features, domain=ML, threshold=0.1)
    yield call("Imputer", features, domain=ML, imputed_value_floats=[0.5], replaced_value_float=0.25)
    yield call("ArrayFeatureExtractor", features, whole(1, 5, 7), domain=ML)
    yield call("LinearRegressor", features, domain=ML, coefficients=[0.1] * 64, intercepts=[0.5])
    yield call("LinearClassifier", features, domain=ML, outputs=2, coefficients=[0.1] * 640, intercepts=[0.5] * 10,
        classlabels_ints=list(range(10)))
    yield call("OneHotEncoder", integers(1000, low=0, high=50), domain=ML, cats_int64s=list(range(50)))
    yield call("LabelEncoder", integers(10000, low=0, high=100), domain=ML, keys_int64s=list(range(100)),
        values_floats=[0.5] * 100)
    yield call("SVMRegressor", features, domain=ML, coefficients=[0.1] * 200, kernel_params=[0.1, 0.0, 3.0],
        kernel_type="RBF", n_supports=200, rho=[0.1], support_vectors=floats(200 * 64).tolist())
    yield forest(features, trees=100, depth=6)


def forest(features, trees, depth):
    """A TreeEnsembleRegressor of whole trees."""
    inner, count = 2**depth - 1, 2**(depth + 1) - 1
    nodes = [(t, n) for t in range(trees) for n in range(count)]
    leaves = [(t, n) for t, n in nodes if n >= inner]
    return call("TreeEnsembleRegressor", features, domain=ML, n_targets=1, nodes_treeids=[t for t, _ in nodes],
        nodes_nodeids=[n for _, n in nodes], nodes_modes=["BRANCH_LEQ" if n < inner else "LEAF" for _, n in nodes],
        nodes_featureids=[n % 64 if n < inner else 0 for _, n in nodes],
        nodes_values=[float(v) for v in floats(len(nodes))], nodes_truenodeids=[2 * n + 1 if n < inner else 0 for _,
        n in nodes], nodes_falsenodeids=[2 * n + 2 if n < inner else 0 for _, n in nodes], target_treeids=[t for t,
        _ in leaves], target_nodeids=[n for _, n in leaves], target_ids=[0] * len(leaves),
        target_weights=[float(v) for v in floats(len(leaves))])


def cases():
    for family in (
            elementwise,
            reductions,
            movement,
            convolutions,
            products,
            norms,
            attention,
            contrib,
            signals,
            tables,
    ):
        yield from family()
