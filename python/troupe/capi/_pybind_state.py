"""The same exceptions, by onnxruntime's other name for the module."""
from troupe.capi.onnxruntime_pybind11_state import *  # noqa: F401, F403
from troupe.capi.onnxruntime_pybind11_state import __all__ as __all__
