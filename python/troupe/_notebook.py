"""What notebooks show: counters as tables, plans as pictures, traces as pages. All names come from models and files, so
all text is escaped."""
from __future__ import annotations

import html
import json
import os
from typing import Any, Dict, List, Sequence, Tuple, Union

from troupe import _core

# of a picture, in pixels: a device's column, a chunk's box, its row, the heads
_COLUMN, _BOX, _ROW, _TOP = 210, 180, 86, 34
_MOST_CHUNKS = 300  # that a picture shows
_MOST_NODES = 40  # that a chunk's tooltip lists


class Table(Dict[str, Any]):
    """Counters by name: a dict that notebooks show as a table."""

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th style='text-align:left'>{html.escape(str(k))}</th><td>{_cell(v)}</td></tr>"
                       for k, v in self.items())
        return f"<table>{rows}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return Table(value)._repr_html_()
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "".join(Table(v)._repr_html_() for v in value)
    return html.escape(f"{value:.4g}" if isinstance(value, float) else str(value))


class Rows(List[Table]):
    """Tables of the same counters: a list that notebooks show as one table, a row each."""

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = "".join("<tr>" + "".join(f"<td>{_cell(row.get(name, ''))}</td>" for name in names) + "</tr>"
                       for row in self)
        return f"<table><tr>{head}</tr>{rows}</table>"


class Plan(str):
    """A plan as text, JSON or DOT (`Session.plan`); notebooks show a picture of it: devices as columns, chunks as
    boxes, later ones below."""

    _drawn = "[]"  # what the picture is of, as JSON

    @staticmethod
    def of(text: str, drawn: str) -> "Plan":
        """Returns the text as a plan whose picture is of the JSON `drawn`."""
        made = Plan(text)
        made._drawn = drawn
        return made

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it: as JSON, which the option plan_file takes, if the name ends in .json; else as it reads."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._drawn if os.fspath(path).endswith(".json") else self)

    @staticmethod
    def load(path: Union[str, "os.PathLike[str]"]) -> "Plan":
        """Reads a plan that was saved as JSON, to be looked at."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return Plan.of(text, text)

    def _repr_svg_(self) -> str:
        plans = json.loads(self._drawn)
        return plan_svg(plans if isinstance(plans, list) else [plans])

    def _repr_html_(self) -> str:
        return f"{self._repr_svg_()}<details><summary>as text</summary><pre>{html.escape(self)}</pre></details>"


class Trace:
    """What happened in one run: when each part was sent, began and ended, and on which device."""

    def __init__(self, trace: "_core.Trace") -> None:
        self._trace = trace

    def json(self) -> str:
        """Returns it in the format that ui.perfetto.dev and chrome://tracing open."""
        return self._trace.json()

    def html(self) -> str:
        """Returns it as one page that needs no network."""
        return self._trace.html()

    def findings(self) -> Rows:
        """Returns what slows the run down, what gains most first: severity, cause, where, what, lost, advice, gain."""
        return Rows(Table(finding) for finding in self._trace.findings())

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it as the name ends: .html, the page; .paje, for ViTE and StarVZ; .rec, StarPU's tasks.rec; .et,
        Chakra's execution traces, NAME.0.et … for each device; else JSON."""
        stem, format = os.path.splitext(os.fspath(path))
        if format == ".et":
            for device, trace in enumerate(self._trace.chakra()):
                with open(f"{stem}.{device}.et", "wb") as file:
                    file.write(trace)
            return
        made = {".html": lambda: self.html().encode(), ".paje": self._trace.paje, ".rec": self._trace.tasks_rec}
        make = made.get(format, lambda: self.json().encode())
        with open(path, "wb") as file:
            file.write(make())

    def _repr_html_(self) -> str:
        return f'<iframe style="width:100%;height:600px;border:0" srcdoc="{html.escape(self.html())}"></iframe>'


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{html.escape(words)}</text>'


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = "GiB"
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def _levels(chunks: Sequence[Dict[str, Any]]) -> Dict[int, int]:
    """Returns the row of each chunk: below all that it waits for, and below the chunk before it on its device."""
    rows: Dict[int, int] = {}
    last: Dict[str, int] = {}
    for chunk in chunks:  # a plan lists them in an order in which they can run
        waits = [rows[p] for p in chunk["predecessors"] if p in rows] + [last.get(chunk["device"], -1)]
        last[chunk["device"]] = rows[chunk["id"]] = 1 + max(waits)
    return rows


def _box(chunk: Dict[str, Any], x: float, y: float) -> str:
    nodes = [(n["domain"] + "." if n["domain"] else "") + n["op"] for n in chunk["nodes"]]
    listed = [f"{kind} '{n['name']}'" for kind, n in zip(nodes, chunk["nodes"][:_MOST_NODES])]
    if len(nodes) > _MOST_NODES:
        listed.append(f"and {len(nodes) - _MOST_NODES} more")
    kinds = list(dict.fromkeys(nodes))
    ends = ' stroke-width="3"' if chunk["produces_outputs"] else ""
    return (
        f"<g><title>{html.escape(chr(10).join(listed))}</title>"
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_BOX}" height="46" rx="6" fill="#eef3fb" stroke="#4a6fa5"{ends}/>'
        + _text(x + 8, y + 19, f"chunk {chunk['id']}: {len(nodes)} node{'s' if len(nodes) != 1 else ''}",
                'font-weight="bold"')
        + _text(x + 8, y + 36, _short(", ".join(kinds), 25))
        + "</g>"
    )


def _arrow(begin: Tuple[float, float], end: Tuple[float, float], words: str) -> str:
    middle = (begin[1] + end[1]) / 2
    path = (
        f'<path d="M{begin[0]:.0f},{begin[1]:.0f} '
        f'C{begin[0]:.0f},{middle:.0f} {end[0]:.0f},{middle:.0f} {end[0]:.0f},{end[1]:.0f}"'
    )
    dashed = ' stroke-dasharray="5 3"' if words else ""
    label = _text((begin[0] + end[0]) / 2 + 4, middle + 3, words,
                  'font-size="10" fill="#555" stroke="white" stroke-width="3" paint-order="stroke"') if words else ""
    return f'{path} fill="none" stroke="#777"{dashed}/>{label}'


def _moved(plan: Dict[str, Any]) -> Dict[Tuple[int, int], float]:
    """Returns the bytes that go from chunk to chunk over a link."""
    moved: Dict[Tuple[int, int], float] = {}
    for move in plan["transfers"]:
        if move["from"] and move["to"]:
            ends = (move["from"]["chunk"], move["to"]["chunk"])
            moved[ends] = moved.get(ends, 0) + (move["bytes"] or 0)
    return moved


def _body(plan: Dict[str, Any], top: float) -> Tuple[str, float, float]:
    """Returns what one plan looks like from `top` downwards, and its width and height."""
    devices = {d["name"]: i for i, d in enumerate(plan["devices"])}
    for chunk in plan["chunks"]:  # the host's own chunks are of no listed device
        devices.setdefault(chunk["device"], len(devices))
    chunks = plan["chunks"][:_MOST_CHUNKS]
    rows, moved = _levels(chunks), _moved(plan)
    place = {c["id"]: (15 + _COLUMN * devices[c["device"]], top + _TOP + _ROW * rows[c["id"]]) for c in chunks}
    height = _TOP + _ROW * (1 + max(rows.values(), default=-1))
    parts = []
    for name, column in devices.items():
        x = 15 + _COLUMN * column
        parts.append(f'<line x1="{x + _BOX / 2:.0f}" y1="{top + 22:.0f}" x2="{x + _BOX / 2:.0f}" '
                     f'y2="{top + height:.0f}" stroke="#ddd"/>')
        parts.append(_text(x + _BOX / 2, top + 16, _short(name, 28), 'font-weight="bold" text-anchor="middle"'))
    for chunk in chunks:
        x, y = place[chunk["id"]]
        for p in chunk["predecessors"]:
            if p in place:
                words = _size(moved[p, chunk["id"]]) if (p, chunk["id"]) in moved else ""
                parts.append(_arrow((place[p][0] + _BOX / 2, place[p][1] + 46), (x + _BOX / 2, y), words))
    parts += [_box(chunk, *place[chunk["id"]]) for chunk in chunks]
    if len(plan["chunks"]) > len(chunks):
        parts.append(_text(15, top + height + 4, f"and {len(plan['chunks']) - len(chunks)} more chunks"))
        height += 20
    return "".join(parts), 15 + _COLUMN * max(1, len(devices)), height


def _head(plan: Dict[str, Any]) -> str:
    head = f"{plan['model']['name']}: policy {plan['policy']}"
    return head + (f", predicted {plan['predicted_ms']:.3f} ms" if "predicted_ms" in plan else "")


def plan_svg(plans: Sequence[Dict[str, Any]]) -> str:
    """Returns a picture of plans, one below the other: what `Session.plan(…, "json")` says of each."""
    parts, width, height = [], 300.0, 6.0
    for plan in plans:
        head = _short(_head(plan), 90)
        parts.append(_text(15, height + 16, head, 'font-size="14"'))
        body, wide, high = _body(plan, height + 24)
        parts.append(body)
        width, height = max(width, wide, 15 + 8 * len(head)), height + 24 + high + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>'
    )
