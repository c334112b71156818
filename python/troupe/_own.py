"""What the policies and strategies of a program have in common: the engine calls them by a name, and errors say where
they are."""
from __future__ import annotations

import functools
import traceback
from typing import Any, Optional

from troupe.errors import InvalidArgument


class Own:
    """A function, or a class with a method that the engine calls."""

    def __init__(self, made_of: Any, method: str) -> None:
        functools.update_wrapper(self, made_of)
        self._failure: Optional[BaseException] = None  # that the last call raised
        code = getattr(getattr(made_of, method, made_of), "__code__", None)
        self.name: str = getattr(made_of, "__name__", type(made_of).__name__).strip("<>")
        self._file = code.co_filename if code else ""
        self._where = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(made_of)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name} ({self._where})>"

    def _failed(self, failure: BaseException) -> InvalidArgument:
        """Notes what a call raised; returns it as an error with the last line of the own file that it came through."""
        self._failure = failure
        frames = traceback.extract_tb(failure.__traceback__)
        mine = [frame for frame in frames if frame.filename == self._file] or frames[-1:]
        line = f"{mine[-1].filename}:{mine[-1].lineno}, in {mine[-1].name}"
        return InvalidArgument(f"{type(failure).__name__}: {failure} ({line})")

    def _refused(self, what: str) -> InvalidArgument:
        return InvalidArgument(f"it answered {what} ({self._where})")
