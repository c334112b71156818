"""troupe's own words: engines, sessions, bound sessions, and what they say of themselves."""
from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import json
import logging
import os
import threading
import weakref
from typing import Any, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from troupe import _core
from troupe._notebook import Plan, Rows, Table, Trace
from troupe._options import _refuse
from troupe._progress import Progress
from troupe._values import ModelMetadata, NodeArg, OrtValue, is_tensor, numpy_type_of, onnx_type_of
from troupe.errors import InvalidArgument

Feed = Mapping[str, Any]
_FIRST_WITHOUT_NUMPY = 16  # of ONNX's element types: bfloat16, small floats, integers of less than 8 bits
_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()


class Outputs(Dict[str, Any]):
    """A run's outputs by name: arrays; `OrtValue` for those that were to be kept on their device, and for types that
    NumPy does not have. `stats`: what the run cost. `trace`: if it was asked for."""

    def __init__(self, result: "_core.Result", session: "_core.Session") -> None:
        values = result.values(session)
        if any(v.kept or v.onnx_type >= _FIRST_WITHOUT_NUMPY for v in values.values()):
            super().__init__((name, _array_or_value(v)) for name, v in values.items())
        else:
            super().__init__(result.arrays())
        self._result = result

    @property
    def stats(self) -> Table:
        return Table(self._result.stats())

    @property
    def trace(self) -> Optional[Trace]:
        trace = self._result.trace()
        return None if trace is None else Trace(trace)


def _array_or_value(value: "_core.Value") -> Any:
    return OrtValue(value) if value.kept or value.onnx_type >= _FIRST_WITHOUT_NUMPY else value.numpy()


class Pending(concurrent.futures.Future):
    """A run under way: `result()` gives its `Outputs` or raises; `cancel()` asks for its end, which is then
    `errors.Cancelled`."""

    _stop: Optional["_core.Stop"] = None

    def cancel(self) -> bool:
        """Asks for the end of the run; returns False if it has ended already."""
        if self.done() or self._stop is None:
            return False
        self._stop.request()
        return True


_NOTHING = contextlib.nullcontext()


def _weights_under_way(engine: "Engine") -> str:
    """Returns how far the weights have come that are on their way to other hosts, ", 120 of 400 MB to far"; empty if
    none are."""
    hosts = [h for h in engine._core.hosts() if h["load_bytes"] > 0]
    if not hosts:
        return ""
    came, total = (sum(h[which] for h in hosts) / 1e6 for which in ("loaded_bytes", "load_bytes"))
    return f", {came:.0f} of {total:.0f} MB to {', '.join(h['name'] for h in hosts)}"


def _unwrapped(inputs: Feed, core: "_core.Session") -> Dict[str, Any]:
    given = {name: value._value if isinstance(value, OrtValue) else value for name, value in inputs.items()}
    for name, value in inputs.items():
        if isinstance(value, dict):
            del given[name]
            given.update(_map_inputs(name, value, core))
    return given


def _map_inputs(name: str, entries: Dict[Any, Any], core: "_core.Session") -> Dict[str, np.ndarray]:
    """An input that is a map in the model is two: its keys and its values."""
    types = {of: numpy_type_of(number) for of, number, _, _ in core.inputs()}
    parts = {f"{name}.keys": list(entries.keys()), f"{name}.values": list(entries.values())}
    if not all(part in types for part in parts):
        raise InvalidArgument(f"the input '{name}' is given a dict, but the model has no map of this name")
    return {part: np.array(elements, types[part]) for part, elements in parts.items()}


class Session:
    """A model, ready to run; `Engine.load` makes it. Thread-safe: concurrent runs are in flight side by side.

    Inputs are a dict from names to arrays (or what NumPy makes arrays of, tensors of other libraries by DLPack,
    `OrtValue`); their memory must not change before the run has ended. Shapes and element types are the model's:
    `inputs`, `outputs`. An input that is a map in the model is listed as two, NAME.keys and NAME.values, and may be
    given as a dict by its own name.
    """

    def __init__(self, engine: "Engine", core: "_core.Session", name: str) -> None:
        self._engine = engine
        self._core = core
        self._name = name
        self._has_run = False

    @property
    def engine(self) -> "Engine":
        return self._engine

    @property
    def inputs(self) -> List[NodeArg]:
        return [NodeArg(name, number, dims) for name, number, _, dims in self._core.inputs()]

    @property
    def optional_inputs(self) -> List[NodeArg]:
        """Those that a run may leave out: the file has a value for each."""
        return [NodeArg(name, number, dims) for name, number, _, dims in self._core.optional_inputs()]

    @property
    def outputs(self) -> List[NodeArg]:
        return [NodeArg(name, number, dims) for name, number, _, dims in self._core.outputs()]

    @property
    def metadata(self) -> ModelMetadata:
        return ModelMetadata(self._core.about())

    def run(
        self, inputs: Feed, *, keep: Sequence[str] = (), timeout: float = 0, trace: bool = False, priority: int = 0
    ) -> Outputs:
        """Runs the model and returns its outputs by name. Ctrl-C ends the run.

        keep: outputs to leave on the device that makes them. timeout: seconds, 0: no limit. trace: take every node's
        time. priority: in the queue of a session with a strategy of its own.

        Raises `errors.InvalidArgument` for inputs that are missing, extra, or of wrong type or shape; `errors.Timeout`,
        `errors.OutOfMemory`, `errors.EPFail`, `errors.DeviceLost` as the run ends.
        """
        given = _unwrapped(inputs, self._core)
        with self._first_run(given):
            return Outputs(self._core.run(given, list(keep), timeout, trace, priority, None), self._core)

    def _first_run(self, inputs: Dict[str, Any]) -> ContextManager[Any]:
        """Shows the progress of the session's first run, which makes the plan and brings the weights to the devices;
        then puts what the plan has to say against what was asked for into the log, once."""
        if self._has_run:
            return _NOTHING
        self._has_run = True
        return self._watched(inputs)

    @contextlib.contextmanager
    def _watched(self, inputs: Dict[str, Any]) -> Iterator[None]:
        with Progress(f"first run of {self._name}", lambda: _weights_under_way(self._engine)):
            yield
        for line in self._core.warnings(inputs):
            logging.getLogger("troupe").warning("%s: %s", self._name, line)

    def submit(
        self, inputs: Feed, *, keep: Sequence[str] = (), timeout: float = 0, trace: bool = False, priority: int = 0
    ) -> Pending:
        """Puts a request into the session's queue, which cuts, joins and spreads requests as its strategy says; returns
        a future. Waits while the queue is full. Else as `run`."""
        return self._start(inputs, list(keep), timeout, trace, priority, queued=True)

    def run_async(
        self, inputs: Feed, *, keep: Sequence[str] = (), timeout: float = 0, trace: bool = False, priority: int = 0
    ) -> Pending:
        """Starts a run, beside the queue unless a strategy is named; returns a future."""
        return self._start(inputs, list(keep), timeout, trace, priority, queued=False)

    def _start(self, inputs: Feed, keep: List[str], timeout: float, trace: bool, priority: int,
               queued: bool) -> Pending:
        pending = Pending()
        pending.set_running_or_notify_cancel()
        core = self._core

        def done(result: Optional["_core.Result"], failure: Optional[BaseException]) -> None:
            try:
                if failure is not None:
                    raise failure
                assert result is not None
                pending.set_result(Outputs(result, core))
            except BaseException as problem:  # noqa: BLE001: the waiting caller gets it
                pending.set_exception(problem)

        pending._stop = core.start(_unwrapped(inputs, core), keep, timeout, trace, priority, queued, done)
        return pending

    def trace(self, inputs: Feed) -> Trace:
        """Runs the model once and returns when what happened where."""
        trace = self.run(inputs, trace=True).trace
        assert trace is not None
        return trace

    def bind(
        self, pairs: Union[Mapping[str, str], Sequence[Tuple[str, str]]], checkpoint: int = 0, heal: bool = True
    ) -> "BoundSession":
        """Makes outputs the inputs of the next run: {output: input}. They stay on their device between. checkpoint:
        copy them to the host after every `checkpoint` steps, to go on from if a device is lost. heal: the session
        itself takes the steps since again then; otherwise `errors.StateRolledBack` says which they are. Raises
        `errors.InvalidArgument` for names that do not exist, or types and shapes that cannot fit."""
        listed = list(pairs.items()) if isinstance(pairs, Mapping) else list(pairs)
        return BoundSession(self, self._core.bind(listed, checkpoint, heal))

    def plan(self, inputs: Feed, format: str = "text") -> Plan:  # noqa: A002: what it is
        """Returns the plan that a run with these inputs would use: what runs where and why, in which chunks, what
        moves. format: "text", "json" (what the option plan_file takes), "dot". Notebooks show a picture."""
        given = _unwrapped(inputs, self._core)
        text = self._core.plan(given, format)
        return Plan.of(text, text if format == "json" else self._core.plan(given, "json"))

    def prepare(self, inputs: Feed, *, timeout: float = 0) -> None:
        """Makes what the first runs with such inputs need, and computes nothing: plans, weights on devices, compiled
        kernels; with a strategy, for the pieces that each device should get. The inputs' values count only if shapes
        depend on them."""
        self._core.prepare(_unwrapped(inputs, self._core), timeout)

    def compare(self, inputs: Feed) -> Rows:
        """Returns every strategy with every policy, costed for such requests, the best first."""
        return Rows(Table(choice) for choice in self._core.compare(_unwrapped(inputs, self._core)))

    def choice(self) -> Optional[Table]:
        """Returns what the strategy "auto", or "standard" for the queue, has chosen; None before, or if there was
        nothing to choose."""
        chosen = self._core.choice()
        return None if chosen is None else Table(chosen)

    def stats(self) -> Table:
        """Returns counters: runs, hits and misses of the caches of plans, times of loading and planning in ms."""
        return Table(self._core.stats())

    def queue_stats(self) -> Table:
        """Returns counters of the queue, and what each replica did."""
        return Table(self._core.queue_stats())


class BoundSession:
    """A session whose bound outputs feed its next run, e.g. a decoder with its past keys and values. Runs go one after
    the other, whichever threads call. A run that fails leaves the state as it was."""

    def __init__(self, session: Session, core: "_core.BoundSession") -> None:
        self._session = session
        self._core = core

    def run(self, inputs: Feed, *, keep: Sequence[str] = (), timeout: float = 0, trace: bool = False) -> Outputs:
        """Runs one step; returns the outputs that are not bound. The first run takes the bound inputs' initial values
        too; a later one that names a bound input starts it over. Raises as `Session.run` does, and
        `errors.StateRolledBack`."""
        given = _unwrapped(inputs, self._session._core)
        with self._session._first_run(given):
            return Outputs(self._core.run(given, list(keep), timeout, trace, 0, None), self._session._core)

    def fetch(self, output: str) -> np.ndarray:
        """Returns a copy of what a bound output is now."""
        return self._core.fetch(output).numpy()

    @property
    def step(self) -> int:
        """How many runs have ended well since the one that was given all bound inputs, which is step 1."""
        return self._core.step()


class Engine:
    """The devices of this process, and models on them. Thread-safe; a context manager that closes it.

    devices: "cpu", "vulkan:0", "cpu*2", "slow:25"; "all" is every GPU and the CPU. Options (seconds, bytes):
    hosts=["[NAME=]HOST:PORT"] with certificate, key, ca (files, `troupe keys`) or insecure=True; memory={"vulkan:0":
    2 << 30}; device_timeout; completion; profile_file; cpu_threads (of the CPU's kernels); scheduler_threads;
    kernels="later", or "now": runs wait for the GPU's compiler, and equal runs have equal outputs; record="DIR":
    sessions keep there what happens to them, for `troupe replay`, with record_memory=64 << 20 in memory until a run
    fails.
    Raises `errors.InvalidArgument` for devices that are not there and options that cannot be.
    """

    def __init__(self, devices: Union[str, Sequence[str]] = ("all",), **options: Any) -> None:
        names = [devices] if isinstance(devices, str) else list(devices)
        self._core = _core.Engine({"devices": names, **options})
        _engines.add(self)

    def load(
        self,
        model: Union[str, "os.PathLike[str]", bytes, bytearray, memoryview],
        *,
        folder: Union[str, "os.PathLike[str]"] = "",
        **options: Any,
    ) -> Session:
        """Loads an ONNX model from a file or from bytes (whose external data is looked for in `folder`).

        Options: policy ("single", "heft", "round-robin", …, or a `@troupe.policy`), strategy ("standard", "none",
        "data-parallel", "model-parallel", "pipeline", "work-stealing", "auto", or a `@troupe.strategy`), micro_batch,
        depth, schedule, shares, max_batch, max_delay (seconds), queue_limit, ordered; goal, max_devices, max_memory,
        max_latency (of "auto"); pins=[(pattern, device)], split_along, plan_file, policy_plugin, strategy_plugin,
        precision ("fp32", "fp16", "auto"), fuse, devices, outputs, dims={"batch": 8};
        output_slices=[("logits", 1, -1, None)], what is wanted of an output: its indices along a dim, as in NumPy.

        Raises `errors.NoSuchFile`, `errors.InvalidGraph`, `errors.NotImplemented`, `errors.InvalidArgument`,
        `errors.InvalidPlan`.
        """
        if isinstance(model, (bytes, bytearray, memoryview)):
            with Progress("loading a model"):
                session = Session(self, self._core.load_bytes(model, os.fspath(folder), options), "a model")
        else:
            name = os.path.basename(os.fsdecode(model))
            with Progress(f"loading {name}"):
                session = Session(self, self._core.load_file(os.fsencode(model), options), name)
        for value in session.inputs + session.outputs:
            if not is_tensor(value.onnx_type):
                _refuse(f"'{value.name}', which is a {value.type}",
                        "only tensors go between Python and a model; inside of it there may be others")
        return session

    def devices(self) -> Rows:
        """Returns the open devices: name, kind, description, memory_bytes, total_bytes, fallback."""
        return Rows(Table(device) for device in self._core.devices())

    def stats(self) -> Table:
        """Returns counters by device."""
        return Table({device["name"]: Table(stats) for device, stats in zip(self._core.devices(), self._core.stats())})

    def hosts(self) -> Rows:
        """Returns what is known of the other hosts."""
        return Rows(Table(host) for host in self._core.hosts())

    def add_host(self, host: str) -> None:
        """Connects to a worker, "[NAME=]HOST:PORT": its devices join."""
        self._core.add_host(host)

    def lost_devices(self) -> List[str]:
        """Returns the devices that are lost: nothing runs there any more."""
        return self._core.lost_devices()

    def no_gpu_because(self) -> str:
        """Returns why "all" means no GPU on this machine; empty if it means one."""
        return self._core.no_gpu_because()

    def put(self, array: Any, device: str) -> OrtValue:
        """Returns a copy of an array in the memory of a device, to be an input of many runs."""
        return OrtValue(self._core.put(_core.value_from_numpy(array, copy=False), device))

    def allocate(self, shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
        """Returns an array to fill, in memory that GPUs read without a copy: make a run's large inputs with it."""
        return self._core.allocate(list(shape), onnx_type_of(dtype))

    def close(self) -> None:
        """Closes the devices; runs of sessions end with `errors.Cancelled` from then on."""
        self._core.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_shared: Dict[Tuple[Any, ...], "weakref.ref[Engine]"] = {}
_shared_lock = threading.Lock()


def shared_engine(devices: Sequence[str], options: Mapping[str, Any]) -> Engine:
    """Returns the engine of these devices that other sessions have open already, or a new one: devices are opened
    once."""
    key = (os.getpid(), tuple(devices), json.dumps(options, sort_keys=True))
    with _shared_lock:
        found = _shared.get(key)
        engine = found() if found else None
        if engine is None or engine._core.closed:
            engine = Engine(devices, **options)
            _shared[key] = weakref.ref(engine)
        return engine


def _renew_lock() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()


def close_engines() -> None:
    """Closes all engines: done when the interpreter ends, while callbacks of runs can still be called."""
    for engine in list(_engines):
        engine.close()


atexit.register(close_engines)
os.register_at_fork(after_in_child=_renew_lock)
__all__ = ["BoundSession", "Engine", "Outputs", "Pending", "Plan", "Rows", "Session", "Table", "Trace", "close_engines",
           "shared_engine"]
