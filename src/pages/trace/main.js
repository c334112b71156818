// The page: its charts, what is said beside the pointer, buttons and keys. `tracePage` is for the console and for tests.

const LEGEND = [["node", "--node"], ["upload", "--upload"], ["download", "--download"], ["chunk", "--chunk"], ["critical path", "--critical"],
  ["weights", "--memory-1"], ["values", "--memory-2"], ["leaving", "--memory-3"]];

function showTip(chart, event, bar, counter, time) {
  const tip = document.getElementById("tip");
  tip.hidden = bar < 0 && !counter;
  if (tip.hidden) return;
  tip.replaceChildren(...(counter ? counterLines(counter, time) : barLines(chart.trace, bar)));
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + height > window.innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 18}px`;
}

function barLines(trace, b) {
  const lines = [element("b", trace.name(b))];
  const say = (text, className) => text && lines.push(element("span", text, className));
  const { sent, answered, bytes, chunk } = trace.columns;
  const kind = ENUM_KINDS[trace.kind[b]];
  say([kind, trace.op(b), trace.kernel(b)].filter((t) => t).join(" · "));
  say(`${trace.lane(b).name}${chunk[b] >= 0 && kind !== "chunk" ? ` · chunk ${chunk[b]}` : ""}`);
  say(`${timeText(trace.until[b] - trace.begin[b])}: from ${timeText(trace.begin[b])} to ${timeText(trace.until[b])}`);
  if (bytes[b] >= 0) say(bytesText(bytes[b]));
  if (sent[b] >= 0) say(`sent at ${timeText(sent[b])}, answered at ${timeText(answered[b])}`);
  if (trace.isCritical[b]) say("on the critical path", "critical");
  return lines;
}

function counterLines(counter, time) {
  const lines = [element("b", counter.name)];
  const i = d3.bisectRight(counter.at, time) - 1;
  if (i >= 0) counter.series.forEach((s, k) => lines.push(element("span", `${s}: ${counterText(counter, counter.values[i][k])}`)));
  return lines;
}

function makePage() {
  const raw = JSON.parse(document.getElementById("data").textContent);
  const traces = raw.traces.map((t) => new Trace(t));
  const domain = Math.max(...traces.map((t) => t.end));
  const place = document.getElementById("charts"), tables = document.getElementById("tables");
  const charts = [];
  const hears = {
    zoomed: (of) => charts.forEach((c) => c !== of && c.follow(of.transform)),
    pointed: showTip,
  };
  for (const trace of traces) {
    if (traces.length > 1) place.append(element("h2", `${trace.title}: ${timeText(trace.end)}`));
    charts.push(new Chart(place, trace, domain, hears));
  }
  describe(raw, traces);
  if (raw.diff) addDiffTables(tables, raw.diff);
  charts.forEach((c) => {
    const of = charts.length > 1 ? `: ${c.trace.title}` : "";
    addLaneTable(tables, c.trace, `Devices${of}`);
    if (!raw.diff) addLongestTable(tables, c, "Longest nodes");
  });
  wire(charts);
  window.tracePage = { charts };
}

function describe(raw, traces) {
  const [first] = traces;
  const title = raw.diff ? "Two traces" : first.title || "troupe trace";
  document.title = document.getElementById("title").textContent = title;
  const nodes = (t) => `${d3.format(",")(d3.sum(t.lanes, (l) => l.nodes))} nodes`;
  document.getElementById("facts").textContent = raw.diff
    ? `${timeText(first.end)} before, ${timeText(traces[1].end)} after: ${signed(raw.diff.delta_ms)}; ${raw.diff.moved.length} moved, ` +
      `${raw.diff.slower.length} slower, ${raw.diff.faster.length} faster, ${raw.diff.unchanged} as before`
    : `${timeText(first.end)}, ${nodes(first)} on ${first.lanes.filter((l) => l.busy > 0).length} devices; nodes and moves of the critical path ` +
      `take ${timeText(first.criticalTime)}`;
  const legend = document.getElementById("legend");
  for (const [name, colour] of LEGEND) {
    const entry = element("span");
    const box = entry.appendChild(element("i"));
    box.style.background = `var(${colour})`;
    entry.append(name);
    legend.append(entry);
  }
}

function wire(charts) {
  const on = (id, what, f) => document.getElementById(id).addEventListener(what, f);
  const each = (f) => charts.forEach((c) => { f(c); c.paintSoon(); });
  const [lead] = charts;
  on("closer", "click", () => lead.scaleBy(2));
  on("farther", "click", () => lead.scaleBy(0.5));
  on("all", "click", () => lead.showAll());
  on("critical", "change", (e) => each((c) => (c.onlyCritical = e.target.checked)));
  on("search", "input", (e) => {
    let found = 0;
    each((c) => (found += c.trace.find(e.target.value.trim())));
    document.getElementById("found").textContent = e.target.value.trim() ? `${found} found` : "";
  });
  const keys = { "+": () => lead.scaleBy(2), "=": () => lead.scaleBy(2), "-": () => lead.scaleBy(0.5), 0: () => lead.showAll(),
    w: () => lead.scaleBy(1.5), s: () => lead.scaleBy(1 / 1.5), a: () => lead.moveBy(0.2), d: () => lead.moveBy(-0.2) };
  window.addEventListener("keydown", (e) => {
    if (e.target.tagName !== "INPUT" && !e.ctrlKey && !e.metaKey && !e.altKey && keys[e.key]) keys[e.key]();
  });
  window.addEventListener("resize", () => charts.forEach((c) => c.resize()));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => each(() => {}));
}

makePage();
