"""A schedule that is made one decision after the other, as list schedulers and learners do."""
from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np

from troupe._policy import Problem
from troupe.errors import InvalidArgument

FEATURES = ("seconds", "ready", "free", "end", "rank", "progress")


class Episode:
    """Tasks take their devices in the order of their ranks: of what is ready, the one after which the most is to come
    is next. It begins when its device has done what it was given before and has what it reads, as in
    `Problem.makespan`.

    order: the tasks, int64 [tasks]. devices: of each task, int64 [tasks]; -1 where that is not decided. makespan:
    seconds until all that was decided has ended. scale: seconds that observations are divided by, the mean over devices
    of what all tasks take, divided by the number of devices.
    """

    def __init__(self, problem: Problem, moves: Optional[np.ndarray] = None) -> None:
        """moves: `moves_of` the problem, for episodes that go on after its policy has returned."""
        self._problem, self._moves = problem, moves
        self._times, self._edges, self._ranks = problem.times, problem.edges, problem.ranks
        tasks, count = self._times.shape
        self.order: np.ndarray = np.argsort(-self._ranks, kind="stable")
        self._first = np.searchsorted(self._edges[:, 1], np.arange(tasks + 1))  # edges ascend by the task that reads
        finite = np.where(np.isinf(self._times), np.nan, self._times)
        self.scale = max(float(np.nansum(np.nanmean(finite, axis=1))) / count, 1e-12) if tasks else 1.0
        self.restart()

    def restart(self) -> None:
        """Takes all decisions back."""
        tasks, count = self._times.shape
        self.devices: np.ndarray = np.full(tasks, -1, np.int64)
        self.makespan = 0.0
        self._free, self._end = np.zeros(count), np.zeros(tasks)
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self.order)

    @property
    def task(self) -> int:
        """The task that is to be decided."""
        return int(self.order[self._at])

    def allowed(self) -> np.ndarray:
        """Returns where the task may run, bool [devices]; nowhere after the last."""
        if self.done:
            return np.zeros(len(self._free), bool)
        finite: np.ndarray = np.isfinite(self._times[self.task])
        return finite

    def _ready(self) -> np.ndarray:
        """Returns when each device can have all that the task reads, [devices]."""
        ready = np.zeros(len(self._free))
        for edge in range(self._first[self.task], self._first[self.task + 1]):
            source = self._edges[edge, 0]
            on = int(self.devices[source])
            moves = _moves_from(self._problem, edge, on) if self._moves is None else self._moves[edge, on]
            ready = np.maximum(ready, self._end[source] + moves)
        return ready

    def observe(self) -> np.ndarray:
        """Returns what is known of the task on each device, float32 [devices, 6], times by `scale`: seconds that it
        takes (0 where it may not run), when what it reads is there, when the device is free, when the task would end;
        its rank, and the part of the tasks that is decided. Zeros after the last."""
        seen = np.zeros((len(self._free), len(FEATURES)), np.float32)
        if self.done:
            return seen
        seconds = np.where(self.allowed(), self._times[self.task], 0)
        ready = self._ready()
        end = np.maximum(ready, self._free) + seconds
        for column, values in enumerate((seconds, ready, self._free, end, self._ranks[self.task])):
            seen[:, column] = values / self.scale
        seen[:, -1] = self._at / len(self.order)
        return seen

    def put(self, device: int) -> float:
        """Gives the task a device; returns by how many seconds the makespan grows. Raises `errors.InvalidArgument` for
        one on which it may not run, and after the last task."""
        if not (0 <= device < len(self._free)) or not self.allowed()[device]:
            where = np.flatnonzero(self.allowed()).tolist()
            raise InvalidArgument(f"device {device} for a task that may run on {where}")
        task = self.task
        end = max(self._ready()[device], self._free[device]) + self._times[task, device]
        self.devices[task] = device
        self._end[task] = self._free[device] = end
        self._at += 1
        before, self.makespan = self.makespan, max(self.makespan, float(end))
        return self.makespan - before


def _moves_from(problem: Problem, edge: int, device: int) -> List[float]:
    return [problem.move_seconds(edge, device, other) for other in range(problem.times.shape[1])]


def moves_of(problem: Problem) -> np.ndarray:
    """Returns the seconds of each edge from device to device, float64 [edges, devices, devices]."""
    count = problem.times.shape[1]
    rows = [[_moves_from(problem, edge, device) for device in range(count)] for edge in range(len(problem.edges))]
    return np.array(rows, np.float64).reshape(-1, count, count)


def play(problem: Problem, choose: Callable[[np.ndarray, np.ndarray], Any]) -> np.ndarray:
    """Returns a device for each task, int64 [tasks], by what a learner chooses: it makes a policy of one.

    choose: takes what is known of the next task on each device (`Episode.observe`) and where it may run, bool
    [devices]; returns a device.

    >>> @troupe.policy
    ... def soonest(problem):
    ...     return play(problem, lambda seen, allowed: np.where(allowed, seen[:, 3], np.inf).argmin())
    """
    episode = Episode(problem)
    while not episode.done:
        episode.put(int(choose(episode.observe(), episode.allowed())))
    return episode.devices
