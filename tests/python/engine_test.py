"""troupe's own words."""
import threading
import unittest

import models
import numpy as np
from onnx import TensorProto

import troupe
from troupe import errors

X = np.array([1, 2, 3], np.float32)


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = troupe.Engine("cpu*2")

    def test_devices_and_counters(self):
        self.assertEqual([d["name"] for d in self.engine.devices()], ["cpu", "cpu#1"])
        before = self.engine.stats()["cpu"]["chunks"]
        self.engine.load(models.unary("Neg", TensorProto.FLOAT)).run({"x": X})
        self.assertEqual(self.engine.stats()["cpu"]["chunks"], before + 1)
        self.assertEqual((self.engine.lost_devices(), self.engine.hosts()), ([], []))

    def test_what_is_not_known_is_named(self):
        for options, text in (
            ({"speed": 1}, "an engine has no option 'speed'; they are: devices, hosts"),
            ({"completion": "never"}, "completion 'never' is not known; known are: device, host"),
            ({"memory": 3}, "option 'memory' cannot be 3"),
            ({"device_timeout": -1}, "a time of -1"),
        ):
            with self.assertRaisesRegex(errors.InvalidArgument, text):
                troupe.Engine("cpu", **options)
        with self.assertRaisesRegex(errors.InvalidArgument, "policy 'best' is not known; known are: single, "):
            self.engine.load(models.unary("Neg", TensorProto.FLOAT), policy="best")
        with self.assertRaisesRegex(errors.InvalidArgument, "no host 'x'|'x'"):
            self.engine.add_host("x")

    def test_runs(self):
        session = self.engine.load(models.unary("Neg", TensorProto.FLOAT))
        session.prepare({"x": X})
        self.assertEqual(session.stats()["runs"], 0)
        with self.assertRaisesRegex(errors.InvalidArgument, "'x'"):
            session.prepare({})
        outputs = session.run({"x": X}, trace=True)
        self.assertEqual(outputs["y"].tolist(), [-1, -2, -3])
        self.assertEqual(outputs.stats["chunks"], 1)
        self.assertIn("traceEvents", outputs.trace.json())
        kept = session.run({"x": X}, keep=["y"])["y"]
        self.assertIsInstance(kept, troupe.OrtValue)
        self.assertEqual(session.run({"x": kept})["y"].tolist(), [1, 2, 3])
        given = X.copy()
        put = self.engine.put(given, "cpu#1")
        given[:] = 99  # it was a copy
        self.assertEqual(session.run({"x": put})["y"].tolist(), [-1, -2, -3])
        array = self.engine.allocate([3])
        array[:] = X
        self.assertEqual(session.run({"x": array})["y"].tolist(), [-1, -2, -3])

    def test_futures(self):
        session = self.engine.load(models.DIGITS, strategy="work-stealing", micro_batch=2)
        images = np.load(models.DIGITS_DATA)["images"][:16, None].astype(np.float32) / 16
        expected = self.engine.load(models.DIGITS).run({"image": images})["scores"]
        pending = [session.submit({"image": images}) for _ in range(20)]
        for one in pending:
            np.testing.assert_allclose(one.result(timeout=60)["scores"], expected, rtol=1e-4, atol=1e-4)
        self.assertEqual(session.queue_stats()["answered"], 20)
        with self.assertRaises(errors.InvalidArgument):
            session.submit({"image": images[0]}).result(timeout=60)
        seen = threading.Event()
        session.run_async({"image": images}).add_done_callback(lambda future: seen.set())
        self.assertTrue(seen.wait(60))

    def test_a_future_can_be_cancelled(self):
        pending = self.engine.load(models.long_loop(1_000_000_000)).run_async({"x": X})
        self.assertTrue(pending.cancel())
        with self.assertRaises(errors.Cancelled):
            pending.result(timeout=30)
        self.assertFalse(pending.cancel())

    def test_bound_sessions_keep_their_state(self):
        session = self.engine.load(models.counter())
        bound = session.bind({"next": "state"}, checkpoint=2, heal=False)
        first = np.zeros(3, np.float32)
        self.assertEqual(bound.run({"state": first, "x": X})["seen"].tolist(), [1, 2, 3])
        first[:] = 99  # its elements were taken
        for step in range(2, 6):
            seen = bound.run({"x": X})["seen"]
            self.assertEqual(seen.tolist(), [step, 2 * step, 3 * step])
            seen[:] = 99  # a copy: the state stays
        self.assertEqual(bound.step, 5)
        self.assertEqual(bound.fetch("next").tolist(), [5, 10, 15])
        with self.assertRaisesRegex(errors.InvalidArgument, "'nothing'"):
            session.bind({"nothing": "state"})

    def test_plans_and_traces(self):
        session = self.engine.load(models.DIGITS, policy="round-robin", dims={"batch": 8})
        feed = {"image": np.zeros((8, 1, 8, 8), np.float32)}
        plan = session.plan(feed)
        self.assertIn("policy round-robin", plan)
        self.assertIn("digraph", session.plan(feed, "dot"))
        with self.assertRaisesRegex(errors.InvalidArgument, "a plan has no format 'svg'; they are: text, json, dot"):
            session.plan(feed, "svg")
        self.assertIn("traceEvents", session.trace(feed).json())
        self.assertIn("hits", session.stats()["plans"])
        self.assertEqual(session.metadata.producer_name, "pytorch")

    def test_choices(self):
        session = self.engine.load(models.DIGITS, strategy="auto", goal="throughput")
        feed = {"image": np.zeros((8, 1, 8, 8), np.float32)}
        self.assertIsNone(session.choice())
        session.run(feed)
        chosen = session.choice()
        self.assertTrue(chosen["possible"])
        self.assertIn(chosen["strategy"], {c["strategy"] for c in session.compare(feed)})


class Maps(unittest.TestCase):
    FEED = {"x": {7: 1.5, -1: 2}, "w": {"b": 3.0, "q": 4.0}}

    def test_a_map_is_given_as_a_dict(self):
        session = troupe.InferenceSession(models.maps(), providers=["cpu"])
        y, z = session.run(None, self.FEED)
        np.testing.assert_array_equal(y, np.array([[2, 1.5]], np.float32))
        np.testing.assert_array_equal(z, np.array([[0, 3]], np.float32))
        self.assertEqual([arg.name for arg in session.get_inputs()], ["x.keys", "x.values", "w.keys", "w.values"])
        own = session.troupe_session
        np.testing.assert_array_equal(own.run(self.FEED)["z"], z)
        np.testing.assert_array_equal(own.submit({**self.FEED, "x": {}}).result()["y"], np.zeros((1, 0), np.float32))

    def test_its_keys_and_values_may_be_given_as_arrays(self):
        session = troupe.InferenceSession(models.maps(), providers=["cpu"])
        apart = {"x.keys": np.array([3, 2]), "x.values": np.array([5, 6], np.float32), "w": self.FEED["w"]}
        np.testing.assert_array_equal(session.run(["y"], apart)[0], np.array([[6, 5]], np.float32))

    def test_a_dict_for_what_is_no_map_is_refused(self):
        session = troupe.InferenceSession(models.DIGITS, providers=["cpu"])
        with self.assertRaisesRegex(errors.InvalidArgument,
                                    "'image' is given a dict, but the model has no map of this name"):
            session.run(None, {"image": {1: 2.0}})


if __name__ == "__main__":
    unittest.main()
