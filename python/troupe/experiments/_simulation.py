"""Simulations, and what came of them."""
from __future__ import annotations

import functools
import html
import json
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from troupe import _core
from troupe._notebook import Table, Trace
from troupe._own import Own
from troupe._policy import Policy
from troupe._strategy import Strategy
from troupe.errors import EPFail, Error, InvalidArgument
from troupe.experiments._workload import Cluster, Path, TaskGraph, Workload, model_of

Placement = Union[str, Policy]
_NODE, _UPLOAD = 0, 1  # of `traced_work::what`


def _arrivals(when: Union[Path, Sequence[float], np.ndarray], requests: Optional[int]) -> Dict[str, Any]:
    """Returns options of when requests come: "closed:N", "poisson:PER_SECOND", a file, or times in seconds."""
    if not isinstance(when, (str, os.PathLike)):
        times = [float(t) for t in when]
        return {"times_s": times, "requests": len(times) if requests is None else requests}
    if isinstance(when, os.PathLike) or os.path.exists(when):
        listed = _core.read_arrivals(os.fspath(when))
        return {**listed, "requests": len(listed["times_s"]) if requests is None else requests}
    kind, _, number = when.partition(":")
    options: Dict[str, Any] = {"requests": 1 if requests is None else requests}
    try:
        if kind == "closed":
            return {**options, "in_flight": int(number)}
        if kind == "poisson":
            return {**options, "per_second": float(number)}
    except ValueError:
        pass
    raise InvalidArgument(f"arrivals='{when}': closed:N, poisson:PER_SECOND, a file or a list of times in seconds is "
                          "needed")


class _Work(NamedTuple):
    """What devices did, by device and time."""

    kind: np.ndarray
    names: np.ndarray
    device: np.ndarray
    bytes: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    @staticmethod
    def of(trace: Optional["_core.Trace"], devices: Sequence[str]) -> "_Work":
        none = np.zeros(0)
        kind, names, on, sizes, begin, end = trace.work() if trace else (none, [], [], none, none, none)
        return _Work(kind, np.array(names, str), _numbers(on, devices), sizes, begin, end)

    @property
    def is_task(self) -> np.ndarray:
        return np.equal(self.kind, _NODE)


class Simulation:
    """What came of a simulation. `_repr_html_` shows the first request's Gantt chart.

    makespan: seconds from the first request to the last answer. bounds: seconds that no schedule of one request can
    beat: "path", the longest one with each task on its fastest device, and "area", all work spread; 0 if they were not
    computed. devices, tasks: names, by the numbers in the arrays below. report: all else, as `troupe simulate --json`
    has it: latencies, memory, links, the critical path.
    """

    def __init__(self, core: "_core.Simulation", cluster: Cluster, tasks: Optional[List[str]]) -> None:
        self._core = core
        self.report = Table(json.loads(core.json()))
        self.makespan: float = self.report["makespan_ms"] * 1e-3
        self.bounds = {name: self.report["bounds_ms"][name] * 1e-3 for name in ("path", "area")}
        self.devices: List[str] = cluster.devices
        trace = core.trace()
        self.trace: Optional[Trace] = None if trace is None else Trace(trace)
        self._work = _Work.of(trace, self.devices)
        self.tasks: List[str] = tasks or list(dict.fromkeys(self._work.names[self._work.is_task].tolist()))

    @functools.cached_property
    def schedule(self) -> np.ndarray:
        """When which task ran where, of the first request: a structured array in the order of the tasks, with task and
        device (numbers into `tasks` and `devices`), begin and end (seconds)."""
        work, mine = self._work, self._work.is_task
        rows = np.zeros(int(mine.sum()), [("task", np.int64), ("device", np.int64), ("begin", float), ("end", float)])
        rows["task"] = _numbers(work.names[mine].tolist(), self.tasks)
        rows["device"], rows["begin"], rows["end"] = work.device[mine], work.begin[mine], work.end[mine]
        return np.sort(rows, order=["task", "begin"])

    @functools.cached_property
    def transfers(self) -> np.ndarray:
        """What moved, of the first request: a structured array in the order of time, with value (a name), device (a
        number), received (whether it came to the device, else it left), bytes, begin and end. What devices read where
        it is, as in one host's memory, does not move."""
        work, moved = self._work, ~self._work.is_task
        values = work.names[moved]
        rows = np.zeros(len(values), [("value", values.dtype), ("device", np.int64), ("received", bool),
                                      ("bytes", np.int64), ("begin", float), ("end", float)])
        rows["value"], rows["device"], rows["received"] = values, work.device[moved], work.kind[moved] == _UPLOAD
        rows["bytes"], rows["begin"], rows["end"] = work.bytes[moved], work.begin[moved], work.end[moved]
        return rows[np.argsort(rows["begin"], kind="stable")]

    @functools.cached_property
    def utilisation(self) -> np.ndarray:
        """The part of the makespan in which each device worked, float64 [devices]."""
        busy = {d["name"]: d["utilisation"] for d in self.report["devices"]}
        return np.array([busy.get(name, 0.0) for name in self.devices])

    def to_pandas(self) -> Any:
        """Returns the schedule as a DataFrame, with names instead of numbers. Raises ImportError without pandas."""
        import pandas

        frame = pandas.DataFrame(self.schedule)
        frame["task"] = [self.tasks[i] for i in frame["task"]]
        frame["device"] = [self.devices[i] for i in frame["device"]]
        return frame

    def save(self, path: Path) -> None:
        """Writes the first request's trace as the name ends: .html, a page; .paje, for ViTE and StarVZ; .rec, StarPU's
        tasks.rec; .et, Chakra's, NAME.0.et … for each device; else JSON for ui.perfetto.dev."""
        if self.trace is None:
            raise InvalidArgument("nothing ran that could be drawn: " + str(self.report["first_failure"]))
        self.trace.save(path)

    def __repr__(self) -> str:
        bounds = " and ".join(f"{bound:.6g} s" for bound in self.bounds.values())
        return f"<Simulation: {self.makespan:.6g} s, bounds {bounds}>"

    def __str__(self) -> str:
        return self._core.text()

    def _repr_html_(self) -> str:
        head = html.escape(repr(self))
        return f"<p>{head}</p>" + (self.trace._repr_html_() if self.trace else "")


def _numbers(names: Sequence[str], known: Sequence[str]) -> np.ndarray:
    number = {name: i for i, name in enumerate(known)}
    return np.array([number.get(name, -1) for name in names], np.int64)


def simulate(
    workload: Workload,
    cluster: Cluster,
    *,
    policy: Placement = "heft",
    strategy: Union[str, Strategy] = "none",
    arrivals: Union[Path, Sequence[float], np.ndarray] = "closed:1",
    requests: Optional[int] = None,
    warm_up: int = 0,
    noise: float = 0,
    seed: int = 1,
    inputs: Optional[Mapping[str, Any]] = None,
    dims: Optional[Mapping[str, int]] = None,
    losses: Sequence[Tuple[str, float, float]] = (),
    speeds: Sequence[Tuple[str, float, float]] = (),
    **options: Any,
) -> Simulation:
    """Runs a task graph, or the ONNX model of a file, on a cluster in virtual time.

    policy: a name (`Engine.load`) or a `@troupe.policy`. strategy: a name or a `@troupe.strategy`. arrivals:
    "closed:N", N requests in flight; "poisson:PER_SECOND"; times in seconds; or a file: a time a line, or CSV with the
    columns arrival (seconds), rows (of a batch, which needs a strategy) and deadline (seconds after the arrival).
    requests: how many, else 1 or one for each time; warm_up: how many before them that do not count. noise: standard
    deviation of the logarithm of each chunk's time; seed: of noise and arrivals. inputs: of a model, of which shapes
    count, else zeros; dims: values of symbolic dims, else 1. losses: (device, seconds, seconds until one comes back; 0:
    never). speeds: (device, seconds, percent of its speed from then on). options: others of `Engine.load`.

    Raises `errors.InvalidArgument` for what cannot be, among it what a policy answers or raises, with the line of its
    function; what loading and planning raise; `errors.EPFail` if no request had an answer.
    """
    session: Dict[str, Any] = {"policy": policy, "strategy": strategy, "dims": dict(dims or {}), **options}
    how: Dict[str, Any] = {
        **cluster._options, **_arrivals(arrivals, requests), "session": session, "warm_up": warm_up, "noise": noise,
        "seed": seed, "losses": [(device, at * 1e3, back * 1e3) for device, at, back in losses],
        "speeds": [(device, at * 1e3, percent) for device, at, percent in speeds],
    }
    tasks = workload.names if isinstance(workload, TaskGraph) else None
    if isinstance(workload, TaskGraph) and workload.seconds is not None:
        if workload.seconds.shape[1] != len(cluster.devices):
            raise InvalidArgument(f"the graph '{workload.name}' has seconds for {workload.seconds.shape[1]} devices, "
                                  f"the cluster has {len(cluster.devices)}")
        how["task_seconds"] = workload.seconds.ravel().tolist()

    def simulated() -> Simulation:
        made = Simulation(_core.simulate(model_of(workload), dict(inputs or {}), how), cluster, tasks)
        if made.report["failed"] == made.report["requests"]:
            raise EPFail(f"no request had an answer: {made.report['first_failure']}")
        return made

    return _asked([policy, strategy], simulated)


def _asked(given: Sequence[Any], work: Callable[[], Simulation]) -> Simulation:
    """Does work that asks a policy or a strategy; what that raised is the cause of the error."""
    asked = [own for own in given if isinstance(own, Own)]
    for own in asked:
        own._failure = None
    try:
        return work()
    except Error as error:
        failure = next((own._failure for own in asked if own._failure is not None), None)
        if failure is not None and not isinstance(failure, Exception):
            raise failure from None  # Ctrl-C
        raise error from failure
