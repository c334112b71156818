"""ONNX's backend interface (onnx.backend.base), so that programs written for it, ONNX's own test runner among them, run
troupe.

>>> import onnx, troupe.backend
>>> troupe.backend.prepare(onnx.load("model.onnx"), "CPU").run([image])

Devices: "CPU", or troupe's words ("vulkan:0", "all"). Needs the package onnx. Types that NumPy does not have go in and
out as onnx's `numpy_helper` has them: bfloat16 as float32, 8-bit floats as their bits, smaller ones with a byte for
each.
"""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from troupe import _core
from troupe._engine import shared_engine
from troupe._inference import InferenceSession
from troupe._values import _ELEMENTS_A_BYTE, OrtValue
from troupe.errors import InvalidArgument

_BFLOAT16 = 16
_EIGHT_BITS = (17, 18, 19, 20, 24)  # floats of 8 bits, by ONNX's numbers


def _device(device: str) -> str:
    """Returns troupe's name; onnx's "CPU" is "cpu"."""
    return "cpu" if device.upper().split(":")[0] == "CPU" else device


def _to_bfloat16(array: np.ndarray) -> OrtValue:
    """Rounds float32 to nearest even."""
    words = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    rounded = (words + 0x7FFF + ((words >> 16) & 1)) >> 16
    bits = np.where(np.isnan(array), (words >> 16) | 0x40, rounded).astype(np.uint16)
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits.reshape(array.shape), _BFLOAT16)


def _of_type(array: np.ndarray, onnx_type: int) -> Any:
    """Returns what a session takes for an array of elements whose type NumPy does not have."""
    if onnx_type == _BFLOAT16 and array.dtype == np.float32:
        return _to_bfloat16(array)
    if array.dtype.itemsize == 1 and onnx_type in _EIGHT_BITS:
        bits = np.ascontiguousarray(array).view(np.uint8).reshape(array.shape)  # a scalar has become a vector
        return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx_type)
    if array.dtype.itemsize == 1 and onnx_type in _ELEMENTS_A_BYTE:
        a_byte = _ELEMENTS_A_BYTE[onnx_type]
        width = 8 // a_byte
        elements = np.ascontiguousarray(array).view(np.uint8).ravel() & ((1 << width) - 1)
        rows = np.append(elements, np.zeros(-elements.size % a_byte, np.uint8)).reshape(-1, a_byte)
        packed = np.bitwise_or.reduce(rows << (width * np.arange(a_byte, dtype=np.uint8)), axis=1).astype(np.uint8)
        return OrtValue(_core.value_from_bits(packed, onnx_type, list(array.shape)))
    return array


def _to_array(value: OrtValue) -> np.ndarray:
    onnx_type = value.element_type()
    if onnx_type == _BFLOAT16:
        return (value.bits().astype(np.uint32) << 16).view(np.float32)
    if (onnx_type in _EIGHT_BITS or onnx_type in _ELEMENTS_A_BYTE) and onnx_type in onnx.TensorProto.DataType.values():
        proto = onnx.TensorProto(data_type=onnx_type, dims=value.shape(), raw_data=value.bits().tobytes())
        array: np.ndarray = onnx.numpy_helper.to_array(proto)
        return array
    return value.numpy()


class TroupeRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session

    def run(self, inputs: Any, **kwargs: Any) -> Tuple[np.ndarray, ...]:
        """Runs with inputs in the model's order (a list), by name (a dict), or the only one; returns the outputs in the
        model's order, by number and by name. Raises what `InferenceSession.run` raises."""
        declared = self._session.get_inputs()
        if isinstance(inputs, dict):
            feed = dict(inputs)
        else:
            listed = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(listed) > len(declared):
                raise InvalidArgument(f"{len(listed)} inputs were given to a model of {len(declared)}")
            feed = {arg.name: value for arg, value in zip(declared, listed)}
        for arg in declared:
            given = feed.get(arg.name)
            if isinstance(given, np.ndarray):
                feed[arg.name] = _of_type(given, arg.onnx_type)
        values = self._session.run_with_ort_values(None, feed)
        names = [arg.name for arg in self._session.get_outputs()]
        outputs: Tuple[np.ndarray, ...] = namedtupledict("Outputs", names)(*map(_to_array, values))
        return outputs


class TroupeBackend(Backend):
    """See the top of this module."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns whether the model can be loaded."""
        try:
            cls.prepare(model, device, **kwargs)
        except (RuntimeError, NotImplementedError):
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> TroupeRep:
        """Loads a model: a ModelProto, its bytes, or a file. Raises what `InferenceSession` raises, and
        `errors.InvalidArgument` for a device that is not there."""
        if not cls.supports_device(device):
            raise InvalidArgument(f"there is no device '{device}'")
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        return TroupeRep(InferenceSession(source, providers=[_device(device)]))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> Tuple[np.ndarray, ...]:
        """Loads a model and runs it once."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: Any,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Optional[Sequence[Tuple[Any, Tuple[int, ...]]]] = None,
        **kwargs: Any,
    ) -> Tuple[np.ndarray, ...]:
        """Runs one operator. inputs: arrays in the order of the node's inputs. opset_version: of the operator; by
        default onnx's newest."""
        names = [name for name in node.input if name]
        arrays = [np.asarray(array) for array in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        described = [
            onnx.helper.make_tensor_value_info(name, _onnx_type(array.dtype), array.shape)
            for name, array in zip(names, arrays)
        ]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", described, outputs)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_operatorsetid(node.domain, opset)])
        return cls.run_model(model, dict(zip(names, arrays)), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether there is such a device: "CPU", or a word of troupe's."""
        name = _device(device)
        if name in ("cpu", "all"):
            return True
        return any(d["name"] == name for d in shared_engine(["all"], {}).devices())


def _onnx_type(dtype: np.dtype) -> int:
    return _core.value_from_numpy(np.empty(0, dtype)).onnx_type


is_compatible = TroupeBackend.is_compatible
prepare = TroupeBackend.prepare
run_model = TroupeBackend.run_model
run_node = TroupeBackend.run_node
supports_device = TroupeBackend.supports_device

__all__: List[str] = ["TroupeBackend", "TroupeRep", "is_compatible", "prepare", "run_model", "run_node",
                      "supports_device"]
