"""Programs of others, as npm has them, with troupe in the place of ONNX Runtime's library: an OCR package reads a page
of text, and sherpa-onnx hears when somebody speaks. They must say the same as with their own library.

usage: programs.py BUILD_FOLDER ocr|sherpa [--devices NAMES]        exit status 77: npm does not give the packages
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

from packages import install

HERE = pathlib.Path(__file__).resolve().parent
LINES = ["The quick brown fox jumps over", "the lazy dog and counts 12345.", "Every device runs a part of it."]


def draw_page(file):
    """Draws the lines in Pillow's own letters, enlarged."""
    from PIL import Image, ImageDraw, ImageFont

    page = Image.new("RGB", (220, 70), "white")
    for row, line in enumerate(LINES):
        ImageDraw.Draw(page).text((10, 8 + row * 19), line, fill="black", font=ImageFont.load_default())
    page.resize((880, 280), Image.BICUBIC).save(file)


def output(command):
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("program", choices=["ocr", "sherpa"])
    parser.add_argument("--devices", default="cpu")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.png"
        if args.program == "ocr":
            packages = install(args.build, "@gutenye/ocr-node@1.4.8", "onnxruntime-node@1.30.0")
            draw_page(page)
            command = ["node", HERE / "ocr.mjs", packages, page]
        else:
            packages = install(args.build, "sherpa-onnx-node@1.13.8", "@ricky0123/vad-web@0.0.31")
            command = ["node", HERE / "vad.cjs", packages]
        own, own_s = output(command)
        ours, our_s = output([args.build / "bin/troupe", "exec", "--devices", args.devices, "--", *command])
    print(f"{ours}the whole program: {own_s:.1f} s with its own library, {our_s:.1f} s with troupe")
    if not own.strip() or own != ours:
        sys.exit(f"its own library says:\n{own}")


if __name__ == "__main__":
    main()
