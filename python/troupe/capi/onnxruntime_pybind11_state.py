"""Exceptions where scripts look for onnxruntime's."""
from troupe.errors import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoaded,
    NoModel,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)

__all__ = [
    "EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded", "NoModel",
    "NoSuchFile", "NotImplemented", "RuntimeException",
]  # fmt: skip
