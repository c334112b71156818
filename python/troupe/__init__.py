"""troupe: ONNX models on all the devices of a machine together, and of other machines.

Two doors to the same engine:

- onnxruntime's names, so that `import troupe as onnxruntime` is the only change of a script: `InferenceSession`,
  `SessionOptions`, `RunOptions`, `OrtValue`, `IOBinding`, `get_available_providers` …
- troupe's own words, which say more: `Engine`, `Session`, `BoundSession`, plans, strategies, other hosts; placement
  policies and strategies as functions and classes (`@policy`, `@strategy`), which `troupe.experiments` simulates.

>>> import troupe
>>> session = troupe.InferenceSession("model.onnx", providers=["vulkan:0", "cpu"])
>>> scores, = session.run(None, {"image": image})

Arrays go in and out without a copy where their memory allows; `copy_counters()` tells. The GIL is released while a
model runs; Ctrl-C ends the run. Errors are classes of `troupe.errors`.
"""
import os as _os

# libgomp reads its settings when it is loaded. Its threads should spin for tens of microseconds between two kernels, no
# longer: see cli/main.cpp. The setting is taken back, so that programs that are started from here do not inherit it.
_ours = "GOMP_SPINCOUNT" not in _os.environ and "OMP_WAIT_POLICY" not in _os.environ
if _ours:
    _os.environ["GOMP_SPINCOUNT"] = "20000"
try:
    from troupe import _core
finally:
    if _ours:
        _os.environ.pop("GOMP_SPINCOUNT", None)

from troupe import capi, errors
from troupe._command import calibrate, profile, verify
from troupe._core import copy_counters
from troupe._engine import BoundSession, Engine, Outputs, Pending, Session, close_engines
from troupe._inference import InferenceSession, get_all_providers, get_available_providers, get_device
from troupe._io_binding import IOBinding
from troupe._notebook import Plan, Rows, Table, Trace
from troupe._options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_version_string,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from troupe._policy import Policy, Problem, policy
from troupe._progress import show_progress
from troupe._strategy import Queue, Replica, Strategy, strategy
from troupe._values import ModelMetadata, NodeArg, OrtDevice, OrtMemType, OrtValue, SparseTensor

__version__ = _core.version

__all__ = [
    "BoundSession", "Engine", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding",
    "InferenceSession", "ModelMetadata", "NodeArg", "OrtDevice", "OrtMemType", "OrtValue", "Outputs", "Pending", "Plan",
    "Policy", "Problem", "Queue", "Replica", "Rows", "RunOptions", "Session", "SessionOptions", "SparseTensor",
    "Strategy", "Table", "Trace", "calibrate", "capi", "close_engines", "copy_counters", "disable_telemetry_events",
    "enable_telemetry_events", "errors", "get_all_providers", "get_available_providers", "get_build_info", "get_device",
    "get_version_string", "policy", "profile", "set_default_logger_severity", "set_default_logger_verbosity",
    "set_seed", "show_progress", "strategy", "verify",
]  # fmt: skip
