#!/usr/bin/env python3
"""Trains the detector of this example and writes detect.onnx beside this file.

usage: train.py DIGITS.csv.gz [--steps N] [--seed N]

A fully convolutional network sees a canvas of any size; each cell of 8×8 pixels says whether the centre of a digit is
in it, where its box is, and which digit it is. Data: scikit-learn's copy of the digits (README.md), without those of
../digits/digits_test.npz. Needs NumPy and python3-onnx; a quarter of an hour on one core. You need not run it: what it
writes is committed.
"""
import argparse
import pathlib
import time

import numpy as np
import scenes
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
CELL, CHANNELS = 8, 15  # of a cell: object, x, y, log width, log height, ten digits
#          inputs, outputs, kernel, stride
NETWORK = [(1, 16, 3, 2), (16, 32, 3, 2), (32, 64, 3, 2), (64, 64, 3, 1), (64, 64, 3, 1), (64, CHANNELS, 1, 1)]


def windows(x, kernel, stride):
    """Returns the kernel's windows of x [batch, channels, rows, columns] as [batch, rows, columns, channels ·
    kernel²]."""
    if kernel == 3:
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    views = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    batch, channels, rows, columns = views.shape[:4]
    return np.ascontiguousarray(views.transpose(0, 2, 3, 1, 4, 5)).reshape(batch, rows, columns,
                                                                           channels * kernel * kernel)


def scattered(d_windows, shape, kernel, stride):
    """The gradient of `windows`: adds each window's elements where they came from."""
    batch, channels, rows, columns = shape
    pad = kernel // 2
    d_x = np.zeros((batch, channels, rows + 2 * pad, columns + 2 * pad), np.float32)
    parts = d_windows.reshape(*d_windows.shape[:3], channels, kernel, kernel)
    for y in range(kernel):
        for x in range(kernel):
            part = parts[..., y, x].transpose(0, 3, 1, 2)
            d_x[:, :, y : y + stride * part.shape[2] : stride, x : x + stride * part.shape[3] : stride] += part
    return d_x[:, :, pad : pad + rows, pad : pad + columns]


def forward(w, x):
    kept = []
    for i, (_, _, kernel, stride) in enumerate(NETWORK):
        flat = windows(x, kernel, stride)
        y = flat @ w[f"{i}.weight"] + w[f"{i}.bias"]
        if i + 1 < len(NETWORK):
            y = np.maximum(y, 0)
        kept.append((flat, x.shape, y))
        x = y.transpose(0, 3, 1, 2)
    return y, kept


def backward(w, d, kept):
    gradients = {}
    for i in reversed(range(len(NETWORK))):
        _, _, kernel, stride = NETWORK[i]
        flat, shape, y = kept[i]
        if i + 1 < len(NETWORK):
            d = d * (y > 0)
        d_flat = d.reshape(-1, d.shape[-1])
        gradients[f"{i}.weight"] = flat.reshape(-1, flat.shape[-1]).T @ d_flat
        gradients[f"{i}.bias"] = d_flat.sum(0)
        if i > 0:
            d = scattered(d @ w[f"{i}.weight"].T, shape, kernel, stride).transpose(0, 2, 3, 1)
    return gradients


def targets_of(found, rows, columns):
    """Returns what cells should say [rows, columns, 5], and the digit; only cells with an object have the rest."""
    target, digit = np.zeros((rows, columns, 5), np.float32), np.zeros((rows, columns), int)
    for (left, top, right, bottom), label in found:
        x, y = (left + right) / 2 / CELL, (top + bottom) / 2 / CELL
        target[int(y), int(x)] = (1, x % 1, y % 1, np.log((right - left) / CELL), np.log((bottom - top) / CELL))
        digit[int(y), int(x)] = label
    return target, digit


def loss_and_gradient(cells, target, digit):
    """Returns the sum of three losses over the batch's objects, and its gradient: object or not, place and size, which
    digit."""
    here = target[..., 0]
    objects = max(here.sum(), 1)
    d = np.zeros_like(cells)
    share = 1 / (1 + np.exp(-cells[..., :3]))
    loss = -np.sum(here * np.log(share[..., 0] + 1e-7) + (1 - here) * np.log(1 - share[..., 0] + 1e-7))
    d[..., 0] = share[..., 0] - here
    place = (share[..., 1:3] - target[..., 1:3]) * here[..., None]
    size = (cells[..., 3:5] - target[..., 3:5]) * here[..., None]
    loss += 2 * np.sum(place**2) + 2 * np.sum(size**2)
    d[..., 1:3] = 4 * place * share[..., 1:3] * (1 - share[..., 1:3])
    d[..., 3:5] = 4 * size
    logits = cells[..., 5:] - cells[..., 5:].max(-1, keepdims=True)
    guess = np.exp(logits)
    guess /= guess.sum(-1, keepdims=True)
    right = np.take_along_axis(guess, digit[..., None], -1)[..., 0]
    loss -= np.sum(here * np.log(right + 1e-7))
    d[..., 5:] = (guess - np.eye(10, dtype=np.float32)[digit]) * here[..., None]
    return loss / objects, d / np.float32(objects)


def batch_of(images, labels, random, count=32, height=64, width=96):
    made = [scenes.make_scene(images, labels, height, width, random) for _ in range(count)]
    targets = [targets_of(found, height // CELL, width // CELL) for _, found in made]
    canvases = np.stack([canvas for canvas, _ in made])[:, None]
    return canvases, np.stack([t for t, _ in targets]), np.stack([d for _, d in targets])


def train(w, images, labels, steps, random):
    first, second = ({name: np.zeros_like(v) for name, v in w.items()} for _ in range(2))
    started = time.monotonic()
    for step in range(1, steps + 1):
        x, target, digit = batch_of(images, labels, random)
        cells, kept = forward(w, x)
        loss, d = loss_and_gradient(cells, target, digit)
        rate = 2e-3 * min(1, step / 100) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / steps)))
        for name, gradient in backward(w, d, kept).items():
            first[name] += np.float32(0.1) * (gradient - first[name])
            second[name] += np.float32(0.002) * (gradient * gradient - second[name])
            move = first[name] / np.float32(1 - 0.9**step) / (np.sqrt(second[name] / np.float32(1 - 0.998**step))
                                                              + np.float32(1e-8))
            w[name] -= np.float32(rate) * (move + np.float32(0.05) * w[name] * (w[name].ndim == 2))
        if step % 100 == 0:
            print(f"step {step}: loss {loss:.3f}, {time.monotonic() - started:.0f} s", flush=True)


def write_model(w, path):
    """Writes the network; weights are stored as float16."""
    nodes, constants, x = [], [], "image"
    for i, (inputs, outputs, kernel, stride) in enumerate(NETWORK):
        weight = w[f"{i}.weight"].T.reshape(outputs, inputs, kernel, kernel)
        for name, value in (("weight", weight), ("bias", w[f"{i}.bias"])):
            constants.append(numpy_helper.from_array(value.astype(np.float16), f"{i}.{name}.half"))
            nodes.append(helper.make_node("Cast", [f"{i}.{name}.half"], [f"{i}.{name}"], to=TensorProto.FLOAT))
        last = i + 1 == len(NETWORK)
        y = "cells" if last else f"{i}.sum"
        pads = [kernel // 2] * 4
        nodes.append(helper.make_node("Conv", [x, f"{i}.weight", f"{i}.bias"], [y], name=f"{i}", strides=[stride] * 2,
                                      pads=pads))
        if not last:
            x = f"{i}.relu"
            nodes.append(helper.make_node("Relu", [y], [x]))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, "height", "width"])
    cells = helper.make_tensor_value_info("cells", TensorProto.FLOAT, ["batch", CHANNELS, "rows", "columns"])
    graph = helper.make_graph(nodes, "detect", [image], [cells], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 17)],
                              producer_name="troupe examples/detect")
    model.ir_version = 8
    helper.set_model_props(model, {"cell": str(CELL), "classes": "0123456789"})
    path.write_bytes(model.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("digits", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "detect.onnx")
    arguments = parser.parse_args()
    table = np.loadtxt(arguments.digits, delimiter=",", dtype=np.float32)
    kept = np.load(HERE.parent / "digits" / "digits_test.npz")["images"].astype(np.float32)
    held_back = {image.tobytes() for image in kept}
    table = np.stack([row for row in table if row[:64].tobytes() not in held_back])
    print(f"{len(table)} images, {len(held_back)} held back", flush=True)
    random = np.random.default_rng(arguments.seed)
    w = {}
    for i, (inputs, outputs, kernel, _) in enumerate(NETWORK):
        fan = inputs * kernel * kernel
        w[f"{i}.weight"] = (random.standard_normal((fan, outputs)) * np.sqrt(2 / fan)).astype(np.float32)
        w[f"{i}.bias"] = np.zeros(outputs, np.float32)
    w[f"{len(NETWORK) - 1}.bias"][0] = -3  # most cells are empty
    train(w, table[:, :64].reshape(-1, 8, 8), table[:, 64].astype(int), arguments.steps, random)
    write_model(w, arguments.output)


if __name__ == "__main__":
    main()
