"""What is simulated, and on what: task graphs and clusters."""
from __future__ import annotations

import functools
import json
import math
import mmap
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy as np

from troupe import _core
from troupe._engine import Engine
from troupe._policy import Problem, policy
from troupe.errors import Error, InvalidArgument, NoSuchFile, NotImplemented

Path = Union[str, "os.PathLike[str]"]
_WITHOUT_COST = {"memory_bytes_per_s": 1e21, "input_bytes_per_s": 1e21, "launch_s": 0, "barrier_s": 0, "chunk_s": 0,
                 "submit_s": 0, "wake_s": 0}


class Cluster:
    """Devices, the hosts that they are in, and the links between, as a cluster file says it (src/sim/README.md).

    text: such a file's content, which may be a platform of SimGrid (XML), or the same as a dict. profile_file: measured
    profiles, for devices that are "like" one; else this user's. Raises `errors.InvalidArgument`, naming the place, for
    what cannot be.
    """

    def __init__(self, text: Union[str, Mapping[str, Any]], *, profile_file: Path = "") -> None:
        self.text: str = text if isinstance(text, str) else json.dumps(text)
        self._options: Dict[str, Any] = {"cluster": self.text, "profile_file": os.fspath(profile_file)}
        self.devices: List[str] = [d["name"] for d in _core.cluster_devices(self._options)]

    @staticmethod
    def load(path: Path, *, profile_file: Path = "") -> "Cluster":
        """Reads a cluster file. Raises `errors.NoSuchFile`, and as `Cluster` does."""
        return Cluster(_text_of(path), profile_file=profile_file)

    @staticmethod
    def capture(devices: Union[Engine, str, Sequence[str]] = ("all",), **options: Any) -> "Cluster":
        """Returns the devices of this machine as they are: those of an engine, or those that `Engine(devices,
        **options)` opens for it. Speeds are those of their profiles (`troupe profile`), else typical ones."""
        if isinstance(devices, Engine):
            return Cluster(devices._core.cluster())
        with Engine(devices, **options) as engine:
            return Cluster(engine._core.cluster())

    @staticmethod
    def of_speeds(
        speeds: Sequence[float],
        *,
        bytes_per_s: float = math.inf,
        latency_s: float = 0,
        memory_bytes: Union[int, Sequence[int]] = 1 << 40,
    ) -> "Cluster":
        """Makes one of the literature: device i does `speeds[i]` operations a second and nothing else takes time but
        moves, which take `latency_s` and their bytes by `bytes_per_s` of the sender's and of the receiver's link.
        Without a limit (inf) devices share memory, and moves take nothing."""
        room = [memory_bytes] * len(speeds) if isinstance(memory_bytes, int) else list(memory_bytes)
        if not len(speeds) or len(room) != len(speeds):
            raise InvalidArgument(f"{len(speeds)} speeds and {len(room)} sizes of memory are no devices")
        devices = [{"name": f"p{i}", "kind": "cpu", "units": 1, "memory_bytes": int(bytes_),
                    "profile": {**_WITHOUT_COST, "float32": float(speed)}}
                   for i, (speed, bytes_) in enumerate(zip(speeds, room))]
        if math.isinf(bytes_per_s) and latency_s == 0:
            hosts: List[Dict[str, Any]] = [{"devices": devices}]
        else:
            link = {"bytes_per_s": min(bytes_per_s, 1e21), "latency_s": latency_s}
            hosts = [{"name": f"h{i}", "link": link, "devices": [d]} for i, d in enumerate(devices)]
        return Cluster({"version": 1, "coordinator_s": 0, "hosts": hosts})

    def save(self, path: Path) -> None:
        """Writes a file that `troupe simulate --cluster` takes."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text)

    def __repr__(self) -> str:
        shown = ", ".join(self.devices[:4]) + (", …" if len(self.devices) > 4 else "")
        return f"<Cluster of {len(self.devices)} devices: {shown}>"


class TaskGraph:
    """Tasks and the values between them.

    work: operations of each task, [tasks]. edges: the task that makes a value and the one that reads it, int [edges,
    2]; tasks are numbered so that the first is the smaller. bytes: of each edge, [edges]; one number for all. seconds:
    what each task takes on each device of the cluster, [tasks, devices], instead of its work by their speeds (at most
    20,000 tasks). names: unique. Raises `errors.InvalidArgument` for arrays that do not fit each other; a graph that
    cannot be is refused when it is simulated, naming the task or edge.
    """

    def __init__(
        self,
        work: Any = None,
        edges: Any = (),
        bytes: Any = 1e6,  # noqa: A002: what it is
        *,
        seconds: Any = None,
        names: Optional[Sequence[str]] = None,
        name: str = "tasks",
    ) -> None:
        if work is None and seconds is None:
            raise InvalidArgument("a task graph needs work or seconds")
        self.name = name
        self.seconds: Optional[np.ndarray] = None if seconds is None else np.array(seconds, np.float64)
        count = len(self.seconds if work is None and self.seconds is not None else np.atleast_1d(work))
        self.work: np.ndarray = np.zeros(count) if work is None else np.array(work, np.float64)
        self.edges: np.ndarray = np.array(edges, np.int64).reshape(-1, 2)
        self.bytes: np.ndarray = np.array(np.broadcast_to(np.asarray(bytes, np.float64), len(self.edges)))
        self.names: List[str] = [f"task_{i}" for i in range(count)] if names is None else list(names)
        if self.work.shape != (count,) or len(self.names) != count:
            raise InvalidArgument(f"work of shape {self.work.shape} and {len(self.names)} names are not those of "
                                  f"{count} tasks")
        if self.seconds is not None and (self.seconds.ndim != 2 or len(self.seconds) != count):
            raise InvalidArgument(f"seconds of shape {self.seconds.shape} are not those of {count} tasks on devices, "
                                  "[tasks, devices]")
        if self.edges.size and (self.edges.min() < 0 or self.edges.max() >= count):
            raise InvalidArgument(f"edges join tasks 0 to {count - 1}, and these {self.edges.min()} to "
                                  f"{self.edges.max()}")

    @staticmethod
    def generate(kind: str, **parameters: Any) -> "TaskGraph":
        """Makes a graph of the literature: "fork-join", "cholesky", "lu", "fft", "stencil", "montage", "layers",
        "cybershake", "epigenomics", "inspiral", "sipht", with the parameters of src/schedules/README.md (`out_degree`
        for out-degree)."""
        given = "".join(f",{key.replace('_', '-')}={value}" for key, value in parameters.items())
        return TaskGraph._of_columns(_core.read_task_graph(f"graph:{kind}{given}"))

    @staticmethod
    def load(path: Path) -> "TaskGraph":
        """Reads a file: WfFormat 1.4 or 1.5 (WfCommons), DAX (Pegasus), STG, or a directed graph of DOT
        (src/schedules/README.md). A second of a file is 1e9 operations. Raises `errors.InvalidArgument`, naming the
        place, `errors.NoSuchFile`."""
        return TaskGraph._of_columns(_core.read_task_graph("graph:" + os.path.abspath(path)))

    @staticmethod
    def of_model(model: Path, cluster: Cluster, *, dims: Optional[Mapping[str, int]] = None, **how: Any) -> "TaskGraph":
        """Returns the nodes of an ONNX model as tasks, after the rewrite, with the seconds that are predicted for the
        devices of a cluster. dims: values of symbolic dims, else 1. how: as `simulate`. Raises
        `errors.NotImplemented` if some node cannot run on some device."""
        from troupe.experiments._simulation import simulate  # which takes task graphs

        seen: List[Problem] = []

        @policy
        def look(problem: Problem) -> Any:
            problem.tasks, problem.edges, problem.bytes
            seen.append(problem)
            return problem.times.argmin(axis=1)

        simulate(model, cluster, policy=look, dims=dims, **how)
        first = seen[0]
        if np.isinf(first.times).any():
            task, device = np.argwhere(np.isinf(first.times))[0]
            raise NotImplemented(f"'{first.tasks[task]}' cannot run on '{first.devices[device]}'")
        names = [f"{name}#{i}" if first.tasks.count(name) > 1 else name for i, name in enumerate(first.tasks)]
        return TaskGraph(edges=first.edges, bytes=first.bytes, seconds=first.times, names=names,
                         name=os.path.basename(os.fspath(model)))

    @staticmethod
    def _of_columns(columns: "_core._GraphColumns") -> "TaskGraph":
        name, names, work, edges, sizes = columns
        return TaskGraph(work, edges, sizes, names=names, name=name)

    def save(self, path: Path) -> None:
        """Writes a file that `load` reads, as its name ends: .json, WfFormat 1.5; .stg; .dot or .gv. Raises
        `errors.InvalidArgument` for what the format does not have (STG: bytes, parts of seconds; all: `seconds`)."""
        if self.seconds is not None:
            raise InvalidArgument(f"the graph '{self.name}' has seconds on devices, and files have work alone")
        _core.save_task_graph(self._columns, os.fspath(path))

    @property
    def _columns(self) -> "_core._GraphColumns":
        return (self.name, self.names, self.work, self.edges, self.bytes)

    @functools.cached_property
    def _model(self) -> "_core.Model":
        return _core.model_of(self._columns)

    def __repr__(self) -> str:
        return f"<TaskGraph '{self.name}': {len(self.work)} tasks, {len(self.edges)} edges>"


Workload = Union[TaskGraph, str, "os.PathLike[str]"]


def _text_of(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as failure:
        raise NoSuchFile(f"'{os.fspath(path)}' cannot be read: {failure.strerror}") from None


def model_of(workload: Workload) -> "_core.Model":
    if isinstance(workload, TaskGraph):
        return workload._model
    path = os.fspath(workload)
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _core.parse_model(content, os.path.dirname(path) or ".")
    except (OSError, ValueError) as failure:  # ValueError: an empty file cannot be mapped
        if isinstance(failure, Error):
            raise
        raise NoSuchFile(f"the model '{path}' cannot be read: {failure}") from None
