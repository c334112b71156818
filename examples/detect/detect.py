#!/usr/bin/env python3
"""Finds handwritten digits on pictures of any size, prints their boxes, and draws them.

usage: export PYTHONPATH=build/release/python
       /usr/bin/python3 examples/detect/detect.py examples/detect/scene.png --output found.png

A line a digit: which, how sure, left, top, right, bottom. Needs Pillow (python3-pil). The network says for each cell of
8×8 pixels whether a digit's centre is in it and where its box is; making boxes of that, and dropping those that cover a
better one, is done here.
"""
import argparse
import pathlib
import sys

import numpy as np
from PIL import Image, ImageDraw

import troupe

MODEL = pathlib.Path(__file__).resolve().parent / "detect.onnx"
CELL = 8


def prepared(picture):
    """Returns a picture as the network wants it, [1, 1, rows, columns] from 0 to 1: at its edges filled up to whole
    cells."""
    pixels = np.asarray(picture.convert("L"), np.float32) / 255
    more = [(0, -size % CELL) for size in pixels.shape]
    return np.pad(pixels, more, mode="edge")[None, None]


def boxes_of(cells, least):
    """Returns [(probability, digit, box)] of the cells [15, rows, columns] that are surer than `least`."""
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    sure = sigmoid(cells[0])
    found = []
    for row, column in zip(*np.nonzero(sure > least)):
        cell = cells[:, row, column]
        x, y = (column + sigmoid(cell[1])) * CELL, (row + sigmoid(cell[2])) * CELL
        width, height = np.exp(np.clip(cell[3:5], -4, 4)) * CELL
        box = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        found.append((float(sure[row, column]), int(cell[5:].argmax()), box))
    return found


def overlap(a, b):
    """Returns the share that two boxes have of their union."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return width * height / (area(a) + area(b) - width * height)


def best_of(found, most_overlap=0.4):
    """Returns the boxes that cover no surer one: non-maximum suppression."""
    kept = []
    for one in sorted(found, reverse=True):
        if all(overlap(one[2], other[2]) <= most_overlap for other in kept):
            kept.append(one)
    return kept


def detect(session, picture, least=0.5):
    """Returns the digits on a picture, the surest first."""
    return best_of(boxes_of(session.run({"image": prepared(picture)})["cells"][0], least))


def drawn(picture, found):
    """Returns the picture, three times as large, with the boxes on it."""
    scale = 3
    large = picture.convert("RGB").resize((picture.width * scale, picture.height * scale), Image.NEAREST)
    pen = ImageDraw.Draw(large)
    for probability, digit, box in found:
        left, top, right, bottom = (scale * side for side in box)
        pen.rectangle((left, top, right, bottom), outline=(255, 80, 60), width=2)
        pen.text((left + 4, top + 2), f"{digit}  {probability:.2f}", fill=(255, 220, 60))
    return large


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, help="write the picture with boxes to this file")
    parser.add_argument("--devices", default="all", help="e.g. cpu,vulkan:0 (default: all)")
    parser.add_argument("--least", type=float, default=0.5, help="how sure a detection must be (default: 0.5)")
    arguments = parser.parse_args()
    try:
        picture = Image.open(arguments.picture)
        picture.load()
    except (OSError, Image.DecompressionBombError) as problem:
        sys.exit(f"detect: {arguments.picture}: {problem}")
    with troupe.Engine(arguments.devices.split(",")) as engine:
        found = detect(engine.load(MODEL), picture, arguments.least)
    for probability, digit, box in found:
        print(f"{digit}  {probability:.2f}  " + " ".join(f"{side:.0f}" for side in box))
    if arguments.output:
        drawn(picture, found).save(arguments.output)


if __name__ == "__main__":
    main()
