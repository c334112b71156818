#!/usr/bin/env python3
"""Says which digit is on each picture: files of any format that Pillow reads (python3-pil), of any size, white on
black.

usage: PYTHONPATH=build/release/python /usr/bin/python3 examples/classify/classify.py examples/classify/images/*.png

Decoding, scaling and what the scores mean are here, in Python; the network is that of examples/digits.
"""
import argparse
import pathlib
import sys

import numpy as np
from PIL import Image

import troupe

MODEL = pathlib.Path(__file__).resolve().parent.parent / "digits" / "digits.onnx"


def prepared(path):
    """Returns a picture as the network wants it: grey, 8×8, from 0 to 1."""
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L").resize((8, 8), Image.BOX), np.float32)[None] / 255


def probabilities(scores):
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="+", type=pathlib.Path)
    parser.add_argument("--devices", default="all", help="e.g. cpu,vulkan:0 (default: all)")
    parser.add_argument("--batch", type=int, default=64, help="pictures that go to the network at once (default: 64)")
    arguments = parser.parse_args()
    readable, failed = [], False
    for path in arguments.pictures:
        try:
            readable.append((path, prepared(path)))
        except (OSError, Image.DecompressionBombError) as problem:
            print(f"classify: {path}: {problem}", file=sys.stderr)
            failed = True
    with troupe.Engine(arguments.devices.split(",")) as engine:
        session = engine.load(MODEL)
        for begin in range(0, len(readable), arguments.batch):
            part = readable[begin : begin + arguments.batch]
            scores = session.run({"image": np.stack([image for _, image in part])})["scores"]
            for (path, _), chances in zip(part, probabilities(scores)):
                best = np.argsort(-chances)[:2]
                print(f"{path}: {best[0]} ({chances[best[0]]:.1%}), else {best[1]} ({chances[best[1]]:.1%})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
