"""Placement policies that are functions: what they are asked, where they run, and what they may not answer."""
import gc
import json
import threading
import time
import unittest
import weakref
from unittest import mock

import models
import numpy as np
from onnx import TensorProto, helper

import troupe
from troupe import errors
from troupe.experiments import Cluster, TaskGraph, simulate

X = {"x": np.ones(3, np.float32)}
DIAMOND = TaskGraph([1e9, 4e9, 2e9, 1e9], [(0, 1), (0, 2), (1, 3), (2, 3)], [1e6, 2e6, 3e6, 4e6],
                    names=["a", "b", "c", "d"])
PAIR = Cluster.of_speeds([2e9, 1e9], bytes_per_s=1e9, latency_s=1e-3, memory_bytes=[1 << 30, 1 << 31])


def chain(length):
    names = ["x", *(f"v{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("Sin", [a], [b], name=b) for a, b in zip(names, names[1:])]
    return models.model(nodes, *[[models.value(n, TensorProto.FLOAT, ["n"])] for n in ("x", "y")])


@troupe.policy
def last(problem):
    """Everything on the last device."""
    return [len(problem.devices) - 1] * len(problem.tasks)


class Problems(unittest.TestCase):
    def asked(self, look, graph=DIAMOND, cluster=PAIR):
        """Returns what `look` makes of the graph's problem."""
        seen = []

        @troupe.policy
        def looks(problem):
            seen.append(look(problem))
            return np.zeros(len(problem.tasks), int)

        simulate(graph, cluster, policy=looks)
        return seen[0]

    def test_a_problem_is_the_graph_in_arrays(self):
        p = self.asked(lambda p: (p.tasks, p.devices, p.times, p.edges, p.bytes, p.moves, p.memory))
        tasks, devices, times, edges, sizes, moves, memory = p
        self.assertEqual((tasks, devices), (["a", "b", "c", "d"], ["h0/p0", "h1/p1"]))
        np.testing.assert_allclose(times, [[0.5, 1], [2, 4], [1, 2], [0.5, 1]], rtol=1e-6)
        self.assertEqual(edges.tolist(), [[0, 1], [0, 2], [1, 3], [2, 3]])
        self.assertEqual(sizes.tolist(), [1e6, 2e6, 3e6, 4e6])
        self.assertEqual(memory.tolist(), [1 << 30, 1 << 31])
        self.assertEqual((times.dtype, edges.dtype, sizes.dtype), (np.float64, np.int64, np.int64))
        with self.assertRaises(ValueError):
            times[0, 0] = 1  # the engine's own memory
        self.assertTrue((moves > sizes / 1e9).all() and (moves < 3 * sizes / 1e9 + 3e-3).all(), moves)

    def test_ranks_and_makespans_are_those_of_the_definition(self):
        times, moves, ranks, both, apart, move = self.asked(lambda p: (
            p.times, p.moves, p.ranks, p.makespan([0, 0, 0, 0]), p.makespan(np.array([0, 0, 1, 0])),
            (p.move_seconds(1, 0, 1), p.move_seconds(3, 1, 0), p.move_seconds(1, 1, 1))))
        mean = times.mean(axis=1)
        half = moves / 2  # two of the four pairs are of different devices
        b, c = mean[1] + half[2] + mean[3], mean[2] + half[3] + mean[3]
        np.testing.assert_allclose(ranks, [mean[0] + max(half[0] + b, half[1] + c), b, c, mean[3]])
        self.assertAlmostEqual(both, 4.0, 5)
        self.assertEqual(move[2], 0)
        self.assertAlmostEqual(apart, max(2.5, 0.5 + move[0] + 2 + move[1]) + 0.5, 5)

    def test_a_problem_is_asked_in_time_or_not_at_all(self):
        problem, times = self.asked(lambda p: (p, p.times))
        self.assertEqual(times.shape, (4, 2))
        self.assertIs(problem.times, times)
        for late in (lambda: problem.makespan([0] * 4), lambda: problem.moves, lambda: problem.move_seconds(0, 0, 1)):
            with self.assertRaisesRegex(errors.InvalidArgument, "while its policy is called"):
                late()
        del problem
        gc.collect()
        self.assertAlmostEqual(times[1, 1], 4, 5)  # the array keeps its memory

    def test_calling_a_policy_costs_little(self):
        whole, own = [], []
        place = troupe.Policy._place

        def timed_place(policy, question):
            begin = time.thread_time()
            answer = place(policy, question)
            whole.append(time.thread_time() - begin)
            return answer

        @troupe.policy
        def timed(problem):
            begin = time.thread_time()
            answer = np.zeros(1000, int)
            own.append(time.thread_time() - begin)
            return answer

        graph = TaskGraph.generate("layers", tasks=1000, seed=3)
        cluster = Cluster.of_speeds(np.linspace(1e9, 4e9, 16), bytes_per_s=1e9)
        with mock.patch.object(troupe.Policy, "_place", timed_place):
            self.assertEqual(simulate(graph, cluster, policy=timed).report["failed"], 0)
        self.assertEqual((len(whole), len(own)), (1, 1))
        self.assertLess(whole[0] - own[0], 0.01)  # seconds of the processor, so that other programs do not count


class Answers(unittest.TestCase):
    def refused(self, answer, *texts):
        def answers(problem):
            return answer(problem) if callable(answer) else answer

        with self.assertRaises(errors.InvalidArgument) as caught:
            simulate(DIAMOND, PAIR, policy=troupe.policy(answers))
        for text in ("the policy 'answers'", "policy_test.py:", *texts):
            self.assertIn(text, str(caught.exception))
        return caught.exception

    def test_what_cannot_be_is_refused_with_the_functions_line(self):
        self.refused([0, 1], "shape (2,)", "each of 4 tasks")
        self.refused(None, "shape ()")
        self.refused([[0, 0, 0, 0]], "shape (1, 4)")
        self.refused([0.0, 0.5, 0, 0], "float64", "whole numbers")
        self.refused(["p0"] * 4, "whole numbers")
        self.refused([0, 0, 2, 0], "device 2 for task 2, 'c'", "0 to 1")
        self.refused([0, -1, 0, 0], "device -1 for task 1, 'b'")
        self.refused([[0], [0, 1]], "it answered")

    def test_what_it_raises_is_named_with_its_line_and_is_the_cause(self):
        def fails(problem):
            return 1 // 0

        failure = self.refused(fails, "ZeroDivisionError", "in fails")
        self.assertIsInstance(failure.__cause__, ZeroDivisionError)
        self.assertEqual(failure.__cause__.__traceback__.tb_next.tb_frame.f_code.co_name, "answers")

    def test_ctrl_c_in_a_policy_is_no_error_of_it(self):
        def interrupted(problem):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            simulate(DIAMOND, PAIR, policy=troupe.policy(interrupted))

    def test_names_and_things_that_are_no_policies(self):
        with self.assertRaisesRegex(errors.InvalidArgument, "'heft'.*no built-in policy has"):
            def heft(problem):
                return last(problem)
            simulate(DIAMOND, PAIR, policy=troupe.policy(heft))
        with self.assertRaisesRegex(errors.InvalidType, "a name or a function of a problem, not 3"):
            simulate(DIAMOND, PAIR, policy=3)
        self.assertEqual(troupe.policy(lambda p: last(p)).name, "lambda")
        self.assertIs(troupe.policy(last), last)
        self.assertIn("policy_test.py", repr(last))
        self.assertEqual(last.__doc__, "Everything on the last device.")

    def test_a_class_that_does_not_decide_or_decides_what_cannot_be(self):
        class Undecided:
            pass

        with self.assertRaisesRegex(errors.InvalidType, "Undecided has none"):
            troupe.policy(Undecided)

        class Outside:
            def on_ready(self, task, state):
                return 2

        with self.assertRaisesRegex(errors.InvalidArgument, r"'Outside'.*device 2 for a task that may run on \[0, 1\]"):
            simulate(DIAMOND, PAIR, policy=troupe.policy(Outside))

        class Failing:
            def on_ready(self, task, state):
                return 1 // task

        with self.assertRaisesRegex(errors.InvalidArgument, r"ZeroDivisionError.*policy_test.py:\d+, in on_ready"):
            simulate(DIAMOND, PAIR, policy=troupe.policy(Failing))


class Sessions(unittest.TestCase):
    """The same functions on real devices, whose plans are made on threads of the engine."""

    @classmethod
    def setUpClass(cls):
        cls.engine = troupe.Engine("cpu*2")

    def test_a_session_runs_nodes_where_a_function_says(self):
        session = self.engine.load(chain(4), policy=last, fuse=False)
        np.testing.assert_allclose(session.run(X)["y"], np.sin(np.sin(np.sin(np.sin(X["x"])))), rtol=1e-5)
        self.assertIn("policy last", session.plan(X))
        devices = json.loads(session.plan(X, "json"))["devices"]
        self.assertEqual([d["nodes"] for d in devices], [0, 4])
        options = troupe.SessionOptions()
        options.add_session_config_entry("troupe.policy", last)
        opened = troupe.InferenceSession(chain(2), options, providers=["cpu*2"])
        self.assertEqual(opened.run(None, X)[0].shape, (3,))

    def test_a_class_decides_task_after_task_with_a_state_for_each_plan(self):
        asked = []

        @troupe.policy
        class InTurns:
            def __init__(self):
                self.calls = 0

            def on_ready(self, task, state):
                asked.append((task, state.task))
                self.calls += 1
                return (self.calls - 1) % 2

        for length in (3, 4):  # two problems
            session = self.engine.load(chain(length), policy=InTurns, fuse=False)
            session.run(X)
            devices = json.loads(session.plan(X, "json"))["devices"]
            self.assertEqual([d["nodes"] for d in devices], [2, length - 2])
        self.assertEqual(asked[:3], [(0, 0), (1, 1), (2, 2)])

    def test_threads_plan_at_once_while_others_hold_the_lock(self):
        calls = []

        @troupe.policy
        def slowly(problem):
            calls.append(threading.get_ident())
            time.sleep(0.02)  # lets go of the interpreter's lock
            return last(problem)

        sessions = [self.engine.load(chain(3), policy=slowly, fuse=False) for _ in range(4)]
        feeds = [{"x": np.ones(n, np.float32)} for n in range(1, 9)]
        pending = [s.run_async(f) for f in feeds for s in sessions]
        busy = sum(i for i in range(2_000_000))  # this thread holds the lock as it likes
        plans = [s.plan(feeds[0]) for s in sessions]
        self.assertEqual([p.result(60)["y"].shape for p in pending], [(n,) for n in range(1, 9) for _ in sessions])
        self.assertTrue(all("policy slowly" in p for p in plans) and busy > 0)
        self.assertGreaterEqual(len(calls), 4)

    def test_strategies_take_functions(self):
        session = self.engine.load(chain(3), policy=last, strategy="model-parallel", fuse=False)
        self.assertEqual(session.submit(X).result(60)["y"].shape, (3,))
        self.assertIn("policy last", session.plan(X))

    def test_a_run_ends_with_what_its_policy_raised(self):
        @troupe.policy
        def hopeless(problem):
            raise LookupError("no idea")

        with self.assertRaisesRegex(errors.InvalidArgument, r"'hopeless' failed: LookupError: no idea \(.*policy_test"):
            self.engine.load(chain(2), policy=hopeless, fuse=False).run(X)

    def test_a_session_keeps_its_policy_and_lets_it_go(self):
        def once(problem):
            return last(problem)

        kept = weakref.ref(once)
        session = self.engine.load(chain(2), policy=once, fuse=False)
        del once
        gc.collect()
        self.assertIsNotNone(kept())
        session.run(X)
        del session
        deadline = time.monotonic() + 30
        while kept() is not None and time.monotonic() < deadline:
            self.engine.load(chain(2)).run(X)  # objects that are let go are released by the next run
            gc.collect()
        self.assertIsNone(kept())


if __name__ == "__main__":
    unittest.main()
