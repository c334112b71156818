"""The Python examples do what they say: classes of pictures, boxes, text."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import models
import numpy as np

try:
    from PIL import Image
except ImportError:
    print("Pillow is not installed (Debian: python3-pil)")
    sys.exit(77)

EXAMPLES = models.ROOT / "examples"
for example in ("detect", "generate"):
    sys.path.insert(0, str(EXAMPLES / example))
import detect  # noqa: E402
import generate  # noqa: E402
import scenes  # noqa: E402

import troupe  # noqa: E402


def run(script, *arguments):
    return subprocess.run([sys.executable, EXAMPLES / script, *arguments], capture_output=True, text=True, timeout=300)


def data():
    return np.load(models.DIGITS_DATA)


class Classify(unittest.TestCase):
    def test_pictures_are_what_their_names_say(self):
        pictures = sorted((EXAMPLES / "classify" / "images").glob("*.png"))
        self.assertGreater(len(pictures), 3)
        done = run("classify/classify.py", "--devices", "cpu", "--batch", "2", *pictures)
        self.assertEqual(done.stderr, "")
        self.assertEqual([line.split(": ")[1][0] for line in done.stdout.splitlines()],
                         [path.stem for path in pictures])

    def test_a_data_set_in_files_of_several_formats(self):
        images, labels = data()["images"], data()["labels"]
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for i, image in enumerate(images):
                size, kind = (8, 16, 40, 64)[i % 4], ("png", "bmp", "pgm", "tiff")[i // 4 % 4]
                pixels = (image.astype(np.uint16) * 255 // 16).astype(np.uint8)
                picture = Image.fromarray(pixels).resize((size, size), Image.NEAREST)
                files.append(f"{folder}/{i:03}.{kind}")
                (picture.convert("RGB") if kind == "png" else picture).save(files[-1])
            done = run("classify/classify.py", "--devices", "cpu*2", *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        guesses = [int(line.split(": ")[1][0]) for line in done.stdout.splitlines()]
        self.assertGreater(np.mean(np.array(guesses) == labels), 0.95)

    def test_what_is_no_picture_is_named(self):
        picture = EXAMPLES / "classify" / "images" / "7.png"
        with tempfile.NamedTemporaryFile(suffix=".png") as damaged:
            damaged.write(picture.read_bytes()[:60])
            damaged.flush()
            done = run("classify/classify.py", "--devices", "cpu", "no/such.png", damaged.name, picture)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.split(":")[1].strip() for line in done.stderr.splitlines()],
                         ["no/such.png", damaged.name])
        self.assertIn("7.png: 7", done.stdout)


class Detect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = troupe.Engine("cpu").load(detect.MODEL)

    def test_digits_of_scenes_are_found(self):
        random = np.random.default_rng(11)
        there = found_right = found = boxed = 0
        for number in range(100):
            height, width = 8 * random.integers(8, 14), 8 * random.integers(8, 18)
            canvas, truth = scenes.make_scene(data()["images"], data()["labels"], height, width, random)
            picture = Image.fromarray((canvas * 255).astype(np.uint8))
            results = detect.detect(self.session, picture.crop((0, 0, width - number % 3, height - number % 5)))
            there, found = there + len(truth), found + len(results)
            for box, label in truth:
                near = [digit for _, digit, other in results if detect.overlap(box, other) > 0.5]
                boxed += bool(near)
                found_right += label in near
        self.assertGreater(there, 150)
        self.assertGreater(boxed / there, 0.95)  # part of the objects that are found
        self.assertGreater(boxed / found, 0.95)  # part of the found objects that exist
        self.assertGreater(found_right / there, 0.9)  # and read rightly

    def test_boxes_that_cover_a_surer_one_are_dropped(self):
        boxes = [(0.9, 1, (0, 0, 10, 10)), (0.8, 1, (1, 1, 11, 11)), (0.7, 2, (20, 0, 30, 10))]
        self.assertEqual(detect.best_of(boxes[::-1]), [boxes[0], boxes[2]])
        self.assertEqual(detect.overlap((0, 0, 10, 10), (5, 0, 15, 10)), 1 / 3)
        self.assertEqual(detect.overlap((0, 0, 10, 10), (10, 0, 20, 10)), 0)

    def test_boxes_are_printed_and_drawn(self):
        scene = EXAMPLES / "detect" / "scene.png"
        with tempfile.TemporaryDirectory() as folder:
            done = run("detect/detect.py", scene, "--devices", "cpu", "--output", f"{folder}/found.png")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = [line.split() for line in done.stdout.splitlines()]
            self.assertGreater(len(lines), 2)
            with Image.open(scene) as before, Image.open(f"{folder}/found.png") as after:
                self.assertEqual(after.size, (before.width * 3, before.height * 3))
                left, top = (3 * int(side) for side in lines[0][2:4])
                strip = np.asarray(after)[max(0, top - 4) : top + 8, max(0, left - 4) : left + 8].astype(int)
                self.assertTrue((strip[..., 0] - strip[..., 1] > 100).any())  # the corner of a box
        self.assertEqual(run("detect/detect.py", "no/such.png").returncode, 1)


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = troupe.Engine("cpu").load(generate.MODEL)

    def test_the_cache_gives_what_all_tokens_at_once_give(self):
        letters = self.session.metadata.custom_metadata_map["characters"]
        prompt = "The Rays of Light "
        text = "".join(generate.generate(self.session, prompt, 40, 0, 1))
        self.assertEqual(len(text), 40)
        tokens = np.array([[letters.index(c) for c in prompt + text]], np.int64)
        outputs = self.session.run({"tokens": tokens, **generate.empty_cache(self.session)})
        logits = outputs["logits"][0, len(prompt) - 1 : -1]
        for token, row in zip(tokens[0, len(prompt) :], logits):  # the likeliest, up to rounding
            self.assertLess(row.max() - row[token], 1e-3)

    def test_it_writes_words(self):
        text = "".join(generate.generate(self.session, "The Rays of Light ", 160, 0.5, 3))
        words = re.findall(r"[a-z]+", text.lower())
        known = set("the of and in to that which light rays colours be by as is it are from this or with glass a at "
                    "for".split())
        self.assertGreater(sum(word in known for word in words) / len(words), 0.25, text)

    def test_equal_seeds_write_equal_texts(self):
        written = ["".join(generate.generate(self.session, "If ", 20, 0.9, seed)) for seed in (1, 1, 2)]
        self.assertEqual(written[0], written[1])
        self.assertNotEqual(written[0], written[2])

    def test_the_program_says_how_fast_it_is(self):
        done = run("generate/generate.py", "The Sun", "--steps", "15")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.rstrip("\n")), len("The Sun") + 15)
        self.assertRegex(done.stderr, r"^\d+ tokens per second\n$")
        wrong = run("generate/generate.py", "größer")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("the model does not know ['ß', 'ö']", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
