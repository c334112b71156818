"""Scheduling as a Gymnasium environment (https://gymnasium.farama.org): the ready-list decision, for learners.

>>> import troupe.gym
>>> from troupe.experiments import Cluster, TaskGraph
>>> env = troupe.gym.Scheduling([TaskGraph.generate("layers", seed=s) for s in range(100)],
...                             Cluster.of_speeds([4e9, 1e9, 1e9], bytes_per_s=1e8))
>>> seen, info = env.reset(seed=1)
>>> seen, reward, ended, _, info = env.step(0)

What was learned becomes a policy by `troupe.experiments.play`: in simulations and on real devices. Needs the package
gymnasium; importing this module without it raises ImportError.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import gymnasium
import numpy as np

from troupe._policy import Problem, policy
from troupe.experiments import Cluster, Episode, TaskGraph, simulate
from troupe.experiments._episode import FEATURES
from troupe.experiments._workload import Workload


class Scheduling(gymnasium.Env):
    """An episode is a schedule: a step gives the next task of the ready list, in the order of ranks, a device.

    Observations: float32 [devices, 6], `troupe.experiments.Episode.observe`. Actions: a device. Rewards: minus the time
    by which the makespan grows, in parts of `Episode.scale`, so that their sum is minus the makespan. Infos:
    action_mask, int8 [devices], on which the task may run; makespan, seconds so far; devices, of each task, int64
    [tasks], -1 where that is not decided. A device on which the task may not run raises `errors.InvalidArgument`.
    """

    metadata: Dict[str, Any] = {"render_modes": []}

    def __init__(self, workloads: Union[Workload, Sequence[Workload]], cluster: Cluster, **how: Any) -> None:
        """workloads: task graphs, or files of ONNX models; each episode takes one at random (`reset(seed=…)`), or that
        of the number `reset(options={"workload": …})`. how: as `troupe.experiments.simulate`."""
        listed = [workloads] if isinstance(workloads, (TaskGraph, str, os.PathLike)) else list(workloads)
        self._workloads: List[Workload] = listed
        self._cluster, self._how = cluster, how
        self._episodes: Dict[int, Episode] = {}
        self._now: Optional[Episode] = None
        count = len(cluster.devices)
        self.action_space = gymnasium.spaces.Discrete(count)
        self.observation_space = gymnasium.spaces.Box(0, np.inf, (count, len(FEATURES)), np.float32)

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None
    ) -> Tuple[np.ndarray, Dict[str, Any]]:
        super().reset(seed=seed)
        given = (options or {}).get("workload")
        number = int(self.np_random.integers(len(self._workloads))) if given is None else int(given)
        if number not in self._episodes:
            self._episodes[number] = self._episode_of(self._workloads[number])
        self._now = self._episodes[number]
        self._now.restart()
        return self._now.observe(), self._info(self._now)

    def step(self, action: Any) -> Tuple[np.ndarray, float, bool, bool, Dict[str, Any]]:
        assert self._now is not None, "reset() comes before step()"
        grown = self._now.put(int(action))
        return self._now.observe(), -grown / self._now.scale, self._now.done, False, self._info(self._now)

    @staticmethod
    def _info(episode: Episode) -> Dict[str, Any]:
        return {"action_mask": episode.allowed().astype(np.int8), "makespan": episode.makespan,
                "devices": episode.devices}

    def _episode_of(self, workload: Workload) -> Episode:
        """Asks the engine, as a policy does, what tasks and moves take."""
        made: List[Episode] = []

        @policy
        def look(problem: Problem) -> Any:
            made.append(Episode(problem, keep=True))
            return np.argmin(problem.times, axis=1)

        simulate(workload, self._cluster, policy=look, **self._how)
        return made[0]
