"""onnxruntime.capi's public part: where its exceptions are."""
from troupe.capi import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
