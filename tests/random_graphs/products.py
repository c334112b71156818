"""Matrix products, Einsum, and attention as exporters write it."""
import numpy as np

from elementwise import function
from graph import broadcast, reshape, split, unsqueeze


def matmul(g):
    x = g.pick(lambda v: v.rank >= 1 and 0 < v.dims[-1] <= 512)
    if not x:
        return None
    n = g.random.choice([1, 4, 8, 16, 20, 33])
    kind = g.random.choice(["weight", "weight", "weight", "gemm", "self", "batched", "vector"])
    if kind == "weight" or x.rank == 1:
        return linear(g, x, n)
    if kind == "gemm":
        return gemm(g, x if x.rank == 2 else flat(g, x), n) if min(x.dims) > 0 else None
    if kind == "vector":
        return g.op("MatMul", [x, g.weight(x.dims[-1], scale=1 / np.sqrt(x.dims[-1]))], x.dims[:-1])
    if kind == "batched":
        batch = [d if g.chance(0.5) else 1 for d in x.dims[:-2]] if g.chance(0.7) else [2] + [1] * (x.rank - 2)
        y = g.const(g.noise.randn(*batch, x.dims[-1], n) / np.sqrt(x.dims[-1]))
        return g.op("MatMul", [x, y], broadcast(x.dims[:-2], tuple(batch)) + (x.dims[-2], n))
    if x.dims[-2] > 200:
        return None
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    turned = g.op("Transpose", [x], [x.dims[i] for i in order], perm=order)
    y = g.op("MatMul", [x, turned], x.dims[:-1] + (x.dims[-2],))
    return g.op("Mul", [y, g.scalar(1 / max(1, x.dims[-1]))], y.dims)


def flat(g, x):
    axis = g.random.randint(1, x.rank - 1)
    return g.op("Flatten", [x], (int(np.prod(x.dims[:axis])), int(np.prod(x.dims[axis:]))), axis=axis)


def linear(g, x, n, bias=0.6):
    y = g.op("MatMul", [x, g.weight(x.dims[-1], n, scale=1 / np.sqrt(x.dims[-1]))], x.dims[:-1] + (n,))
    if g.chance(bias):
        b = g.weight(n, scale=0.3)
        y = g.op("Add", [y, b] if g.chance(0.7) else [b, y], y.dims)
    if g.chance(0.4):
        y = function(g, y, g.random.choice(["Relu", "Tanh", "Sigmoid"]))
    return y


def gemm(g, x, n):
    a, b = g.chance(0.2), g.chance(0.6)
    k, rows = (x.dims[0], x.dims[1]) if a else (x.dims[1], x.dims[0])
    if k < 1:
        return None
    weight = g.const(g.noise.randn(*((n, k) if b else (k, n))) / np.sqrt(k))
    c = g.random.choice([(n,), (1, n), (rows, 1), (), None, (rows, n)])
    inputs = [x, weight] + ([] if c is None else [g.const(g.noise.randn(*c) * 0.2)])
    return g.op("Gemm", inputs, (rows, n), transA=int(a), transB=int(b), alpha=g.random.choice([1.0, 0.5]),
                beta=g.random.choice([1.0, 2.0]))


def feed_forward(g):
    x = g.pick(lambda v: v.rank in (2, 3) and 4 <= v.dims[-1] <= 64)
    if not x:
        return None
    gated = g.chance(0.4)
    hidden = linear(g, x, x.dims[-1] * 2)
    if gated:
        hidden = g.op("Mul", [function(g, hidden, "Sigmoid"), linear(g, x, x.dims[-1] * 2)], hidden.dims)
    y = linear(g, hidden, x.dims[-1])
    return g.op("Add", [x, y], x.dims)


EQUATIONS = [("bij,jk->bik", 3, "w"), ("bij,bkj->bik", 3, "self"), ("ij,ij->i", 2, "same"), ("bij->bji", 3, None),
             ("...ij->...ji", 3, None), ("ij->j", 2, None), ("bij,bij->b", 3, "same"), ("bhqd,bhkd->bhqk", 4, "self"),
             ("bhij,jk->bhik", 4, "w"), ("ij,jk", 2, "w"), ("i,j->ij", 1, "self"), ("bij->", 3, None)]


def einsum(g):
    equation, rank, second = g.random.choice(EQUATIONS)
    x = g.pick(lambda v: v.rank == rank and v.size < 4000 and min(v.dims, default=1) > 0)
    if not x or g.opset < 12:
        return None
    operands = [x]
    if second == "w":
        operands.append(g.weight(x.dims[-1], g.random.choice([3, 5, 8]), scale=1 / np.sqrt(x.dims[-1])))
    elif second:
        operands.append(x if second == "self" and g.chance(0.5) else g.same(x))
    dims = np.einsum(equation, *[np.empty(o.dims) for o in operands]).shape
    y = g.op("Einsum", operands, dims, equation=equation)
    return g.op("Mul", [y, g.scalar(1 / np.sqrt(max(x.size / max(y.size, 1), 1)))], dims)


def heads(g, x, count, transposed=False):
    b, t, c = x.dims
    written = (b if g.chance(0.5) else 0, t if g.chance(0.7) else -1, count, c // count)
    y = reshape(g, x, (b, t, count, c // count), written)
    order = [0, 2, 3, 1] if transposed else [0, 2, 1, 3]
    return g.op("Transpose", [y], [y.dims[i] for i in order], perm=order)


def rotate(g, x):
    """Rotary embedding of [batch, head, time, channel]: x cos + rotated(x) sin."""
    half = x.dims[-1] // 2
    angle = np.outer(np.arange(x.dims[-2]), 1 / 10 ** (np.arange(half) / half))
    cos, sin = (g.const(np.concatenate([f(angle)] * 2, -1)) for f in (np.cos, np.sin))
    a, b = split(g, x, 3, [half, half])
    turned = g.op("Concat", [g.op("Neg", [b], b.dims), a], x.dims, axis=3 if g.chance(0.5) else -1)
    return g.op("Add", [g.op("Mul", [x, cos], x.dims), g.op("Mul", [turned, sin], x.dims)], x.dims)


def angles(g):
    """Products that sum over one element, turned, joined to themselves, and read by several functions."""
    x = g.pick(lambda v: v.rank >= 1 and 0 < v.dims[-1] <= 64 and int(np.prod(v.dims)) <= 512)
    if not x:
        return None
    x = unsqueeze(g, x, [x.rank - 1 if g.chance(0.5) else x.rank])
    n = g.random.choice([1, 3, 4])
    if x.dims[-1] == 1:
        y = g.op("MatMul", [x, g.weight(1, n)], x.dims[:-1] + (n,))
    elif x.dims[-2] == 1:
        y = g.op("MatMul", [g.weight(n, 1), x], x.dims[:-2] + (n, x.dims[-1]))
    else:
        return None
    if g.chance(0.7):
        order = list(range(y.rank))
        g.random.shuffle(order)
        y = g.op("Transpose", [y], [y.dims[i] for i in order], perm=order)
    if g.chance(0.7):
        axis, times = g.random.randrange(y.rank), g.random.choice([2, 3])
        y = g.op("Concat", [y] * times, [d * times if i == axis else d for i, d in enumerate(y.dims)], axis=axis)
    results = [g.op(f, [y], y.dims) for f in g.random.sample(["Cos", "Sin", "Tanh"], g.random.choice([1, 2]))]
    return results[0] if len(results) == 1 else g.op("Mul", results, y.dims)


def attention(g):
    """Self or cross attention: separate or joint projections, shared heads, masks, rotary positions."""
    fits = lambda v: v.rank == 3 and v.dims[1] <= 64 and 4 <= v.dims[2] <= 64 and v.dims[2] % 4 == 0 and v.dims[1] > 0
    x = g.pick(fits)
    if not x:
        return None
    memory = g.pick(lambda v: fits(v) and v.dims[0] == x.dims[0] and v.dims[2] == x.dims[2]) if g.chance(0.3) else x
    count, c = g.random.choice([2, 4] if x.dims[2] % 8 == 0 else [2]), x.dims[2]
    if g.chance(0.3) and memory is x:
        joint = g.op("MatMul", [x, g.weight(c, 3 * c, scale=1 / np.sqrt(c))], x.dims[:2] + (3 * c,))
        q, k, v = split(g, joint, 2, [c] * 3)
    else:
        q, k, v = (linear_only(g, source) for source in (x, memory, memory))
    rotary = g.chance(0.3) and c // count % 2 == 0
    q = heads(g, q, count)
    k = heads(g, k, count, transposed=not rotary)
    v = heads(g, v, count)
    if rotary:
        q, k = rotate(g, q), rotate(g, k)
        k = g.op("Transpose", [k], [k.dims[i] for i in (0, 1, 3, 2)], perm=[0, 1, 3, 2])
    size = c // count
    if g.chance(0.3):
        q = g.op("Mul", [q, g.scalar(size ** -0.5)], q.dims)
    scores = g.op("MatMul", [q, k], q.dims[:3] + (k.dims[3],))
    scores = g.op(*g.random.choice([("Div", [scores, g.scalar(np.sqrt(size))]),
                                    ("Mul", [scores, g.scalar(size ** -0.5)])]), scores.dims)
    scores = masked(g, scores)
    weights = g.op("Softmax", [scores], scores.dims, axis=3 if g.chance(0.5) else -1)
    y = g.op("MatMul", [weights, v], q.dims)
    y = g.op("Transpose", [y], (x.dims[0], x.dims[1], count, size), perm=[0, 2, 1, 3])
    y = reshape(g, y, x.dims, (x.dims[0], x.dims[1], -1) if g.chance(0.5) else (0, 0, c))
    if g.chance(0.6):
        y = linear_only(g, y)
    return g.op("Add", [x, y], x.dims) if g.chance(0.6) else y


def attention_operator(g):
    """ONNX's own Attention, of four or three dims, with shared key heads, masks, causal or not."""
    x = g.pick(lambda v: v.rank == 3 and 0 < v.dims[1] <= 32 and v.dims[2] in (8, 16, 32) and v.dims[0] > 0)
    if not x or g.opset < 23:
        return attention(g)
    b, t, c = x.dims
    q, k, v = (linear_only(g, x) for _ in range(3))
    attributes = {"is_causal": int(g.chance(0.4))}
    if g.chance(0.3):
        attributes["softcap"] = 2.0
    mask = g.const(g.noise.randn(t, t)) if not attributes["is_causal"] and g.chance(0.4) else None
    if g.chance(0.5):
        return g.op("Attention", [q, k, v, mask], x.dims, q_num_heads=2, kv_num_heads=2, **attributes)
    q, k, v = heads(g, q, 4), heads(g, k, 4), heads(g, v, 4)
    if g.chance(0.3):
        k, v = (g.op("Slice", [s, g.ints(0), g.ints(2), g.ints(1)], (b, 2, t, c // 4)) for s in (k, v))
    return g.op("Attention", [q, k, v, mask], (b, 4, t, c // 4), **attributes)


def linear_only(g, x):
    return linear(g, x, x.dims[-1], bias=0.5) if g.chance(0.2) else \
        g.op("MatMul", [x, g.weight(x.dims[-1], x.dims[-1], scale=1 / np.sqrt(x.dims[-1]))], x.dims)


def masked(g, scores):
    b, _, t, s = scores.dims
    kind = g.random.choice(["none", "none", "add", "where", "causal"])
    if kind == "add":
        mask = g.const(g.noise.randn(*g.random.choice([(t, s), (1, 1, t, s), (b, 1, 1, s)])))
        return g.op("Add", [scores, mask], scores.dims)
    if kind == "where":
        keep = g.noise.rand(t, s) < 0.7
        keep[:, 0] = True
        return g.op("Where", [g.const(keep, "bool"), scores, g.scalar(-1e4)], scores.dims)
    if kind == "causal" and g.opset >= 14:
        upper = g.op("Trilu", [g.const(np.full((t, s), -1e4)), g.scalar(1, "i64")], (t, s), upper=1)
        g.values.remove(upper)
        return g.op("Add", [scores, upper], scores.dims)
    return scores


def decode(g):
    """A decoder's step with its cache: Concat(past, new), one row of queries."""
    x = g.pick(lambda v: v.rank == 3 and v.dims[0] <= 2 and v.dims[1] <= 16 and v.dims[2] in (8, 16, 32))
    if not x:
        return None
    b, t, c = x.dims
    past_length = g.random.choice([1, 3, 7])
    root_dim = g.free_dim(past_length, "past") if not g.parent else past_length
    past = g.input("f", [b, 2, root_dim, c // 2], lambda d: g.noise.randn(*d))
    q, new = heads(g, linear_only(g, x), 2), heads(g, linear_only(g, x), 2)
    keys = g.op("Concat", [past, new], (b, 2, past_length + t, c // 2), axis=2 if g.chance(0.5) else -2)
    turned = g.op("Transpose", [keys], [keys.dims[i] for i in (0, 1, 3, 2)], perm=[0, 1, 3, 2])
    scores = g.op("Mul", [g.op("MatMul", [q, turned], (b, 2, t, past_length + t)), g.scalar((c // 2) ** -0.5)],
                  (b, 2, t, past_length + t))
    y = g.op("MatMul", [g.op("Softmax", [scores], scores.dims, axis=-1), keys], q.dims)
    return reshape(g, g.op("Transpose", [y], (b, t, 2, c // 2), perm=[0, 2, 1, 3]), x.dims)


def grouped_heads(g):
    """Keys shared by several heads: Unsqueeze, Expand, Reshape."""
    x = g.pick(lambda v: v.rank == 4 and v.dims[1] <= 8 and v.size < 2000 and min(v.dims) > 0)
    if not x:
        return None
    b, h, t, c = x.dims
    y = unsqueeze(g, x, [2])
    y = g.op("Expand", [y, g.ints(b if g.chance(0.5) else 1, h, 2, t, c)], (b, h, 2, t, c))
    return reshape(g, y, (b, 2 * h, t, c), (0, 2 * h, t, c) if g.chance(0.5) else (b, -1, t, c))
