"""Policies that decide one task after the other by what is known of it."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np

from troupe._policy import Episode, Problem, decided

FEATURES = ("seconds", "ready", "free", "end", "rank", "progress")  # the columns of `Episode.observe`


def play(problem: Problem, choose: Callable[[np.ndarray, np.ndarray], Any]) -> np.ndarray:
    """Returns a device for each task, int64 [tasks], by what a learner chooses: it makes a policy of one.

    choose: takes what is known of the next task on each device (`Episode.observe`) and where it may run, bool
    [devices]; returns a device.

    >>> @troupe.policy
    ... def soonest(problem):
    ...     return play(problem, lambda seen, allowed: np.where(allowed, seen[:, 3], np.inf).argmin())
    """
    return decided(problem, lambda task, state: choose(state.observe(), state.allowed()))


__all__ = ["FEATURES", "Episode", "play"]
