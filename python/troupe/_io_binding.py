"""Binding of inputs and outputs to values, with onnxruntime's names."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from troupe import _core
from troupe._values import OrtDevice, OrtValue, onnx_type_of, troupe_device
from troupe.errors import InvalidArgument

if TYPE_CHECKING:
    from troupe._inference import InferenceSession


class IOBinding:
    """Inputs and outputs of `InferenceSession.run_with_iobinding`: given once, used by any number of runs."""

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: Dict[str, Any] = {}
        # by name: "value", "buffer", "device" or "cpu", and what is meant
        self._outputs: Dict[str, Tuple[str, Any]] = {}
        self._results: Dict[str, OrtValue] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: npt.ArrayLike) -> None:
        """Binds an array, whose memory runs read where it is."""
        self._check(name, self._session.get_inputs(), "input")
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: Union[str, OrtDevice], device_id: int, element_type: Any, shape: Sequence[int],
        buffer_ptr: int
    ) -> None:
        """Binds host memory by its address; the caller keeps it, and answers for its size."""
        self._check(name, self._session.get_inputs(), "input")
        if _device_of(device_type, device_id) != "cpu":
            raise InvalidArgument(f"input '{name}': addresses are of the host's memory; for a device there is "
                                  "InferenceSession.put")
        self._inputs[name] = OrtValue(_core.value_at_address(buffer_ptr, onnx_type_of(element_type), list(shape)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, on whatever device it is."""
        self._check(name, self._session.get_inputs(), "input")
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: Union[str, OrtDevice] = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Optional[Sequence[int]] = None,
        buffer_ptr: Optional[int] = None,
    ) -> None:
        """Asks for an output: in the host's memory ("cpu"), left on the device that makes it (another device type), or
        written to host memory by its address (with element type and shape)."""
        self._check(name, self._session.get_outputs(), "output")
        device = _device_of(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[name] = ("cpu", None) if device == "cpu" else ("device", device)
        elif device != "cpu" or shape is None or element_type is None:
            raise InvalidArgument(f"output '{name}': an address is of the host's memory, and needs element type and "
                                  "shape")
        else:
            self._outputs[name] = ("buffer", (buffer_ptr, onnx_type_of(element_type), list(shape)))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Has runs write an output to a value in the host's memory."""
        self._check(name, self._session.get_outputs(), "output")
        self._outputs[name] = ("value", ortvalue)

    def get_outputs(self) -> List[OrtValue]:
        """Returns the last run's outputs in the order of their binding."""
        return [self._results[name] for name in self._outputs if name in self._results]

    def copy_outputs_to_cpu(self) -> List[np.ndarray]:
        """Returns copies of the last run's outputs as arrays."""
        return [value.numpy() for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()

    def synchronize_inputs(self) -> None:
        """Does nothing: a run waits for its inputs by itself."""

    def synchronize_outputs(self) -> None:
        """Does nothing: when a run has ended, its outputs are there."""

    def _check(self, name: str, known: List[Any], what: str) -> None:
        if all(arg.name != name for arg in known):
            names = ", ".join(arg.name for arg in known)
            raise InvalidArgument(f"the model has no {what} '{name}'; it has: {names}")

    def kept_outputs(self) -> List[str]:
        """Returns the outputs that stay on their device."""
        return [name for name, (how, _) in self._outputs.items() if how == "device"]

    def accept(self, values: Dict[str, OrtValue]) -> None:
        """Takes a run's outputs, as each was asked for."""
        self._results = {}
        for name, (how, wanted) in self._outputs.items():
            value = values[name]
            if how == "value":
                wanted._value.assign(value._value)
                value = wanted
            elif how == "buffer":
                address, number, shape = wanted
                if (value.element_type(), value.shape()) != (number, shape):
                    raise InvalidArgument(
                        f"output '{name}' is {value.data_type()} {value.shape()}, which does not fit its buffer of "
                        f"{shape}"
                    )
                value._value.copy_to(address)
            self._results[name] = value


def _device_of(device_type: Union[str, OrtDevice], device_id: int) -> str:
    if isinstance(device_type, OrtDevice):
        return troupe_device(device_type.device_type(), device_type.device_id())
    return troupe_device(device_type, device_id)
