#!/usr/bin/env python3
"""Trains the digits classifier and writes digits.onnx and digits_test.npz beside this file.

Data: the "Optical Recognition of Handwritten Digits" test set that scikit-learn ships (1,797 images of 8×8 pixels, 17
grey levels). A fifth, stratified, is held back: the network never sees it, and it is what examples/digits classifies.
Needs PyTorch and scikit-learn; a minute on any CPU. The two files it writes are committed, so you need not run it.
"""
import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = pathlib.Path(__file__).resolve().parent


def make_network():
    nn = torch.nn

    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(*block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 48), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(48, 10))


def shifted(images):
    """Moves each image by up to one pixel each way: the only augmentation."""
    dy, dx = np.random.randint(-1, 2, 2)
    return torch.roll(images, (int(dy), int(dx)), (2, 3))


def train(images, labels, epochs=60):
    network = make_network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, epochs=epochs,
                                                   steps_per_epoch=len(images) // 64 + 1)
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(64):
            loss = torch.nn.functional.cross_entropy(network(shifted(images[batch])), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return network.eval()


def main():
    torch.manual_seed(7)
    np.random.seed(7)
    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(digits.images, digits.target, test_size=0.2, random_state=7,
                                                        stratify=digits.target)
    as_input = lambda x: torch.tensor(x, dtype=torch.float32)[:, None] / 16
    network = train(as_input(train_x), torch.tensor(train_y))
    with torch.no_grad():
        correct = (network(as_input(test_x)).argmax(1).numpy() == test_y).sum()
    print(f"{correct} of {len(test_y)} held-back images right in PyTorch")
    torch.onnx.export(network, as_input(test_x[:1]), HERE / "digits.onnx", input_names=["image"],
                      output_names=["scores"], dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
                      opset_version=17, dynamo=False)
    np.savez_compressed(HERE / "digits_test.npz", images=test_x.astype(np.uint8), labels=test_y.astype(np.int64))


if __name__ == "__main__":
    main()
