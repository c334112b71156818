"""What troupe raises: `Error` and its kinds.

The kinds that onnxruntime has keep its names; each also is what Python would raise for such a thing (ValueError,
OSError …). `code` is troupe's own word, as in C++ (`troupe::errc`).
"""
from __future__ import annotations

from typing import Optional, Type


class Error(RuntimeError):
    """Any error of troupe. The message says what, where and what to do; `code` is the kind, e.g. "invalid_input"."""

    code: str = "internal"


class Fail(Error):
    """A run did not end well: it was cancelled, or what it needs is gone."""


class Cancelled(Fail):
    """The caller ended the run, or its engine was closed."""


class InvalidArgument(Error, ValueError):
    """Inputs that do not fit the model, or an option that cannot be."""


class InvalidType(InvalidArgument, TypeError):
    """An argument is of another kind than what it should be."""


class InvalidPlan(InvalidArgument):
    """A saved plan is malformed, or does not fit the model or the devices."""


class InvalidGraph(Fail):
    """Not a valid ONNX model."""


class InvalidProtobuf(InvalidGraph):
    """The bytes are not an ONNX model at all."""


class NotImplemented(Error, NotImplementedError):  # noqa: A001: onnxruntime's name
    """The model or the caller asks for what troupe does not have."""


class NoSuchFile(Error, OSError):
    """A file cannot be opened, read or written."""


class OutOfMemory(Error, MemoryError):
    """A device, or all of them together, has not enough memory; the message holds bytes needed and allowed."""


class EPFail(Fail):
    """A device failed, or is gone."""


class DeviceLost(EPFail):
    """A device is gone for good; also: this process was forked off the one that has the devices."""


class StateRolledBack(DeviceLost):
    """A bound session went on from its last checkpoint: repeat its runs from step `repeat_from` on."""

    repeat_from: int = 0


class Timeout(Fail, TimeoutError):
    """The run took longer than it may."""


class RuntimeException(Error):
    """A defect of troupe."""


class EngineError(Error):
    """Never raised: onnxruntime has the name."""


class ModelLoaded(Error):
    """Never raised: onnxruntime has the name."""


class NoModel(Error):
    """Never raised: onnxruntime has the name."""


_KINDS: dict[str, Type[Error]] = {
    "invalid_model": InvalidGraph,
    "unsupported": NotImplemented,
    "invalid_input": InvalidArgument,
    "io": NoSuchFile,
    "out_of_memory": OutOfMemory,
    "device_failed": EPFail,
    "device_lost": DeviceLost,
    "state_rolled_back": StateRolledBack,
    "timeout": Timeout,
    "cancelled": Cancelled,
    "invalid_plan": InvalidPlan,
    "invalid_argument": InvalidArgument,
    "internal": RuntimeException,
}


def of_code(code: str, message: str, repeat_from: Optional[int] = None) -> Error:
    """Returns the exception of one of troupe's kinds; the C++ side calls it."""
    kind = _KINDS[code]
    if code == "invalid_model" and ("not an ONNX model" in message or "not a valid ONNX file" in message):
        kind = InvalidProtobuf
    made = kind(message)
    made.code = "device_lost" if code == "state_rolled_back" else code
    if isinstance(made, StateRolledBack) and repeat_from is not None:
        made.repeat_from = repeat_from
    return made
