"""onnxruntime.capi's public part: where its exceptions are."""
from troupe.capi import _pybind_state, onnxruntime_pybind11_state

__all__ = ["_pybind_state", "onnxruntime_pybind11_state"]
