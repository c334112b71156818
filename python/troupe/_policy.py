"""Placement policies that are functions or classes: `@troupe.policy`."""
from __future__ import annotations

import functools
from typing import Any, Callable, List, Sequence, Union

import numpy as np

from troupe import _core
from troupe._own import Own
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


class Policy(Own):
    """A placement policy: a function, or a class with `on_ready`, that `@troupe.policy` has marked. It can still be
    called with a `Problem`."""

    def __init__(self, made_of: Any) -> None:
        super().__init__(made_of, "on_ready")
        self._function: Callable[[Problem], Any] = made_of
        if isinstance(made_of, type):
            self._function = lambda problem: decided(problem, made_of().on_ready)

    def __call__(self, problem: Problem) -> Any:
        return self._function(problem)

    def _place(self, question: "_core.Question") -> np.ndarray:
        """What the engine calls. Raises with the line of the function at which it failed."""
        self._failure = None
        problem = Problem(question)
        try:
            answer = self._function(problem)
        except BaseException as failure:
            raise self._failed(failure) from None
        return self._checked(answer, problem)

    def _checked(self, answer: Any, problem: Problem) -> np.ndarray:
        tasks, devices = problem.times.shape
        refuse = self._refused
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


class Episode(_core.Episode):
    """A schedule that is made one decision after the other, as list schedulers and learners do. Tasks take their
    devices in the order of their ranks: of what is ready, the one after which the most is to come is next. It begins
    when its device has done what it was given before and has what it reads, as in `Problem.makespan`.

    order: the tasks, int64 [tasks]. task: the one that is to be decided; raises `errors.InvalidArgument` after the
    last. done: whether there is none. devices: of each task, int64 [tasks]; -1 where that is not decided. makespan:
    seconds until all that was decided has ended. scale: seconds that observations are divided by, the mean over devices
    of what all tasks take, divided by the number of devices.

    restart(): takes all decisions back.

    allowed(): where the task may run, bool [devices]; nowhere after the last.

    observe(): what is known of the task on each device, float32 [devices, 6], times by `scale`: seconds that it takes
    (0 where it may not run), when what it reads is there, when the device is free, when the task would end; its rank,
    and the part of the tasks that is decided. Zeros after the last.

    put(device): gives the task a device; returns by how many seconds the makespan grows. Raises
    `errors.InvalidArgument` for one on which it may not run, and after the last task.
    """

    def __init__(self, problem: Problem, keep: bool = False) -> None:
        """keep: finds all moves at once, so that the episode goes on after the policy of `problem` has returned."""
        super().__init__(problem._question, keep)


def decided(problem: Problem, on_ready: Callable[[int, Episode], Any]) -> np.ndarray:
    """Returns a device for each task, int64 [tasks], by asking for one after the other."""
    state = Episode(problem)
    while not state.done:
        state.put(on_ready(state.task, state))
    return state.devices


def policy(function: Any) -> Policy:
    """Makes a placement policy of a function that takes a `Problem` and returns a device for each task:

    >>> @troupe.policy
    ... def fastest(problem):
    ...     return problem.times.argmin(axis=1)

    or of a class that decides one task after the other, those first after which the most is to come. Each problem has
    an object of its own, which is asked with the number of a task and the state of the schedule, an `Episode`:

    >>> @troupe.policy
    ... class Soonest:
    ...     def on_ready(self, task, state):
    ...         return numpy.where(state.allowed(), state.observe()[:, 3], numpy.inf).argmin()

    It goes wherever a policy's name goes: `Engine.load(model, policy=fastest)`, `experiments.simulate(…,
    policy=fastest)`. Equal problems must get equal answers: plans are kept. It may be called by any thread, which holds
    the interpreter's lock meanwhile. Raises `errors.InvalidType` for what cannot be called.
    """
    if isinstance(function, Policy):
        return function
    if not callable(function):
        raise InvalidType(f"a policy is a name or a function of a problem, not {function!r}")
    if isinstance(function, type) and not callable(getattr(function, "on_ready", None)):
        raise InvalidType(f"a policy that is a class has a method on_ready(task, state); {function.__name__} has none")
    return Policy(function)
