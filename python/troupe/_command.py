"""What the troupe command does and an engine in this process does not: it opens engines of its own, one after the
other. Functions here run the command of this installation and return what it prints as JSON."""
from __future__ import annotations

import json
import logging
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np

from troupe._notebook import Rows, Table
from troupe.errors import Fail, InvalidArgument, NoSuchFile

Path = Union[str, "os.PathLike[str]"]
_WRONG_USE = 2  # the exit status


def command() -> str:
    """Returns the command of this installation: the package's own, else the one in the path. Raises
    `errors.NoSuchFile`."""
    own = pathlib.Path(__file__).parent / "bin" / "troupe"
    found = str(own) if own.exists() else shutil.which("troupe")
    if not found:
        raise NoSuchFile("the command is neither in the package's folder bin nor in the path: install the package "
                         "troupe")
    return found


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """Makes options of the command: dims={"batch": 8} is --dim=batch=8, lists are given one by one, None is left
    out."""
    for name, value in options.items():
        option = "--" + {"dims": "dim", "pins": "pin"}.get(name, name).replace("_", "-")
        if isinstance(value, bool):
            if value:
                yield option
        elif isinstance(value, Mapping):
            yield from (f"{option}={key}={each}" for key, each in value.items())
        elif isinstance(value, (list, tuple)):
            yield from (f"{option}={'='.join(each) if isinstance(each, tuple) else each}" for each in value)
        elif value is not None:
            yield f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}"


def _run(words: Sequence[str], inputs: Optional[Mapping[str, Any]], options: Mapping[str, Any]) -> Any:
    """Returns what the command prints. Raises `errors.InvalidArgument` if it is used wrongly, else `errors.Fail`, if it
    prints nothing. What it says of its work goes into the log `troupe`."""
    with tempfile.TemporaryDirectory() as folder:
        files: List[str] = []
        for i, (name, array) in enumerate((inputs or {}).items()):
            file = os.path.join(folder, f"{i}.npy")
            np.save(file, np.asarray(array))
            files.append(f"--input={name}={file}")
        done = subprocess.run([command(), *words, *files, *_words(options), "--json"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
    said = done.stderr.strip().removeprefix("troupe: ")
    if done.returncode != 0 and not done.stdout:
        raise (InvalidArgument if done.returncode == _WRONG_USE else Fail)(said or f"status {done.returncode}")
    if said:
        logging.getLogger("troupe").warning("%s", said)
    return json.loads(done.stdout)


def verify(
    model: Path,
    inputs: Optional[Mapping[str, Any]] = None,
    *,
    devices: Union[str, Sequence[str]] = "all",
    rtol: float = 1e-3,
    atol: float = 1e-4,
    **options: Any,
) -> Rows:
    """Runs a model on each device, and on all together under every policy and strategy, and compares the answers with
    those of the CPU with nothing fused: `troupe verify`.

    Returns a row for each placement: placement, outcome ("same", "DIFFERS", "unsupported"), nodes (by device), pieces
    (by replica of a strategy), largest_absolute and largest_relative (of the differences), difference (in words; empty
    if there is none). inputs: arrays by name, others are made up; rtol, atol (in parts of an output's largest
    magnitude): what passes. options: others of the command by their names, such as dims={"batch": 8}, strategy,
    precision, seed, hosts, memory, threads.

    Raises `errors.InvalidArgument` for options that cannot be, `errors.Fail` if the model cannot be run.
    """
    given = {"devices": devices, "rtol": rtol, "atol": atol, **options}
    return Rows(Table(row) for row in _run(["verify", os.fspath(model)], inputs, given))


def profile(
    model: Path,
    inputs: Optional[Mapping[str, Any]] = None,
    *,
    devices: Union[str, Sequence[str]] = "all",
    runs: int = 5,
    keep: bool = False,
    tune: bool = False,
    budget: float = 60,
    file: Path = "",
    **options: Any,
) -> Table:
    """Measures a model's operators beside their predicted times: `troupe profile`.

    Returns measured_ms and predicted_ms (of a run; the median of `runs`), operators (a row for each device and
    operator: device, operator, nodes, measured_ms, predicted_ms), bottlenecks, kept and tuned. keep: remembers the
    times for later predictions; tune: chooses the kernels of GPUs by measuring them, for about `budget` seconds on
    each. Both write `file`, else this user's, which engines read when they are opened (`profile_file`). inputs, options
    and what it raises: as `verify`.
    """
    given = {"devices": devices, "runs": runs, "keep": keep, "tune": tune, "budget": budget if tune else None,
             "file": file or None, **options}
    found = Table(_run(["profile", os.fspath(model)], inputs, given))
    for name in ("operators", "kept", "tuned"):
        found[name] = Rows(Table(row) for row in found.get(name) or [])
    return found


def calibrate(devices: Union[str, Sequence[str]] = "all", *, file: Path = "", **options: Any) -> Rows:
    """Measures how fast devices are, a few seconds each, and keeps that for later predictions: `troupe profile
    --calibrate`. Returns a row for each: device, and measured, figures by name. file, options and what it raises: as
    `profile`."""
    given = {"calibrate": True, "devices": devices, "file": file or None, **options}
    return Rows(Table(row) for row in _run(["profile"], None, given))
