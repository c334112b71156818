// Painting a chart. What is narrower than a pixel is painted once a pixel, so that a hundred thousand bars cost what the screen is wide.

const KIND_COLOURS = ["--run", "--chunk", "--node", "--upload", "--download", "--other"];
const SERIES_COLOURS = ["--memory-1", "--memory-2", "--memory-3"];
const FONT = '12px system-ui, "DejaVu Sans", sans-serif';

function paintChart(chart) {
  const g = chart.canvas.getContext("2d");
  const ratio = window.devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const top = chart.box.scrollTop;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.fillStyle = colour("--back");
  g.fillRect(0, 0, chart.width, chart.visible);
  g.save();
  g.translate(0, -top);
  paintGrid(g, chart, colour);
  g.save();
  g.beginPath();
  g.rect(GUTTER, top, chart.width - GUTTER, chart.visible);
  g.clip();
  for (const row of chart.rows) {
    if (row.y + row.height < top || row.y > top + chart.visible) continue;
    if (row.counter) paintCounter(g, chart, row, colour);
    else paintBars(g, chart, row, colour);
  }
  paintEdges(g, chart, colour);
  g.restore();
  paintGutter(g, chart, colour);
  g.restore();
  paintAxis(g, chart, colour);
}

function paintGrid(g, chart, colour) {
  const x = chart.x;
  g.fillStyle = colour("--line");
  for (const t of x.ticks(Math.max(2, chart.width / 130))) g.fillRect(Math.round(x(t)), 0, 0.5, chart.height);
  chart.lanes.forEach((l, i) => i && g.fillRect(0, l.top - GAP / 2, chart.width, 1));
}

function paintAxis(g, chart, colour) {
  const x = chart.x, ticks = x.ticks(Math.max(2, chart.width / 130));
  g.fillStyle = colour("--raised");
  g.fillRect(0, 0, chart.width, AXIS);
  g.fillStyle = colour("--line");
  g.fillRect(0, AXIS, chart.width, 1);
  g.fillStyle = colour("--faint");
  g.font = FONT;
  g.textBaseline = "middle";
  g.textAlign = "center";
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : chart.domain;
  const [by, unit] = step >= 1e9 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : [1e3, "µs"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / by) + 1e-9));
  for (const t of ticks) {
    const label = `${d3.format(`,.${digits}f`)(t / by)} ${unit}`;
    const half = g.measureText(label).width / 2;
    if (x(t) - half > GUTTER - 20 && x(t) + half < chart.width) g.fillText(label, x(t), AXIS / 2);
  }
}

function paintGutter(g, chart, colour) {
  g.fillStyle = colour("--back");
  g.fillRect(0, 0, GUTTER - 1, chart.height);
  g.fillStyle = colour("--line");
  g.fillRect(GUTTER - 1, 0, 1, chart.height);
  g.textAlign = "left";
  g.textBaseline = "middle";
  for (const { lane, top } of chart.lanes) {
    g.fillStyle = colour("--ink");
    g.font = `600 ${FONT}`;
    g.fillText(fitText(g, lane.name, GUTTER - 22), 10, top + ROW / 2);
    g.font = FONT;
    if (lane.nodes + lane.moves === 0 && lane.busy === 0) continue;
    const part = lane.busy / chart.trace.end;
    g.fillStyle = colour("--run");
    g.fillRect(10, top + ROW + 8, 60, 7);
    g.fillStyle = colour("--node");
    g.fillRect(10, top + ROW + 8, 60 * Math.min(part, 1), 7);
    g.fillStyle = colour("--faint");
    g.fillText(`${(100 * part).toFixed(part < 0.1 ? 1 : 0)} % busy`, 76, top + ROW + 12);
  }
  for (const row of chart.rows) {
    if (!row.counter) continue;
    g.fillStyle = colour("--faint");
    g.textAlign = "right";
    g.fillText(row.counter.name, GUTTER - 8, row.y + 9);
    g.fillText(`≤ ${counterText(row.counter, row.most)}`, GUTTER - 8, row.y + 25);
    g.textAlign = "left";
  }
}

// As much of a text as fits, in a font whose letters are about alike.
function fitText(g, text, width) {
  if (text.length * 9 < width) return text;
  let end = Math.min(text.length, Math.floor(width / 3.5));
  if (end === text.length && g.measureText(text).width <= width) return text;
  while (end > 0 && g.measureText(`${text.slice(0, end)}…`).width > width) end -= Math.max(1, Math.floor(end / 8));
  return end > 0 ? `${text.slice(0, end)}…` : "";
}

// Names like "/layer3/attention/MatMul" begin alike: of those the end is shown.
function fitPath(g, text, width) {
  for (let at = 0; at >= 0 && at < text.length - 1; at = text.indexOf("/", at + 1)) {
    const rest = at ? `…${text.slice(at)}` : text;
    if (rest.length * 4 < width && g.measureText(rest).width <= width) return rest;
  }
  return fitText(g, text.slice(text.lastIndexOf("/") + 1) || text, width);
}

function paintBars(g, chart, row, colour) {
  const { trace } = chart, x = chart.x, bars = trace.order[row.track];
  const [from, to] = [x.invert(GUTTER), x.invert(chart.width)];
  const fills = KIND_COLOURS.map(colour), critical = colour("--critical");
  g.font = FONT;
  g.textBaseline = "middle";
  g.textAlign = "left";
  const painted = new Map(); // the pixel up to which each look has been painted
  const labels = [];
  for (let i = trace.firstAt(row.track, from); i < bars.length && trace.begin[bars[i]] <= to; ++i) {
    const b = bars[i];
    const left = x(trace.begin[b]), width = Math.max(x(trace.until[b]) - left, 1);
    const faded = (chart.onlyCritical && !trace.isCritical[b] && trace.kind[b] !== 0) || (trace.matches && !trace.matches[b]);
    const look = trace.kind[b] * 4 + (faded ? 2 : 0) + trace.isCritical[b];
    const last = Math.floor(left + width);
    if (last <= (painted.get(look) ?? -1)) continue;
    painted.set(look, last);
    g.globalAlpha = faded ? 0.18 : 1;
    g.fillStyle = fills[trace.kind[b]];
    g.fillRect(left, row.y, width > 3 ? width - 0.5 : width, row.height);
    if (trace.isCritical[b]) {
      g.fillStyle = critical;
      g.fillRect(left, row.y + row.height - 4, width > 3 ? width - 0.5 : width, 4);
    }
    if (width > 34 && !faded) labels.push(b);
  }
  g.globalAlpha = 1;
  for (const b of labels) paintLabel(g, chart, row, b, colour);
  if (chart.hovered >= 0 && trace.track[chart.hovered] === row.track) {
    const left = x(trace.begin[chart.hovered]);
    g.strokeStyle = colour("--ink");
    g.lineWidth = 2;
    g.strokeRect(left, row.y, Math.max(x(trace.until[chart.hovered]) - left, 2), row.height);
  }
}

function paintLabel(g, chart, row, b, colour) {
  const { trace } = chart;
  const left = Math.max(chart.x(trace.begin[b]), GUTTER), right = Math.min(chart.x(trace.until[b]), chart.width);
  const lightBar = trace.kind[b] <= 1;
  g.fillStyle = colour(lightBar ? "--on-light" : "--on-node");
  g.fillText(fitPath(g, trace.name(b), right - left - 8), left + 4, row.y + row.height / 2 - (trace.isCritical[b] ? 1 : 0));
}

function paintCounter(g, chart, row, colour) {
  const { counter, most } = row, x = chart.x, n = counter.at.length;
  const [from, to] = [x.invert(GUTTER), x.invert(chart.width)];
  const first = Math.max(d3.bisectRight(counter.at, from) - 1, 0), end = d3.bisectRight(counter.at, to);
  const y = (v) => row.y + row.height * (1 - v / most);
  const below = new Float64Array(Math.max(end - first, 0));
  counter.series.forEach((_, s) => {
    g.fillStyle = colour(counter.name === "memory" ? SERIES_COLOURS[s % SERIES_COLOURS.length] : "--queue");
    for (let i = first; i < end; ) {
      const left = Math.max(x(counter.at[i]), GUTTER);
      let high = 0, low = Infinity;
      // Steps within one pixel are painted as their highest.
      let next = i;
      do {
        high = Math.max(high, below[next - first] + counter.values[next][s]);
        low = Math.min(low, below[next - first]);
        below[next - first] += counter.values[next][s];
        ++next;
      } while (next < end && x(counter.at[next]) < left + 1);
      const right = next < n ? x(counter.at[next]) : x(chart.trace.end);
      if (high > low) g.fillRect(left, y(high), Math.max(right - left, 0.6), y(low) - y(high));
      i = next;
    }
  });
  g.fillStyle = colour("--line");
  g.fillRect(GUTTER, row.y + row.height, chart.width - GUTTER, 1);
}

function paintEdges(g, chart, colour) {
  const { trace, hovered } = chart;
  g.strokeStyle = colour("--critical");
  g.lineWidth = 1.5;
  for (const [from, to] of trace.criticalEdges) paintEdge(g, chart, from, to);
  g.strokeStyle = colour("--ink");
  if (hovered < 0) return;
  for (const b of trace.before.get(hovered) || []) paintEdge(g, chart, b, hovered);
  for (const b of trace.after.get(hovered) || []) paintEdge(g, chart, hovered, b);
}

function paintEdge(g, chart, from, to) {
  const { trace } = chart, a = chart.rowOf.get(trace.track[from]), b = chart.rowOf.get(trace.track[to]);
  const x0 = chart.x(trace.until[from]), x1 = chart.x(trace.begin[to]);
  if (a === b || Math.max(x0, x1) < GUTTER || Math.min(x0, x1) > chart.width) return;
  const y0 = a.y + a.height / 2, y1 = b.y + b.height / 2, bend = Math.min(Math.abs(x1 - x0) / 2 + 6, 40);
  g.beginPath();
  g.moveTo(x0, y0);
  g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  g.stroke();
}
