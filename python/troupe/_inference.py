"""onnxruntime's session over troupe's."""
from __future__ import annotations

import os
import time
import warnings
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from troupe import _core
from troupe._engine import Session, Trace, _unwrapped, shared_engine
from troupe._io_binding import IOBinding
from troupe._options import RunOptions, SessionOptions, _note, _refuse
from troupe._values import ModelMetadata, NodeArg, OrtValue
from troupe.errors import Error, InvalidArgument, InvalidType

Provider = Union[str, Tuple[str, Mapping[str, Any]]]
_CPU_PROVIDER = "CPUExecutionProvider"
_ENGINE_OPTIONS = (
    "memory", "hosts", "certificate", "key", "ca", "insecure", "device_timeout", "profile_file", "completion",
    "kernels", "record", "record_memory",
)


def get_available_providers() -> List[str]:
    """Returns the devices of this machine, GPUs first: e.g. ["vulkan:0", "cpu", "CPUExecutionProvider"]. The last is
    onnxruntime's name for "cpu"."""
    return [device["name"] for device in shared_engine(["all"], {}).devices()] + [_CPU_PROVIDER]


def get_all_providers() -> List[str]:
    """As `get_available_providers`: what is there is what there is."""
    return get_available_providers()


def get_device() -> str:
    """Returns "GPU" if there is one, else "CPU"."""
    return "GPU" if any(d["kind"] == "vulkan" for d in shared_engine(["all"], {}).devices()) else "CPU"


def _is_name(word: str) -> bool:
    kind = word.split("*")[0].split(":")[0].split("/")[-1]
    return kind in ("cpu", "vulkan", "null", "slow", "all")


def _is_present(word: str) -> bool:
    """Whether a GPU of this name is there; of other hosts' devices and all others the engine itself knows. "all" means
    no GPU that is software, but it can be named."""
    name = word.split("*")[0]
    if not word.startswith("vulkan") or any(d["name"] == name for d in shared_engine(["all"], {}).devices()):
        return True
    try:
        shared_engine([word], {})
    except Error:
        return False
    return True


def devices_of(
    providers: Optional[Sequence[Provider]], provider_options: Optional[Sequence[Mapping[str, Any]]]
) -> Tuple[List[str], Dict[str, Any]]:
    """Returns the devices and engine options that providers mean; warns of those that are not there, and skips them."""
    if isinstance(providers, str):
        providers = [providers]
    if provider_options is not None and len(provider_options) != len(providers or ()):
        raise InvalidArgument("there must be as many provider_options as providers")
    devices: List[str] = []
    options: Dict[str, Any] = {}
    for index, provider in enumerate(providers or ()):
        name, given = (provider, {}) if isinstance(provider, str) else provider
        given = dict(given, **(provider_options[index] if provider_options else {}))
        device = "cpu" if name == _CPU_PROVIDER else name
        if not _is_name(device) or not _is_present(device):
            there = ", ".join(get_available_providers())
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: "
                          f"'{there}'", stacklevel=3)
            continue
        if name == _CPU_PROVIDER:
            given = {}  # of onnxruntime's allocator
        for key, value in given.items():
            if key not in _ENGINE_OPTIONS:
                raise InvalidArgument(
                    f"provider '{name}' has no option '{key}'; they are: {', '.join(_ENGINE_OPTIONS)}"
                )
            options[key] = {device: value} if key == "memory" and not isinstance(value, Mapping) else value
        if device not in devices:
            devices.append(device)
    return devices or ["all"], options


class InferenceSession:
    """A model, ready to run on devices.

    path_or_bytes: an .onnx file, or its bytes. providers: devices in troupe's words ("vulkan:0", "cpu", "cpu*2",
    "all"), or "CPUExecutionProvider"; None: all devices. Those that are not there are skipped with a warning, as
    onnxruntime does. provider_options: options of `Engine`, e.g. [{"memory": 2 << 30}].

    Raises `errors.NoSuchFile`, `errors.InvalidGraph`, `errors.InvalidProtobuf`, `errors.NotImplemented`,
    `errors.InvalidArgument`.
    """

    def __init__(
        self,
        path_or_bytes: Union[str, "os.PathLike[str]", bytes],
        sess_options: Optional[SessionOptions] = None,
        providers: Optional[Sequence[Provider]] = None,
        provider_options: Optional[Sequence[Mapping[str, Any]]] = None,
        **kwargs: Any,
    ) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise InvalidType(f"sess_options is a {type(sess_options).__name__}, not SessionOptions")
        for name, value in kwargs.items():
            if name == "disabled_optimizers":
                _note("InferenceSession(disabled_optimizers=…)",
                      "the rewrite has rules of its own, which change no result")
            elif value:
                _refuse(f"InferenceSession({name}=…)", "there is no counterpart")
        is_file = not isinstance(path_or_bytes, (bytes, bytearray, memoryview))
        self._model_path = os.fspath(path_or_bytes) if is_file else None  # onnxruntime's name, which Optimum reads
        self._model = path_or_bytes
        self._options = sess_options or SessionOptions()
        self._last_trace: Optional[Trace] = None
        self._started = time.time_ns()
        self._open(providers, provider_options)

    def _open(self, providers: Optional[Sequence[Provider]],
              provider_options: Optional[Sequence[Mapping[str, Any]]]) -> None:
        devices, engine_options = devices_of(providers, provider_options)
        if self._options.inter_op_num_threads > 0:
            engine_options["scheduler_threads"] = self._options.inter_op_num_threads
        if self._options.intra_op_num_threads > 0:
            engine_options["cpu_threads"] = self._options.intra_op_num_threads
        options = self._options.troupe_options()
        if "dims" in options:
            options["dims"] = self._known(options["dims"])
        self._session = shared_engine(devices, engine_options).load(self._model, **options)
        self._core = self._session._core
        self._inputs = self._session.inputs
        self._outputs = self._session.outputs

    def _known(self, stated: Mapping[str, int]) -> Dict[str, int]:
        """Returns the stated dims that the model's inputs have: as with onnxruntime, others do not count."""
        if self._model_path is None:
            known = _core.input_dims_of_bytes(self._model)
        else:
            known = _core.input_dims_of_file(os.fsencode(self._model_path))
        for name in stated:
            if name not in known:
                _note(f"add_free_dimension_override_by_name({name!r}, …)", "the model's inputs have no such dim")
        return {name: value for name, value in stated.items() if name in known}

    @property
    def troupe_session(self) -> Session:
        """troupe's own session: plan, trace, stats, bind, submit."""
        return self._session

    def run(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        run_options: Optional[RunOptions] = None,
    ) -> List[np.ndarray]:
        """Runs the model and returns the outputs as arrays, in the order of `output_names` (None: all, in the model's
        order).

        input_feed: by name, arrays, or `OrtValue`; `get_inputs` tells types and shapes. The outputs are arrays of their
        own that may be written to. Ctrl-C ends the run.

        Raises `errors.InvalidArgument` (a ValueError) for inputs that are missing, extra, or of wrong type or shape,
        and outputs that do not exist; `errors.Cancelled`, `errors.OutOfMemory`, `errors.EPFail` as the run ends.
        """
        _check_output_names(output_names)
        if run_options is None and not self._options.enable_profiling:
            if self._session._has_run:
                return self._core.run_arrays(output_names or None, _plain(input_feed, self._core), None)
            given = _plain(input_feed, self._core)
            with self._session._first_run(given):
                return self._core.run_arrays(output_names or None, given, None)
        names = self._names(output_names)
        arrays = self._run(input_feed, [], run_options).arrays()
        return [arrays[name] for name in names]

    def run_with_ort_values(
        self,
        output_names: Optional[Sequence[str]],
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: Optional[RunOptions] = None,
    ) -> List[OrtValue]:
        """As `run`, with values in and out: element types that NumPy does not have, too."""
        names = self._names(output_names)
        values = self._run(input_dict_ort_values, [], run_options).values(self._core)
        return [OrtValue(values[name]) for name in names]

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Optional[RunOptions] = None) -> None:
        """Runs with bound inputs; outputs go where they are bound. Raises as `run` does."""
        result = self._run(iobinding._inputs, iobinding.kept_outputs(), run_options)
        iobinding.accept({name: OrtValue(value) for name, value in result.values(self._core).items()})

    def run_async(
        self,
        output_names: Optional[Sequence[str]],
        input_feed: Mapping[str, Any],
        callback: Callable[[Optional[List[np.ndarray]], Any, str], None],
        user_data: Any,
        run_options: Optional[RunOptions] = None,
    ) -> None:
        """Starts a run and calls `callback(outputs, user_data, "")`, or `callback([], user_data, error)`, on a thread
        of troupe's."""
        names = self._names(output_names)
        options = run_options or RunOptions()
        stops: List["_core.Stop"] = []  # kept by `done`, so until the run has ended

        def done(result: Optional["_core.Result"], failure: Optional[BaseException]) -> None:
            outputs: List[np.ndarray] = []
            stops.clear()
            try:
                if failure is not None:
                    raise failure
                assert result is not None
                arrays = result.arrays()
                outputs = [arrays[name] for name in names]
            except Exception as problem:  # noqa: BLE001: the callback gets it
                callback([], user_data, str(problem))
                return
            callback(outputs, user_data, "")

        stops.append(self._core.start(_plain(input_feed, self._core), [], options.timeout, False, options.priority,
                                      False, done))
        for stop in stops:
            options.follow(stop)

    def get_inputs(self) -> List[NodeArg]:
        """Returns the inputs without those that the file gives values for."""
        return self._inputs

    def get_outputs(self) -> List[NodeArg]:
        return self._outputs

    def get_overridable_initializers(self) -> List[NodeArg]:
        """Returns the initializers that are inputs, too: a run may be given another value."""
        return self._session.optional_inputs

    def get_modelmeta(self) -> ModelMetadata:
        """Returns what the file says of itself."""
        return self._session.metadata

    def get_providers(self) -> List[str]:
        """Returns the session's devices by name."""
        return [device["name"] for device in self._session.engine.devices()]

    def get_provider_options(self) -> Dict[str, Dict[str, str]]:
        """Returns of each device what is known of it."""
        return {d["name"]: {k: str(v) for k, v in d.items() if k != "name"} for d in self._session.engine.devices()}

    def get_session_options(self) -> SessionOptions:
        return self._options

    def io_binding(self) -> IOBinding:
        """Returns a binding without inputs and outputs."""
        return IOBinding(self)

    def put(self, array: Any, device: str) -> OrtValue:
        """Returns a copy of an array on one of the session's devices (troupe's own)."""
        return self._session.engine.put(array, device)

    def end_profiling(self) -> str:
        """Writes the last run's trace and returns the file's name; needs `SessionOptions.enable_profiling`."""
        if not self._options.enable_profiling or self._last_trace is None:
            raise InvalidArgument("there is nothing to write: set SessionOptions.enable_profiling, and run")
        name = f"{self._options.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self._last_trace.save(name)
        return name

    def get_profiling_start_time_ns(self) -> int:
        """Returns when the session was made, in ns since 1970."""
        return self._started

    def set_providers(
        self, providers: Optional[Sequence[Provider]] = None,
        provider_options: Optional[Sequence[Mapping[str, Any]]] = None
    ) -> None:
        """Loads the model again on these devices, unless they are the session's."""
        devices, _ = devices_of(providers, provider_options)
        if provider_options or devices != self.get_providers():
            self._open(providers, provider_options)

    def enable_fallback(self) -> None:
        """Does nothing: what a GPU cannot run, the CPU always does."""

    def disable_fallback(self) -> None:
        """Does nothing: a session keeps its devices, and results do not depend on which of them runs what."""
        _note("InferenceSession.disable_fallback()", "what a GPU cannot run, the CPU does; Session.plan says what")

    def run_with_ortvaluevector(self, *_: Any) -> None:
        """Refused: it is for training."""
        _refuse("run_with_ortvaluevector", "use run_with_ort_values")

    def get_tuning_results(self) -> List[Any]:
        """Refused: what is measured is kept in the profile (`troupe profile`)."""
        _refuse("get_tuning_results", "what is measured is kept in the profile: troupe profile --keep")

    def set_tuning_results(self, *_: Any, **__: Any) -> None:
        """Refused: what is measured is kept in the profile (`troupe profile`)."""
        _refuse("set_tuning_results", "what is measured is kept in the profile: troupe profile --keep")

    def _names(self, output_names: Optional[Sequence[str]]) -> List[str]:
        _check_output_names(output_names)
        known = [arg.name for arg in self._outputs]
        for name in output_names or ():
            if name not in known:
                raise InvalidArgument(f"the model has no output '{name}'; it has: {', '.join(known)}")
        return list(output_names) if output_names else known

    def _run(self, feed: Mapping[str, Any], keep: List[str], run_options: Optional[RunOptions]) -> "_core.Result":
        options = run_options or RunOptions()
        traced = self._options.enable_profiling
        given = _plain(feed, self._core)
        with self._session._first_run(given):
            result = self._core.run(given, keep, options.timeout, traced, options.priority, options._stop)
        trace = result.trace() if traced else None
        if trace is not None:
            self._last_trace = Trace(trace)
        return result


def _check_output_names(names: Any) -> None:
    if isinstance(names, str):
        raise InvalidType(f"output_names is a list of names, not a str: ['{names}']")


def _plain(feed: Mapping[str, Any], core: "_core.Session") -> Dict[str, Any]:
    if not isinstance(feed, Mapping):
        raise InvalidType(f"inputs are given as a dict from names to arrays, not as {type(feed).__name__}")
    for value in feed.values():
        if isinstance(value, (OrtValue, dict)):
            return _unwrapped(feed, core)
    return feed if isinstance(feed, dict) else dict(feed)
