"""A small transformer in NumPy, with its gradients: what train.py trains and writes as ONNX.

Each layer is x + attention(rms(x)), then x + relu(rms(x) W1) W2. Attention knows places by its linear bias (ALiBi):
head h subtracts slope[h] times the distance. Tokens in, logits of the next token out; the table of embeddings is the
last product's matrix, too.
"""
import numpy as np

LAYERS, HEADS, SIZE = 2, 4, 96
SLOPES = np.float32([2.0 ** -(2 * h + 2) for h in range(HEADS)])
EPSILON = np.float32(1e-5)


def initial_weights(words, random):
    """Returns the weights by name."""
    normal = lambda *shape, scale: (random.standard_normal(shape) * scale).astype(np.float32)
    weights = {"words": normal(words, SIZE, scale=0.05), "end.gain": np.ones(SIZE, np.float32)}
    for i in range(LAYERS):
        for name in ("query", "key", "value", "out"):
            weights[f"{i}.{name}"] = normal(SIZE, SIZE, scale=SIZE**-0.5 * (0.5 if name == "out" else 1))
        weights[f"{i}.up"] = normal(SIZE, 4 * SIZE, scale=SIZE**-0.5)
        weights[f"{i}.down"] = normal(4 * SIZE, SIZE, scale=0.25 * SIZE**-0.5)
        weights[f"{i}.attention.gain"] = np.ones(SIZE, np.float32)
        weights[f"{i}.hidden.gain"] = np.ones(SIZE, np.float32)
    return weights


def rms(x, gain):
    """Returns x over its root mean square, times a gain, and what the gradient needs."""
    scale = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPSILON)
    normed = x * scale
    return normed * gain, (normed, scale, gain)


def rms_gradient(d, kept):
    normed, scale, gain = kept
    d_normed = d * gain
    d_x = scale * (d_normed - normed * np.mean(d_normed * normed, -1, keepdims=True))
    return d_x, np.sum(d * normed, axis=(0, 1))


def split(x):
    """[batch, tokens, size] → [batch, heads, tokens, size / heads]"""
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], SIZE)


def attention(x, w, i, bias):
    query, key, value = (split(x @ w[f"{i}.{name}"]) for name in ("query", "key", "value"))
    scores = query @ key.transpose(0, 1, 3, 2)
    scores *= np.float32((SIZE // HEADS) ** -0.5)
    scores += bias
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    mixed = joined(scores @ value)
    return mixed @ w[f"{i}.out"], (x, query, key, value, scores, mixed)


def attention_gradient(d, w, i, kept, gradients):
    x, query, key, value, share, mixed = kept
    product = lambda a, b: np.tensordot(a, b, ((0, 1), (0, 1)))
    gradients[f"{i}.out"] = product(mixed, d)
    d_mixed = split(d @ w[f"{i}.out"].T)
    d_value = share.transpose(0, 1, 3, 2) @ d_mixed
    d_scores = d_mixed @ value.transpose(0, 1, 3, 2)
    d_scores -= np.sum(d_scores * share, -1, keepdims=True)
    d_scores *= share
    d_scores *= np.float32((SIZE // HEADS) ** -0.5)
    parts = {"query": d_scores @ key, "key": d_scores.transpose(0, 1, 3, 2) @ query, "value": d_value}
    d_x = 0
    for name, d_part in parts.items():
        d_part = joined(d_part)
        gradients[f"{i}.{name}"] = product(x, d_part)
        d_x = d_x + d_part @ w[f"{i}.{name}"].T
    return d_x


def bias_of(tokens):
    """Returns the linear bias, [heads, tokens, tokens]: minus infinity, nearly, for what is yet to come."""
    distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]
    return np.where(distance < 0, np.float32(-1e9), -SLOPES[:, None, None] * distance).astype(np.float32)


def loss_and_gradients(w, tokens, following):
    """Returns the mean cross entropy in nats, and its gradient by each weight."""
    kept, gradients = [], {}
    x = w["words"][tokens]
    bias = bias_of(tokens.shape[1])
    for i in range(LAYERS):
        normed, first = rms(x, w[f"{i}.attention.gain"])
        mixed, middle = attention(normed, w, i, bias)
        x = x + mixed
        normed, second = rms(x, w[f"{i}.hidden.gain"])
        hidden = np.maximum(normed @ w[f"{i}.up"], 0)
        x = x + hidden @ w[f"{i}.down"]
        kept.append((first, middle, normed, second, hidden))
    end, last = rms(x, w["end.gain"])
    logits = end @ w["words"].T
    logits -= logits.max(-1, keepdims=True)
    share = np.exp(logits)
    share /= share.sum(-1, keepdims=True)
    rows = np.arange(following.size)
    flat = share.reshape(following.size, -1)
    loss = -np.mean(np.log(flat[rows, following.ravel()] + 1e-9))
    flat[rows, following.ravel()] -= 1
    flat /= following.size
    product = lambda a, b: np.tensordot(a, b, ((0, 1), (0, 1)))
    d_words = product(share, end)
    d, gradients["end.gain"] = rms_gradient(share @ w["words"], last)
    for i in reversed(range(LAYERS)):
        d = layer_gradient(d, w, i, kept[i], gradients)
    np.add.at(d_words, tokens.ravel(), d.reshape(-1, SIZE))
    gradients["words"] = d_words
    return loss, gradients


def layer_gradient(d, w, i, kept, gradients):
    first, middle, normed, second, hidden = kept
    product = lambda a, b: np.tensordot(a, b, ((0, 1), (0, 1)))
    gradients[f"{i}.down"] = product(hidden, d)
    d_hidden = (d @ w[f"{i}.down"].T) * (hidden > 0)
    gradients[f"{i}.up"] = product(normed, d_hidden)
    d_x, gradients[f"{i}.hidden.gain"] = rms_gradient(d_hidden @ w[f"{i}.up"].T, second)
    d = d + d_x
    d_x, gradients[f"{i}.attention.gain"] = rms_gradient(attention_gradient(d, w, i, middle, gradients), first)
    return d + d_x
