"""Strategies that are classes or functions: `@troupe.strategy`."""
from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from troupe._own import Own
from troupe.errors import InvalidType


class Replica(NamedTuple):
    """A copy of the model on a device of its own. A piece of n rows is expected to take it `fixed` + n * `per_row`
    seconds."""

    number: int
    living: bool  # its devices are there
    free: bool  # it takes one more piece now
    in_flight: int  # pieces that it has
    own_rows: int  # that wait for this one alone
    busy: float  # seconds until it has done the pieces that it has
    fixed: float
    per_row: float


class Queue(NamedTuple):
    """Rows that wait for a replica."""

    rows: int  # that are next, at least 1
    may_be_cut: bool  # whether a replica may take fewer of them
    waiting: int  # all rows that any replica may take
    now: float  # seconds, from any beginning
    replicas: List[Replica]  # all of them


OnIdle = Callable[[Replica, Queue], Optional[int]]
Choose = Callable[[Sequence[Tuple[Any, ...]], int, bool, int, float], Optional[Tuple[int, int]]]


class Strategy(Own):
    """Which replica takes which rows of the requests that wait: a class with `on_idle`, or a function, that
    `@troupe.strategy` has marked."""

    def __init__(self, made_of: Any) -> None:
        super().__init__(made_of, "on_idle")
        self._made_of = made_of

    def _open(self) -> Choose:
        """What the engine calls for a new stream of requests; it calls what that returns for each decision. Both raise
        with the line of the strategy at which it failed."""
        try:
            on_idle: OnIdle = self._made_of().on_idle if isinstance(self._made_of, type) else self._made_of
        except BaseException as failure:
            raise self._failed(failure) from None

        def choose(
            replicas: Sequence[Tuple[Any, ...]], rows: int, may_be_cut: bool, waiting: int, now: float
        ) -> Optional[Tuple[int, int]]:
            queue = Queue(rows, may_be_cut, waiting, now, [Replica(*figures) for figures in replicas])
            for replica in queue.replicas:
                taken = self._taken(on_idle, replica, queue) if replica.free else 0
                if taken > 0:
                    return replica.number, taken
            return None

        return choose

    def _taken(self, on_idle: OnIdle, replica: Replica, queue: Queue) -> int:
        try:
            answer = on_idle(replica, queue)
        except BaseException as failure:
            raise self._failed(failure) from None
        if answer is None:
            return 0
        try:
            taken = int(answer.__index__())
        except AttributeError:
            raise self._refused(f"{answer!r}; a number of rows is needed") from None
        if not 0 <= taken <= queue.rows:
            raise self._refused(f"{taken} rows; {queue.rows} are next")
        return taken


def strategy(made_of: Any) -> Strategy:
    """Makes a strategy of a class whose `on_idle` is asked, for each replica that is free in turn, how many of the next
    rows it takes; 0 or None: it leaves them to others, or until something changes.

    >>> @troupe.strategy
    ... class Thrifty:  # wakes a device only if those before it would keep the rows waiting for long
    ...     def on_idle(self, replica, queue):
    ...         soon = [r for r in queue.replicas[:replica.number] if r.living and r.busy < 3 * r.per_row * queue.rows]
    ...         return 0 if soon else queue.rows

    Each stream of requests has an object of its own. A function of a replica and a queue is a strategy without state.
    If a request cannot be cut (`Queue.may_be_cut`), a replica that takes rows takes them all. Rows must not wait while
    all replicas are idle.

    It goes wherever a strategy's name goes: `Engine.load(model, strategy=FirstWakes)`, `experiments.simulate(…,
    strategy=FirstWakes)`. Simulations repeat only what depends on the arguments alone. It is called by threads of the
    engine, which hold the interpreter's lock meanwhile. Raises `errors.InvalidType` for what cannot be called.
    """
    if isinstance(made_of, Strategy):
        return made_of
    if isinstance(made_of, type) and not callable(getattr(made_of, "on_idle", None)):
        raise InvalidType(f"a strategy that is a class has a method on_idle(replica, queue); {made_of.__name__} has "
                          "none")
    if not callable(made_of):
        raise InvalidType(f"a strategy is a name, or a class or function of a replica and a queue, not {made_of!r}")
    return Strategy(made_of)
