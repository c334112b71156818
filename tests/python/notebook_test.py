"""What notebooks show: pictures of plans, tables of counters, pages of traces, lines of progress. Names in models are
hostile."""
import contextlib
import html.parser
import io
import time
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

import models
import numpy as np
from onnx import TensorProto, helper

import troupe
from troupe import _progress

SVG = "{http://www.w3.org/2000/svg}"
X = {"x": np.zeros(3, np.float32)}
HOSTILE = '</script></title></text><script>alert(1)</script>"\'>&<img src=x onerror=alert(1)>'


def hostile_model():
    nodes = [helper.make_node("Neg", ["x"], ["y"], name=HOSTILE),
             helper.make_node("Sin", ["y"], [HOSTILE], name=HOSTILE + "2")]
    graph = helper.make_graph(
        nodes, HOSTILE, [models.value("x", TensorProto.FLOAT, ["n"])], [models.value(HOSTILE, TensorProto.FLOAT, ["n"])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", 13)], producer_name=HOSTILE)
    model.ir_version = 8
    return model.SerializeToString()


class Tags(html.parser.HTMLParser):
    """The elements of a piece of HTML."""

    def __init__(self, text):
        super().__init__()
        self.names, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)

    def handle_data(self, data):
        self.words.append(data)


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = troupe.Engine("cpu*2")

    def test_a_plan_is_drawn(self):
        session = self.engine.load(models.DIGITS, policy="round-robin")
        plan = session.plan({"image": np.zeros((4, 1, 8, 8), np.float32)})
        self.assertTrue(plan.startswith("plan "))
        picture = ElementTree.fromstring(plan._repr_svg_())
        words = [element.text for element in picture.iter(SVG + "text")]
        self.assertIn("cpu#1", words)
        chunks = plan.count("\nchunk ")
        self.assertGreater(chunks, 2)
        self.assertEqual(sum(word.startswith("chunk ") for word in words), chunks)
        self.assertTrue(any(word.endswith("KiB") for word in words), words)  # values that move between devices
        self.assertIn("Conv", " ".join(words))
        for element in picture.iter(SVG + "rect"):
            if element.get("width") != "100%":
                self.assertLessEqual(float(element.get("x")) + float(element.get("width")), float(picture.get("width")))
                self.assertLessEqual(float(element.get("y")) + float(element.get("height")),
                                     float(picture.get("height")))
        self.assertEqual(Tags(plan._repr_html_()).names[-3:], ["details", "summary", "pre"])

    def test_every_replica_is_drawn(self):
        session = self.engine.load(models.DIGITS, strategy="data-parallel")
        for form in ("text", "json", "dot"):
            picture = session.plan({"image": np.zeros((4, 1, 8, 8), np.float32)}, form)._repr_svg_()
            words = [element.text for element in ElementTree.fromstring(picture).iter(SVG + "text")]
            self.assertEqual(sum(word.startswith("chunk 0") for word in words), 2)

    def test_a_large_plan_is_cut(self):
        nodes = [helper.make_node("Sin", [f"v{i}"], [f"v{i + 1}"]) for i in range(400)]
        ends = [[models.value(name, TensorProto.FLOAT, ["n"])] for name in ("v0", "v400")]
        session = self.engine.load(models.model(nodes, *ends), policy="round-robin", fuse=False)
        picture = session.plan({"v0": np.zeros(3, np.float32)})._repr_svg_()
        self.assertIn("and 100 more chunks",
                      [element.text for element in ElementTree.fromstring(picture).iter(SVG + "text")])

    def test_hostile_names_stay_names(self):
        session = self.engine.load(hostile_model(), fuse=False)
        plan = session.plan(X)
        shown = plan._repr_html_()
        self.assertIn("&lt;script&gt;", shown)
        self.assertEqual(set(Tags(shown).names) - {"svg", "rect", "line", "text", "g", "title", "path", "details",
                                                   "summary", "pre"}, set())
        ElementTree.fromstring(plan._repr_svg_())
        trace = session.trace(X)
        self.assertEqual(Tags(trace._repr_html_()).names, ["iframe"])
        page = Tags(trace.html())
        self.assertNotIn("img", page.names)
        self.assertNotIn("alert(1)", [word.strip() for word in page.words])
        table = troupe.Table({HOSTILE: HOSTILE, "more": {HOSTILE: [{HOSTILE: 1}]}})
        self.assertEqual(set(Tags(table._repr_html_()).names), {"table", "tr", "th", "td"})
        self.assertEqual(set(Tags(troupe.Rows([table])._repr_html_()).names), {"table", "tr", "th", "td"})

    def test_counters_are_tables(self):
        session = self.engine.load(models.unary("Neg", TensorProto.FLOAT))
        outputs = session.run(X)
        for counters in (session.stats(), session.queue_stats(), self.engine.stats(), outputs.stats):
            self.assertIn("<th style='text-align:left'>", counters._repr_html_())
        for rows in (self.engine.devices(), session.compare(X), session.trace(X).findings()):
            self.assertIn("<table><tr>", rows._repr_html_())
        self.assertEqual(self.engine.devices()._repr_html_().count("<tr>"), 3)


class ProgressLines(unittest.TestCase):
    def setUp(self):
        for name, value in (("_PATIENCE", 0.05), ("_PERIOD", 0.02)):
            change = mock.patch.object(_progress, name, value)
            change.start()
            self.addCleanup(change.stop)
        self.addCleanup(troupe.show_progress, None)

    def shown(self, work):
        screen = io.StringIO()
        with contextlib.redirect_stderr(screen):
            work()
        return screen.getvalue()

    def slow(self):
        with _progress.Progress("loading big.onnx", lambda: ", 3 of 9 MB to far"):
            time.sleep(0.3)

    def test_what_takes_long_shows_a_line_which_then_goes(self):
        troupe.show_progress(True)
        text = self.shown(self.slow)
        self.assertIn("\rloading big.onnx … 0 s, 3 of 9 MB to far", text)
        self.assertEqual(text.split("\r")[-2:], [" " * len("loading big.onnx … 0 s, 3 of 9 MB to far"), ""])

    def test_nothing_is_shown_where_nobody_looks(self):
        self.assertEqual(self.shown(self.slow), "")  # not a terminal
        troupe.show_progress(False)
        self.assertEqual(self.shown(self.slow), "")

    def test_nothing_is_shown_of_what_is_short(self):
        troupe.show_progress(True)
        session = troupe.InferenceSession(models.DIGITS, providers=["cpu"])
        image = {"image": np.zeros((1, 1, 8, 8), np.float32)}
        session.run(None, image)
        with mock.patch.object(_progress, "_PATIENCE", 60):
            self.assertEqual(self.shown(lambda: troupe.InferenceSession(models.DIGITS,
                                                                        providers=["cpu"]).run(None, image)), "")

    def test_first_runs_show_it_and_others_do_not(self):
        troupe.show_progress(True)
        session = troupe.Engine("cpu").load(models.long_loop(100_000))
        text = self.shown(lambda: session.run(X))
        self.assertIn("first run of a model … 0 s", text)
        self.assertEqual(self.shown(lambda: session.run(X)), "")

    def test_file_names_do_not_steer_terminals(self):
        troupe.show_progress(True)

        def slow():
            with _progress.Progress("loading \x1b[2Jx\n.onnx"):
                time.sleep(0.1)

        self.assertIn("loading ?[2Jx?.onnx", self.shown(slow))


if __name__ == "__main__":
    unittest.main()
