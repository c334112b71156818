"""Scenes: handwritten digits of several sizes on a canvas, with their boxes. For training and for tests; nothing here
detects."""
import numpy as np


def resized(image, height, width):
    """Returns a small image at another size, linearly interpolated."""

    def along(old, new):
        at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
        low = np.minimum(at.astype(int), old - 2)
        matrix = np.zeros((new, old), np.float32)
        matrix[np.arange(new), low] = low + 1 - at
        matrix[np.arange(new), low + 1] += at - low
        return matrix

    return along(image.shape[0], height) @ image @ along(image.shape[1], width).T


def ink_box(image):
    """Returns left, top, right, bottom of what is drawn."""
    rows, columns = np.nonzero(image.max(1) > 0.3)[0], np.nonzero(image.max(0) > 0.3)[0]
    return np.float32([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])


def overlap(a, b):
    """Returns the share that two boxes have of their union."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return width * height / (area(a) + area(b) - width * height)


def make_scene(images, labels, height, width, random, digits=6):
    """Returns a canvas [height, width] from 0 to 1 with up to `digits` of the images (8×8, 0 to 16), and [(box,
    label)]."""
    ground, noise = random.uniform(0, 0.25), random.uniform(0, 0.06)
    canvas = ground + noise * random.standard_normal((height, width)).astype(np.float32)
    found = []
    for _ in range(random.integers(1, digits + 1)):
        which, size = random.integers(len(images)), int(random.integers(16, 33))
        drawn = np.clip(resized(images[which] / np.float32(16), size, int(size * random.uniform(0.8, 1.2))), 0, 1)
        top, left = (random.integers(0, all_of - part + 1) for all_of, part in zip((height, width), drawn.shape))
        box = ink_box(drawn) + np.float32([left, top, left, top])
        near = np.float32([-3, -3, 3, 3])
        if any(overlap(box + near, other + near) > 0 for other, _ in found):
            continue  # digits do not touch
        part = canvas[top : top + drawn.shape[0], left : left + drawn.shape[1]]
        np.maximum(part, drawn * random.uniform(0.6, 1), out=part)
        found.append((box, int(labels[which])))
    return np.clip(canvas, 0, 1).astype(np.float32), found
