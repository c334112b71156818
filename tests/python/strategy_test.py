"""Strategies that are classes or functions: what they are asked, in simulations and on real devices."""
import unittest

import models
import numpy as np

import troupe
from troupe import errors
from troupe.experiments import Cluster, simulate

PAIR = Cluster.of_speeds([2e9, 1e9], bytes_per_s=1e9)


def played(strategy, requests=6, **how):
    """Returns a simulation of requests that come together."""
    return simulate(models.DIGITS, PAIR, policy="single", strategy=strategy, arrivals=[0.0] * requests, **how)


class Strategies(unittest.TestCase):
    def test_a_class_is_asked_for_each_idle_replica_and_has_a_state_for_each_stream(self):
        seen = []

        @troupe.strategy
        class Noted:
            """Takes all."""

            def __init__(self):
                self.calls = 0

            def on_idle(self, replica, queue):
                self.calls += 1
                seen.append((self.calls, replica, queue))
                return queue.rows

        for _ in range(2):
            self.assertEqual(played(Noted).report["failed"], 0)
        self.assertEqual([calls for calls, _, _ in seen].count(1), 2)
        _, replica, queue = seen[0]
        self.assertEqual((replica.number, replica.living, replica.free, replica.in_flight), (0, True, True, 0))
        self.assertEqual((queue.rows, len(queue.replicas), queue.replicas[0] == replica), (1, 2, True))
        self.assertGreater(queue.replicas[1].per_row, replica.per_row)  # half as fast
        self.assertGreater(max(q.waiting for _, _, q in seen), 1)
        self.assertEqual((Noted.name, Noted.__doc__), ("Noted", "Takes all."))
        self.assertIn("strategy_test.py", repr(Noted))

    def test_what_is_left_goes_to_the_next_that_is_idle(self):
        def last_alone(replica, queue):
            return queue.rows if replica.number == 1 else None

        result = played(troupe.strategy(last_alone))
        self.assertEqual((result.report["failed"], result.utilisation[0]), (0, 0))
        self.assertGreater(result.utilisation[1], 0.5)

    def test_requests_are_answered_on_real_devices(self):
        taken = []

        @troupe.strategy
        class InTurns:
            def __init__(self):
                self.next = 0

            def on_idle(self, replica, queue):
                if replica.number != self.next:
                    return 0
                self.next = 1 - self.next
                taken.append(replica.number)
                return min(queue.rows, 3) if queue.may_be_cut else queue.rows

        image = np.random.default_rng(1).random((8, 1, 8, 8), np.float32)
        with troupe.Engine("cpu*2") as engine:
            expected = engine.load(models.DIGITS, strategy="none").run({"image": image})["scores"]
            session = engine.load(models.DIGITS, strategy=InTurns)
            for pending in [session.submit({"image": image}) for _ in range(5)]:
                np.testing.assert_allclose(pending.result(60)["scores"], expected, rtol=1e-5, atol=1e-6)
            self.assertGreater(taken.count(0), 0)
            self.assertLessEqual(abs(taken.count(0) - taken.count(1)), 1)


class Answers(unittest.TestCase):
    def failure(self, on_idle):
        with self.assertRaises(errors.Error) as caught:
            played(troupe.strategy(on_idle))
        self.assertIn(f"the strategy '{on_idle.__name__}' failed", str(caught.exception))
        return caught.exception

    def test_what_it_raises_is_named_with_its_line(self):
        def fails(replica, queue):
            return 1 // 0

        self.assertRegex(str(self.failure(fails)), r"ZeroDivisionError: .*strategy_test.py:\d+, in fails")

        class Unmade:
            def __init__(self):
                raise LookupError("no idea")

            def on_idle(self, replica, queue):
                return queue.rows

        with self.assertRaisesRegex(errors.Error, r"the strategy 'Unmade'.*LookupError: no idea"):
            played(troupe.strategy(Unmade))

    def test_what_cannot_be_is_refused(self):
        for answer, text in ((-1, "-1 rows; 1 are next"), (2, "2 rows"), (0.5, "0.5; a number of rows is needed"),
                             ("all", "'all'")):
            def answers(replica, queue, answer=answer):
                return answer

            self.assertIn(text, str(self.failure(answers)))

        def never(replica, queue):
            return 0

        with self.assertRaisesRegex(errors.Error, "although every replica is idle"):
            played(troupe.strategy(never))

    def test_ctrl_c_in_a_strategy_is_no_error_of_it(self):
        def interrupted(replica, queue):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            played(troupe.strategy(interrupted))

    def test_things_that_are_no_strategies(self):
        class Idle:
            pass

        for wrong, text in ((3, "not 3"), (Idle, "Idle has none")):
            with self.assertRaisesRegex(errors.InvalidType, text):
                troupe.strategy(wrong)
        with self.assertRaisesRegex(errors.InvalidType, "not 3"):
            played(3)


if __name__ == "__main__":
    unittest.main()
