"""Tensors, devices and descriptions of values with onnxruntime's names."""
from __future__ import annotations

import enum
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from troupe import _core
from troupe._options import _refuse
from troupe.errors import InvalidArgument

# onnxruntime's word for an element type, by ONNX's number.
_ELEMENT_WORDS = {
    0: "undefined", 1: "float", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
    9: "bool", 10: "float16", 11: "double", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8e4m3fn",
    18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4e2m1",
    24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
_NUMPY_TYPES: Dict[int, Any] = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 8: np.object_,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip

_ELEMENTS_A_BYTE = {21: 2, 22: 2, 23: 2, 25: 4, 26: 4}

_SEQUENCE, _OPTIONAL = 32, 64  # added to an element's number, as troupe's types have it


def is_tensor(onnx_type: int) -> bool:
    """Returns whether a value is a tensor: not a sequence of some, and not optional."""
    return onnx_type < _SEQUENCE


def type_word(onnx_type: int) -> str:
    """Returns e.g. "tensor(float)" for ONNX's element type 1, "seq(tensor(float))" for a sequence of such."""
    word = f"tensor({_ELEMENT_WORDS[onnx_type % _SEQUENCE]})"
    if onnx_type & _SEQUENCE:
        word = f"seq({word})"
    return f"optional({word})" if onnx_type & _OPTIONAL else word


def onnx_type_of(element_type: Any) -> int:
    """Returns ONNX's number for a NumPy type or such a number; raises `errors.InvalidArgument` for others."""
    numpy_type: Any = element_type
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        if element_type != 0 and int(element_type) in _ELEMENT_WORDS:
            return int(element_type)
    else:
        wanted = np.dtype(numpy_type)
        for number, known in _NUMPY_TYPES.items():
            if np.dtype(known) == wanted:
                return number
        if wanted.kind in "US":
            return 8
    raise InvalidArgument(f"{element_type!r} is not an element type of a tensor")


def numpy_type_of(onnx_type: int) -> Any:
    """Returns the NumPy type of arrays of ONNX's element type; None if NumPy has none."""
    return _NUMPY_TYPES.get(onnx_type)


class NodeArg:
    """An input or output of a model: `name`, `type` (e.g. "tensor(float)"), `shape` (numbers; symbolic dims as str)."""

    def __init__(self, name: str, onnx_type: int, shape: Optional[Sequence[Union[int, str]]]) -> None:
        self.name = name
        self.onnx_type = onnx_type
        self.type = type_word(onnx_type)
        self.shape: List[Union[int, str, None]] = list(shape) if shape is not None else []

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What a model's file says of itself; texts are empty where it does not."""

    def __init__(self, facts: Dict[str, Any]) -> None:
        self.producer_name: str = facts["producer_name"]
        self.producer_version: str = facts["producer_version"]
        self.graph_name: str = facts["graph_name"]
        self.graph_description: str = facts["graph_description"]
        self.domain: str = facts["domain"]
        self.description: str = facts["description"]
        self.version: int = facts["version"]
        self.custom_metadata_map: Dict[str, str] = facts["custom_metadata_map"]


class OrtMemType(enum.IntEnum):
    """Where memory is, as onnxruntime counts."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0


class OrtDevice:
    """A device: `device_type` is "cpu" or "vulkan"."""

    def __init__(self, device_type: str, device_id: int = 0) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(device_name: str, device_id: int) -> "OrtDevice":
        """Returns the device called so, e.g. ("vulkan", 0)."""
        return OrtDevice(device_name, device_id)

    def device_type(self) -> str:
        return self._type

    def device_id(self) -> int:
        return self._id


def troupe_device(device_type: str, device_id: int) -> str:
    """Returns troupe's name of a device: "cpu", "vulkan:1"; what has a name of troupe's keeps it."""
    word = device_type.lower()
    if word == "cuda":
        _refuse("device type 'cuda'", "GPUs are reached through Vulkan: 'vulkan'")
    if word in ("cpu", "") or ":" in device_type or "/" in device_type:
        return device_type or "cpu"
    return f"{word}:{device_id}"


class OrtValue:
    """A tensor in the host's memory or on a device. `ortvalue_from_numpy`, `from_dlpack` and `__dlpack__` do not copy
    where they need not; `numpy()` copies. Types that NumPy does not have (bfloat16, floats and integers of 8 bits and
    less that it lacks) come as `bits()`."""

    def __init__(self, value: "_core.Value") -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array: npt.ArrayLike, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """Returns a value over an array's memory, as onnxruntime does: what is written to one is in the other. A copy
        if the array is read-only, not in C order, or of another byte order. For a device of a session there is
        `InferenceSession.put`."""
        name = troupe_device(device_type, device_id)
        if name != "cpu":
            _refuse(f"OrtValue on device '{name}'",
                    "devices belong to engines: InferenceSession.put(array, device) puts it there")
        shared = isinstance(array, np.ndarray) and array.flags.writeable
        return OrtValue(_core.value_from_numpy(array, copy=not shared))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray, onnx_element_type: int) -> "OrtValue":
        """Takes bits for elements of a type that NumPy does not have: uint16 for bfloat16 (16), uint8 for 8-bit floats
        (17 to 20, 24); one uint8 for two 4-bit elements (21 to 23) or four 2-bit ones (25, 26) along the last axis."""
        shape = list(data.shape)
        if onnx_element_type in _ELEMENTS_A_BYTE:
            if not shape:
                raise InvalidArgument(
                    "elements of less than a byte share bytes along the last axis: the array has none"
                )
            shape[-1] *= _ELEMENTS_A_BYTE[onnx_element_type]
        return OrtValue(_core.value_from_bits(data, onnx_element_type, shape))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> "OrtValue":
        """Returns zeros in the host's memory, to be an output (`IOBinding.bind_ortvalue_output`)."""
        if troupe_device(device_type, device_id) != "cpu":
            _refuse("a value without elements on a device",
                    "bind the output by name: IOBinding.bind_output(name, device_type)")
        return OrtValue(_core.empty_value(list(shape), onnx_type_of(element_type)))

    @staticmethod
    def from_dlpack(data: Any, is_bool_tensor: bool = False) -> "OrtValue":
        """Takes a tensor of another library over without a copy; it has to be contiguous and in the host's memory.
        `is_bool_tensor`: libraries before DLPack 1.0 hand bool over as uint8."""
        value = OrtValue(_core.value_from_dlpack(data))
        if is_bool_tensor and value.element_type() == 2:
            return OrtValue(_core.value_from_bits(value.bits(), 9, value.shape()))
        return value

    def __dlpack__(self, stream: Any = None) -> Any:
        """Returns a DLPack capsule: of the same bytes if they are this value's alone, else of a copy."""
        return self._value.dlpack()

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Returns (1, 0): the host's memory, where the bytes are brought."""
        return (1, 0)

    def to_dlpack(self) -> Any:
        """As `__dlpack__`."""
        return self._value.dlpack()

    def numpy(self) -> np.ndarray:
        """Returns a copy as an array; raises `errors.NotImplemented` for types that NumPy does not have."""
        return self._value.numpy()

    def bits(self) -> np.ndarray:
        """Returns a copy of the bytes as unsigned integers of the elements' width; of smaller types a flat array of
        bytes, the first element in the lowest bits."""
        return self._value.bits()

    def update_inplace(self, array: npt.ArrayLike) -> None:
        """Writes an array of the same type and shape over the elements."""
        self._value.assign(_core.value_from_numpy(array, copy=False))

    def shape(self) -> List[int]:
        return self._value.shape

    def data_type(self) -> str:
        """Returns e.g. "tensor(float)"."""
        return type_word(self._value.onnx_type)

    def element_type(self) -> int:
        """Returns ONNX's number of the element type, e.g. 1 for float32."""
        return self._value.onnx_type

    def device_name(self) -> str:
        """Returns where it is: "cpu", or troupe's name of a device such as "vulkan:0"."""
        return self._value.device

    def data_ptr(self) -> int:
        """Returns the address of the bytes; raises `errors.NotImplemented` if they are in a device's own memory."""
        return self._value.address

    def has_value(self) -> bool:
        return True

    def is_tensor(self) -> bool:
        return True

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return False

    def tensor_size_in_bytes(self) -> int:
        return self._value.nbytes

    def __repr__(self) -> str:
        return f"OrtValue({self.data_type()}, {self.shape()}, on '{self.device_name()}')"

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor: Any) -> "OrtValue":
        """Refused: troupe has no sparse tensors."""
        _refuse("ort_value_from_sparse_tensor", "troupe has no sparse tensors")

    def as_sparse_tensor(self) -> Any:
        """Refused: troupe has no sparse tensors."""
        _refuse("as_sparse_tensor", "troupe has no sparse tensors")


class SparseTensor:
    """Refused: troupe has no sparse tensors."""

    def __init__(self, sparse_tensor: Any = None) -> None:
        _refuse("SparseTensor", "troupe has no sparse tensors")
