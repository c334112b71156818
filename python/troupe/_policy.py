"""Placement policies that are functions: `@troupe.policy`."""
from __future__ import annotations

import functools
import traceback
from typing import Any, Callable, List, Optional, Sequence, Union

import numpy as np

from troupe import _core
from troupe.errors import InvalidArgument, InvalidType


class Problem:
    """What a policy is asked: tasks, devices, and what one takes on the other.

    Tasks and devices are numbers from 0. Tasks are numbered so that each comes after those whose values it reads:
    `range(len(problem.tasks))` is an order in which they could run. Arrays are made when they are first asked for, and
    stay; the methods can be called while the policy is, not later.
    """

    def __init__(self, question: "_core.Question") -> None:
        self._question = question

    @functools.cached_property
    def tasks(self) -> List[str]:
        """The tasks' names, for people."""
        return self._question.task_names()

    @functools.cached_property
    def devices(self) -> List[str]:
        """The devices' names."""
        return self._question.device_names()

    @functools.cached_property
    def times(self) -> np.ndarray:
        """Seconds of each task on each device, float64 [tasks, devices]; infinity where it may not run. Read only: it
        is the engine's own memory."""
        return self._question.times()

    @functools.cached_property
    def edges(self) -> np.ndarray:
        """The task that makes a value and the one that reads it, int64 [edges, 2], ascending by the second."""
        return self._question.edges()

    @functools.cached_property
    def bytes(self) -> np.ndarray:
        """Bytes of each edge's value, int64 [edges]."""
        return self._question.bytes()

    @functools.cached_property
    def moves(self) -> np.ndarray:
        """Seconds of each edge between two devices, the mean over pairs of them, float64 [edges]."""
        return self._question.moves()

    @functools.cached_property
    def ranks(self) -> np.ndarray:
        """Seconds from each task's begin to the end of all, by mean times and moves, float64 [tasks]: the upward rank
        of HEFT (Topcuoglu, Hariri, Wu 2002), in which a move counts by the share of pairs of devices that are two.
        Read only."""
        return self._question.ranks()

    @functools.cached_property
    def memory(self) -> np.ndarray:
        """Bytes that may be filled on each device, int64 [devices]."""
        return np.array(self._question.memory(), np.int64)

    def move_seconds(self, edge: int, source: int, target: int) -> float:
        """Returns the seconds that an edge's value takes from one device to another; 0 if they are one."""
        return self._question.move_seconds(edge, source, target)

    def makespan(self, devices: Union[Sequence[int], np.ndarray]) -> float:
        """Returns when all would have ended, in seconds, with these devices, int [tasks]: tasks begin in the order of
        their ranks, each when its device has done those before it and has what it reads."""
        return self._question.makespan(np.asarray(devices))


class Policy:
    """A placement policy: a function that `@troupe.policy` has marked. It can still be called as what it is."""

    def __init__(self, function: Callable[[Problem], Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._failure: Optional[BaseException] = None  # that the last call raised
        code = getattr(function, "__code__", None)
        self.name: str = getattr(function, "__name__", type(function).__name__).strip("<>")
        self._where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)

    def __call__(self, problem: Problem) -> Any:
        return self._function(problem)

    def __repr__(self) -> str:
        return f"<policy {self.name} ({self._where})>"

    def _place(self, question: "_core.Question") -> np.ndarray:
        """What the engine calls. Raises with the line of the function at which it failed."""
        self._failure = None
        problem = Problem(question)
        try:
            answer = self._function(problem)
        except BaseException as failure:
            self._failure = failure
            raise InvalidArgument(f"{type(failure).__name__}: {failure} ({self._line_of(failure)})") from None
        return self._checked(answer, problem)

    def _line_of(self, failure: BaseException) -> str:
        """Returns the last line of the function's own file that the failure came through."""
        frames = traceback.extract_tb(failure.__traceback__)
        file = self._where.rpartition(":")[0]
        mine = [frame for frame in frames if frame.filename == file] or frames[-1:]
        return f"{mine[-1].filename}:{mine[-1].lineno}, in {mine[-1].name}"

    def _checked(self, answer: Any, problem: Problem) -> np.ndarray:
        tasks, devices = problem.times.shape

        def refuse(what: str) -> InvalidArgument:
            return InvalidArgument(f"it answered {what} ({self._where})")

        try:
            given = np.asarray(answer)
        except ValueError as failure:
            raise refuse(f"no array: {failure}") from None
        if given.shape != (tasks,):
            raise refuse(f"an array of shape {given.shape}; a device for each of {tasks} tasks is needed, "
                         f"shape ({tasks},)")
        if tasks and given.dtype.kind not in "iu":
            raise refuse(f"an array of {given.dtype}; devices are whole numbers")
        outside = np.flatnonzero((given < 0) | (given >= devices))
        if outside.size:
            task = outside[0]
            raise refuse(f"device {given[task]} for task {task}, '{problem.tasks[task]}'; there are {devices}: 0 to "
                         f"{devices - 1}")
        forbidden = np.flatnonzero(np.isinf(problem.times[np.arange(tasks), given.astype(np.int64)]))
        if forbidden.size:
            task = forbidden[0]
            raise refuse(f"'{problem.devices[given[task]]}' for task {task}, '{problem.tasks[task]}', which may not "
                         "run there: its time in `problem.times` is infinite")
        return given.astype(np.uint32)


def policy(function: Union[Policy, Callable[[Problem], Any]]) -> Policy:
    """Makes a placement policy of a function that takes a `Problem` and returns a device for each task:

    >>> @troupe.policy
    ... def fastest(problem):
    ...     return problem.times.argmin(axis=1)

    It goes wherever a policy's name goes: `Engine.load(model, policy=fastest)`, `experiments.simulate(…,
    policy=fastest)`. Equal problems must get equal answers: plans are kept. It may be called by any thread, which holds
    the interpreter's lock meanwhile. Raises `errors.InvalidType` for what cannot be called.
    """
    if isinstance(function, Policy):
        return function
    if not callable(function):
        raise InvalidType(f"a policy is a name or a function of a problem, not {function!r}")
    return Policy(function)
