#!/usr/bin/env python3
"""Trains the language model of this example on a text and writes generate.onnx beside this file.

usage: train.py TEXT [--steps N] [--seed N]

The committed model is of Isaac Newton's "Opticks" (fourth edition, 1730: in the public domain; README.md says where
Debian has it). Needs NumPy and python3-onnx; a quarter of an hour on one core with OpenBLAS. You need not run it: what
it writes is committed.
"""
import argparse
import pathlib
import re
import time

import numpy as np
import transformer
from export import write_model

HERE = pathlib.Path(__file__).resolve().parent
TOKENS, BATCH = 128, 32
HELD_BACK = 0.05  # of the text, its end: to see what the model has learned rather than copied


def clean(text):
    """Returns the text as paragraphs, a line each, of few kinds of characters; without signs of typesetting."""
    text = text.replace("æ", "ae").replace("Æ", "Ae").replace("œ", "oe")
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = re.sub(r"[_\[\]{}|*+=/\\&<>~^]", "", paragraph.encode("ascii", "ignore").decode()).split()
        if len(words) >= 12 and sum(word[0].isdigit() for word in words) < len(words) / 4:  # no headings, no tables
            paragraphs.append(" ".join(words).replace("--", " - "))
    return "\n".join(paragraphs)


def batches(tokens, random):
    """Yields passages and what follows each of their tokens, forever."""
    while True:
        begins = random.integers(0, len(tokens) - TOKENS - 1, BATCH)
        yield np.stack([tokens[b : b + TOKENS] for b in begins]), np.stack([tokens[b + 1 : b + TOKENS + 1]
                                                                            for b in begins])


class Adam:
    """Adam with decoupled weight decay."""

    def __init__(self, weights):
        self.first = {name: np.zeros_like(w) for name, w in weights.items()}
        self.second = {name: np.zeros_like(w) for name, w in weights.items()}
        self.step = 0

    def update(self, weights, gradients, rate, decay=0.1):
        self.step += 1
        norm = np.sqrt(sum(float(np.sum(g * g)) for g in gradients.values()))
        for name, gradient in gradients.items():
            gradient = gradient * np.float32(min(1, 1 / norm))
            self.first[name] += np.float32(0.1) * (gradient - self.first[name])
            self.second[name] += np.float32(0.01) * (gradient * gradient - self.second[name])
            first = self.first[name] / np.float32(1 - 0.9**self.step)
            second = self.second[name] / np.float32(1 - 0.99**self.step)
            step = first / (np.sqrt(second) + np.float32(1e-8))
            if weights[name].ndim == 2:
                step = step + np.float32(decay) * weights[name]
            weights[name] -= np.float32(rate) * step


def rate_of(step, steps):
    return 3e-3 * min(1, (step + 1) / 100) * (0.05 + 0.95 * 0.5 * (1 + np.cos(np.pi * step / steps)))


def held_back_loss(weights, tokens):
    count = (len(tokens) - 1) // TOKENS
    passages = tokens[: count * TOKENS].reshape(count, TOKENS)
    following = tokens[1 : count * TOKENS + 1].reshape(count, TOKENS)
    losses = [transformer.loss_and_gradients(weights, passages[i : i + 32], following[i : i + 32])[0]
              for i in range(0, count, 32)]
    return float(np.mean(losses))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "generate.onnx")
    arguments = parser.parse_args()
    text = clean(arguments.text.read_text(encoding="utf-8", errors="ignore"))
    characters = sorted(set(text))
    print(f"{len(text)} characters, {len(characters)} kinds: {''.join(characters)!r}", flush=True)
    tokens = np.array([characters.index(c) for c in text], np.int64)
    kept_back = tokens[int(len(tokens) * (1 - HELD_BACK)) :]
    tokens = tokens[: len(tokens) - len(kept_back)]
    random = np.random.default_rng(arguments.seed)
    weights = transformer.initial_weights(len(characters), random)
    adam, started = Adam(weights), time.monotonic()
    for step, (passages, following) in zip(range(arguments.steps), batches(tokens, random)):
        loss, gradients = transformer.loss_and_gradients(weights, passages, following)
        adam.update(weights, gradients, rate_of(step, arguments.steps))
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss:.3f}, {time.monotonic() - started:.0f} s", flush=True)
        if step % 1000 == 999 or step + 1 == arguments.steps:
            print(f"held back: {held_back_loss(weights, kept_back):.3f} nats a character", flush=True)
            write_model(weights, characters, arguments.output)


if __name__ == "__main__":
    main()
