"""The ready-list decision, one step after the other: by hand, as a policy, and as a Gymnasium environment."""
import importlib
import sys
import types
import unittest
from unittest import mock

import models
import numpy as np

import troupe
from troupe import errors
from troupe.experiments import Cluster, Episode, TaskGraph, play, simulate

try:
    import gymnasium
except ImportError:
    gymnasium = None

CLUSTER = Cluster.of_speeds([4e9, 1e9, 1e9], bytes_per_s=1e8)
FORK = TaskGraph([1e9, 2e9, 2e9, 1e9], [(0, 1), (0, 2), (1, 3), (2, 3)], 1e8, name="fork")


def soonest(seen, allowed):
    return np.where(allowed, seen[:, 3], np.inf).argmin()


def stand_in():
    """What `troupe.gym` takes of the package gymnasium, for machines that do not have it."""
    made = types.ModuleType("gymnasium")

    class Env:
        def reset(self, *, seed=None, options=None):
            if seed is not None or not hasattr(self, "np_random"):
                self.np_random = np.random.default_rng(seed)

    made.Env = Env
    made.spaces = types.SimpleNamespace(Discrete=lambda n: types.SimpleNamespace(n=n),
                                        Box=lambda low, high, shape, dtype: types.SimpleNamespace(shape=shape))
    return made


class Episodes(unittest.TestCase):
    def test_a_schedule_is_made_by_hand(self):
        steps = []

        @troupe.policy
        def by_hand(problem):
            episode = Episode(problem)
            self.assertEqual(episode.order[[0, 3]].tolist(), [0, 3])
            for device in (1, 1, 2, 1):
                seen = episode.observe()
                self.assertEqual((seen.shape, seen.dtype), ((3, 6), np.float32))
                np.testing.assert_allclose(seen[:, 0] * episode.scale, problem.times[episode.task], rtol=1e-5)
                expected = np.maximum(seen[:, 1], seen[:, 2]) + seen[:, 0]
                np.testing.assert_allclose(seen[:, 3], expected, rtol=1e-5)
                steps.append((episode.task, episode.put(device)))
            self.assertTrue(episode.done)
            self.assertEqual((episode.observe().any(), episode.allowed().any()), (False, False))
            with self.assertRaisesRegex(errors.InvalidArgument, r"device 0 for a task that may run on \[\]"):
                episode.put(0)
            self.assertAlmostEqual(sum(grown for _, grown in steps), episode.makespan)
            self.assertAlmostEqual(episode.makespan, problem.makespan(episode.devices), 9)
            answer = episode.devices
            episode.restart()
            self.assertEqual((episode.makespan, episode.devices.tolist()), (0, [-1] * 4))
            return answer

        result = simulate(FORK, CLUSTER, policy=by_hand)
        self.assertEqual(sorted(result.schedule["device"].tolist()), [1, 1, 1, 2])
        # The second of the two waits a second for its value, and the last a second for what that makes.
        np.testing.assert_allclose([grown for _, grown in steps], [1, 2, 1, 2], atol=2e-2)

    def test_the_makespan_is_the_engines(self):
        for seed in range(20):
            choices = np.random.default_rng(seed)

            @troupe.policy
            def any_device(problem):
                answer = play(problem, lambda seen, allowed: choices.choice(np.flatnonzero(allowed)))
                episode = Episode(problem)
                for task in episode.order:
                    episode.put(int(answer[task]))
                self.assertAlmostEqual(episode.makespan / problem.makespan(answer), 1, 9)
                return answer

            simulate(TaskGraph.generate("layers", tasks=30, seed=seed), CLUSTER, policy=any_device)

    def test_what_chooses_is_a_policy(self):
        @troupe.policy
        def chosen(problem):
            return play(problem, soonest)

        graph = TaskGraph.generate("cholesky", tiles=5)
        self.assertLess(simulate(graph, CLUSTER, policy=chosen).makespan,
                        simulate(graph, CLUSTER, policy="round-robin").makespan)
        with troupe.Engine("cpu*2") as engine:
            feed = {"image": np.zeros((1, 1, 8, 8), np.float32)}
            self.assertEqual(engine.load(models.DIGITS, policy=chosen).run(feed)["scores"].shape[0], 1)


class Environment(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(sys.modules, {"gymnasium": gymnasium or stand_in()})
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(sys.modules.pop, "troupe.gym", None)
        self.gym = importlib.import_module("troupe.gym")

    def test_an_episode_is_a_schedule(self):
        env = self.gym.Scheduling(FORK, CLUSTER)
        self.assertEqual((env.action_space.n, env.observation_space.shape), (3, (3, 6)))
        seen, info = env.reset(seed=3)
        total, ended, steps = 0.0, False, 0
        while not ended:
            self.assertEqual(info["action_mask"].tolist(), [1, 1, 1])
            seen, reward, ended, cut, info = env.step(soonest(seen, info["action_mask"]))
            total, steps = total + reward, steps + 1
            self.assertFalse(cut)
        self.assertEqual((steps, (info["devices"] >= 0).all(), info["action_mask"].any()), (4, True, False))
        self.assertAlmostEqual(-total * env._now.scale, info["makespan"])
        self.assertAlmostEqual(simulate(FORK, CLUSTER, policy=lambda p: info["devices"]).makespan, info["makespan"], 2)
        with self.assertRaises(errors.InvalidArgument):
            env.step(0)

    def test_episodes_follow_their_seed(self):
        env = self.gym.Scheduling([TaskGraph.generate("layers", tasks=n, seed=n) for n in (5, 10, 15)], CLUSTER)
        drawn = [[len(env.reset(seed=s)[1]["devices"])] + [len(env.reset()[1]["devices"]) for _ in range(8)]
                 for s in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertEqual(len(env.reset(options={"workload": 2})[1]["devices"]), 15)

    @unittest.skipUnless(gymnasium, "the package gymnasium is not installed")
    def test_gymnasium_accepts_it(self):
        from gymnasium.utils.env_checker import check_env

        check_env(self.gym.Scheduling(FORK, CLUSTER), skip_render_check=True)


if __name__ == "__main__":
    unittest.main()
