#!/usr/bin/env python3
"""Writes like Isaac Newton, a character at a time, and says how many a second.

usage: PYTHONPATH=build/release/python /usr/bin/python3 examples/generate/generate.py "The Rays of Light "

The network is a small transformer with a cache of keys and values. The cache is bound: the outputs of a step are inputs
of the next, stay on their device and grow there, so that a step costs one character and not all that came before.
"""
import argparse
import pathlib
import sys
import time

import numpy as np

import troupe

MODEL = pathlib.Path(__file__).resolve().parent / "generate.onnx"


def empty_cache(session):
    """Returns what the bound inputs are at first: no tokens yet."""
    return {
        given.name: np.zeros([0 if isinstance(size, str) else size for size in given.shape], np.float32)
        for given in session.inputs
        if given.name.startswith("past.")
    }


def chosen(logits, temperature, random):
    """Returns the next token: drawn by its probability; the likeliest one if the temperature is 0."""
    if temperature == 0:
        return int(logits.argmax())
    raised = np.exp((logits - logits.max()) / temperature)
    return int(random.choice(len(logits), p=raised / raised.sum()))


def generate(session, prompt, steps, temperature, seed):
    """Yields the characters that follow the prompt."""
    letters = session.metadata.custom_metadata_map["characters"]
    unknown = sorted(set(prompt) - set(letters))
    if not prompt or unknown:
        raise ValueError(f"the model does not know {unknown}" if unknown else "the prompt is empty")
    random = np.random.default_rng(seed)
    cache = empty_cache(session)
    decoder = session.bind({name.replace("past.", "present."): name for name in cache})
    logits = decoder.run({"tokens": np.array([[letters.index(c) for c in prompt]], np.int64), **cache})["logits"]
    for _ in range(steps):
        token = chosen(logits[0, -1], temperature, random)
        yield letters[token]
        logits = decoder.run({"tokens": np.array([[token]], np.int64)})["logits"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt", nargs="?", default="The Rays of Light ")
    parser.add_argument("--steps", type=int, default=400, help="characters to write (default: 400)")
    parser.add_argument("--temperature", type=float, default=0.7,
                        help="0: always the likeliest character (default: 0.7)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", default="cpu",
                        help="e.g. vulkan:0 (default: cpu, the fastest for so small a network)")
    arguments = parser.parse_args()
    with troupe.Engine(arguments.devices.split(",")) as engine:
        session = engine.load(MODEL)
        print(arguments.prompt, end="", flush=True)
        began, written = time.monotonic(), 0
        try:
            for character in generate(session, arguments.prompt, arguments.steps, arguments.temperature,
                                      arguments.seed):
                print(character, end="", flush=True)
                written += 1
        except ValueError as problem:
            sys.exit(f"\ngenerate: {problem}")
        print(flush=True)
        print(f"{written / (time.monotonic() - began):.0f} tokens per second", file=sys.stderr)


if __name__ == "__main__":
    main()
