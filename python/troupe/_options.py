"""onnxruntime's options: what has a counterpart is passed on; a hint that changes no result is accepted, and noted once
in the log "troupe" at the level DEBUG; what would change results, or promises what troupe cannot keep, is refused with
the reason."""
from __future__ import annotations

import enum
import logging
import weakref
from typing import Any, Dict, NoReturn, Set

from troupe import _core
from troupe.errors import InvalidArgument, NotImplemented


class GraphOptimizationLevel(enum.IntEnum):
    """Up to BASIC troupe folds and cleans up, above it also fuses."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Devices always work side by side, and nodes of one device as its plan says: both modes are the same."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """The plan decides the order; only DEFAULT can be asked for."""

    DEFAULT = 0
    PRIORITY_BASED = 1


def _refuse(what: str, why: str) -> NoReturn:
    error = NotImplemented(f"{what}: {why}")
    error.code = "unsupported"
    raise error


_noted: Set[str] = set()


def _note(what: str, why: str) -> None:
    """Says in the log, once, that a hint has no effect."""
    if what not in _noted:
        _noted.add(what)
        logging.getLogger("troupe").debug("%s has no effect: %s", what, why)


# Promises: what may be set, to which values, and why to no others.
_FIXED = {
    "optimized_model_filepath": ("", "rewritten models cannot be saved as ONNX; a plan can: Session.plan(inputs, "
                                     "'json')"),
    "use_deterministic_compute": (False, "it is not promised for every device"),
}  # fmt: skip
# Hints: what they are by default, and why another value has no effect.
_HINTS = {
    "enable_cpu_mem_arena": (True, "memory always comes from pools"),
    "enable_mem_pattern": (True, "memory is always planned"),
    "enable_mem_reuse": (True, "memory is always used again"),
    "execution_mode": (ExecutionMode.ORT_SEQUENTIAL, "devices always work side by side"),
    "execution_order": (ExecutionOrder.DEFAULT, "the plan decides the order: see Session.plan"),
    "log_severity_level": (2, "errors are exceptions, and little else is logged"),
    "log_verbosity_level": (0, "errors are exceptions, and little else is logged"),
    "logid": ("", "errors are exceptions, and little else is logged"),
}  # fmt: skip
# Configuration entries of onnxruntime that are hints, by how they begin; and those of them that are promises, by value,
# if any by None.
_HINT_ENTRIES = ("session.", "memory.", "optimization.")
_PROMISES = {
    ("session.disable_cpu_ep_fallback", "1"): "what a GPU cannot run, the CPU does; Session.plan says what",
    ("session.load_model_format", "ORT"): "give the .onnx file that the .ort file was made from",
    ("session.model_external_initializers_file_folder_path", None): "external data is looked for beside the model's "
                                                                    "file",
    ("session.save_model_format", "ORT"): "rewritten models cannot be saved",
}


def _accept_entry(key: str, value: str, known: str) -> None:
    """Notes a configuration entry that is a hint; refuses all others."""
    promise = _PROMISES.get((key, value.upper())) or (_PROMISES.get((key, None)) if value else None)
    if promise:
        _refuse(f"configuration entry '{key}' = '{value}'", promise)
    if not key.startswith(_HINT_ENTRIES):
        _refuse(f"configuration entry '{key}'", f"no entry has this name{known}")
    _note(f"configuration entry '{key}'", "it is a hint for onnxruntime's own ways")


# Session options by onnxruntime's configuration key.
_KEYS = {"policy", "policy_plugin", "strategy", "strategy_plugin", "precision", "plan_file", "goal", "schedule",
         "shares"}


class SessionOptions:
    """How a session is made, with onnxruntime's names.

    `graph_optimization_level`: below EXTENDED nothing is fused. `inter_op_num_threads`: threads that send work to the
    devices; 0 and less: two. `intra_op_num_threads`: threads of the CPU's kernels; 0 and less: one a core.
    `enable_profiling`: every run is traced; `InferenceSession.end_profiling` writes the last trace to a file whose name
    begins with `profile_file_prefix`. `add_free_dimension_override_by_name(name, value)`: a symbolic dim's value.
    `add_session_config_entry("troupe.policy", "heft")`: troupe's own; also troupe.strategy, .precision, .plan_file,
    .goal, .schedule, .shares, .policy_plugin, .strategy_plugin.

    Hints that change no result are accepted and have no effect: arenas, memory patterns, session.* and memory.*
    entries. The log "troupe" notes them at the level DEBUG.

    Raises `errors.NotImplemented` for what troupe does not have, AttributeError for what onnxruntime does not have
    either.
    """

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    _dims: Dict[str, int]
    _entries: Dict[str, Any]

    def __init__(self) -> None:
        state: Dict[str, Any] = {name: value for name, (value, _) in {**_FIXED, **_HINTS}.items()}
        state.update(
            graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL,
            inter_op_num_threads=0,
            intra_op_num_threads=0,
            enable_profiling=False,
            profile_file_prefix="onnxruntime_profile_",
        )
        self.__dict__.update(state)
        self.__dict__["_dims"] = {}
        self.__dict__["_entries"] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ or name.startswith("_"):
            raise AttributeError(f"SessionOptions has no option '{name}'")
        if name in _FIXED and value != _FIXED[name][0]:
            _refuse(f"SessionOptions.{name} = {value!r}", _FIXED[name][1])
        if name in _HINTS and value != _HINTS[name][0]:
            _note(f"SessionOptions.{name} = {value!r}", _HINTS[name][1])
        self.__dict__[name] = value

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """States the value of the symbolic dim `name` of the model's inputs; of no effect if they have none such."""
        self._dims[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Has no effect: denotations of dims are not read."""
        _note("add_free_dimension_override_by_denotation", "use add_free_dimension_override_by_name")

    def add_session_config_entry(self, key: str, value: Any) -> None:
        """Sets one of troupe's own options ("troupe.policy" …, see above), or one of onnxruntime's that is a hint.
        Values
        are text; a policy may be a `@troupe.policy`."""
        name = key[len("troupe.") :] if key.startswith("troupe.") else ""
        if name not in _KEYS:
            _accept_entry(key, str(value), "; there are " + ", ".join("troupe." + k for k in sorted(_KEYS)))
        self._entries[key] = value if name == "policy" and callable(value) else str(value)

    def get_session_config_entry(self, key: str) -> Any:
        """Returns what was set; raises `errors.InvalidArgument` for what was not."""
        if key not in self._entries:
            raise InvalidArgument(f"configuration entry '{key}' was not set")
        return self._entries[key]

    def add_initializer(self, name: str, value: Any) -> None:
        """Refused: weights are those of the file."""
        _refuse("add_initializer", "weights are those of the file, or of its external data")

    def add_external_initializers(self, names: Any, values: Any) -> None:
        """Refused: weights are those of the file."""
        _refuse("add_external_initializers", "weights are those of the file, or of its external data")

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: onnxruntime's plug-ins cannot be loaded."""
        _refuse("register_custom_ops_library",
                "onnxruntime's plug-ins cannot be loaded; operators are added in C++ (CONTRIBUTING.md)")

    def troupe_options(self) -> Dict[str, Any]:
        """Returns the same as options of `Engine.load`."""
        own = {key: value for key, value in self._entries.items() if key.startswith("troupe.")}
        options: Dict[str, Any] = {key[len("troupe.") :]: value for key, value in own.items()}
        options["fuse"] = self.graph_optimization_level > GraphOptimizationLevel.ORT_ENABLE_BASIC
        if self._dims:
            options["dims"] = dict(self._dims)
        return options


class RunOptions:
    """How runs are done. `terminate = True` ends those that have these options and are under way; further runs with
    them end at once, until it is False again. `priority`: of requests that wait in a session's queue, higher ones go
    first (troupe's own). `timeout`: seconds, 0: none (troupe's own). Logging options are kept and have no effect."""

    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.priority = 0
        self.timeout = 0.0
        self._stop = _core.Stop()
        self._started: "weakref.WeakSet[_core.Stop]" = weakref.WeakSet()  # of runs without a waiting caller
        self._terminate = False

    @property
    def terminate(self) -> bool:
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if value:
            self._stop.request()
            for stop in list(self._started):
                stop.request()
        else:
            self._stop = _core.Stop()

    def follow(self, stop: "_core.Stop") -> None:
        """Has `terminate` end a run that was started, as long as somebody keeps its `stop`."""
        self._started.add(stop)
        if self._terminate:
            stop.request()

    @property
    def only_execute_path_to_fetches(self) -> bool:
        """Refused: name the outputs when the model is loaded, Engine.load(…, outputs=[…])."""
        return False

    @only_execute_path_to_fetches.setter
    def only_execute_path_to_fetches(self, value: bool) -> None:
        if value:
            _refuse("RunOptions.only_execute_path_to_fetches",
                    "name the outputs when the model is loaded: Engine.load(…, outputs=[…])")

    @property
    def training_mode(self) -> bool:
        """Refused: troupe only infers."""
        return False

    @training_mode.setter
    def training_mode(self, value: bool) -> None:
        if value:
            _refuse("RunOptions.training_mode", "troupe only infers")

    def add_active_adapter(self, adapter: Any) -> None:
        """Refused: troupe has no adapters."""
        _refuse("add_active_adapter", "troupe has no adapters: merge them into the model")

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Takes those that are hints; raises `errors.NotImplemented` for others."""
        _accept_entry(key, str(value), "")


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: errors are exceptions, and what is noted beside them is in the log "troupe", which `logging`
    filters."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: see `set_default_logger_severity`."""


def enable_telemetry_events() -> None:
    """Does nothing: troupe has no telemetry."""


def disable_telemetry_events() -> None:
    """Does nothing: troupe has no telemetry."""


def set_seed(seed: int) -> None:
    """Refused: random operators take their seed from the model's attributes."""
    _refuse("set_seed", "random operators take their seed from the model's attributes")


def get_version_string() -> str:
    """Returns troupe's version."""
    return str(_core.version)


def get_build_info() -> str:
    """Returns what this is, in words."""
    return f"troupe {_core.version}"


