"""A line on the standard error output while something takes long: `loading model.onnx … 3 s`. Gone when it has
ended."""
from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Callable, Optional, Type

_PATIENCE = 1.0  # seconds for which nothing is shown
_PERIOD = 0.25
_wanted: Optional[bool] = None


def show_progress(wanted: Optional[bool]) -> None:
    """Says whether long loads and first runs show a line of progress; None, as at first: on a terminal and in a
    notebook."""
    global _wanted
    _wanted = wanted


def _is_wanted() -> bool:
    if _wanted is not None:
        return _wanted
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


class Progress:
    """A context that shows `what` and the seconds since it began. `more` may add words, e.g. how far weights have
    come."""

    def __init__(self, what: str, more: Callable[[], str] = lambda: "") -> None:
        self._what = "".join(c if c.isprintable() else "?" for c in what)  # names of files must not steer terminals
        self._more = more
        self._end = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "Progress":
        if _is_wanted():
            self._thread = threading.Thread(target=self._show, args=(time.monotonic(),), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end.set()
        if self._thread:
            self._thread.join()

    def _show(self, began: float) -> None:
        if self._end.wait(_PATIENCE):
            return
        longest = 0
        while True:
            text = f"{self._what} … {time.monotonic() - began:.0f} s{self._more()}"
            longest = max(longest, len(text))
            self._write("\r" + text.ljust(longest))
            if self._end.wait(_PERIOD):
                break
        self._write("\r" + " " * longest + "\r")

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # closed: there is no reader
            pass
