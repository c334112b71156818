// Tables. All text is set as text: names come from models and are never HTML.

function addTable(parent, heading, columns, rows, onRow) {
  if (rows.length === 0) return;
  parent.appendChild(element("h2", heading));
  const table = parent.appendChild(element("div", "", "scroll")).appendChild(element("table"));
  const head = table.createTHead().insertRow();
  for (const c of columns) head.appendChild(element("th", c.title, c.number ? "number" : ""));
  const body = table.createTBody();
  rows.forEach((row) => {
    const line = body.insertRow();
    for (const c of columns) {
      const cell = line.insertCell();
      const value = c.of(row);
      cell.className = `${c.number ? "number" : ""} ${c.class ? c.class(row) : ""}`;
      value instanceof Node ? cell.append(value) : (cell.textContent = value);
      if (c.long) cell.title = value;
    }
    if (onRow) {
      line.className = "jump";
      line.addEventListener("click", () => onRow(row));
    }
  });
}

function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function meter(part) {
  const all = element("span");
  const bar = all.appendChild(element("span", "", "meter")).appendChild(element("i"));
  bar.style.width = `${Math.min(100 * part, 100)}%`;
  all.append(`${(100 * part).toFixed(1)} %`);
  return all;
}

function addLaneTable(parent, trace, heading) {
  addTable(parent, heading, [
    { title: "device", of: (l) => l.name, class: () => "name", long: true },
    { title: "host", of: (l) => l.host || "this one", class: () => "name" },
    { title: "busy", of: (l) => meter(l.busy / trace.end) },
    { title: "nodes", of: (l) => d3.format(",")(l.nodes), number: true },
    { title: "in nodes", of: (l) => timeText(l.work), number: true },
    { title: "moves", of: (l) => d3.format(",")(l.moves), number: true },
    { title: "in moves", of: (l) => timeText(l.move), number: true },
    { title: "most memory", of: (l) => (l.peakBytes < 0 ? "" : bytesText(l.peakBytes)), number: true },
    { title: "deepest queue", of: (l) => (l.peakQueue < 0 ? "" : l.peakQueue), number: true },
  ], trace.lanes.filter((l) => l.busy > 0 || l.peakBytes >= 0));
}

function addLongestTable(parent, chart, heading) {
  const trace = chart.trace;
  addTable(parent, heading, [
    { title: "node", of: (b) => trace.name(b), class: () => "name", long: true },
    { title: "operator", of: (b) => trace.op(b) },
    { title: "kernel", of: (b) => trace.kernel(b), class: () => "name", long: true },
    { title: "device", of: (b) => trace.lane(b).name },
    { title: "begin", of: (b) => timeText(trace.begin[b]), number: true },
    { title: "time", of: (b) => timeText(trace.until[b] - trace.begin[b]), number: true },
    { title: "of the run", of: (b) => `${((100 * (trace.until[b] - trace.begin[b])) / trace.end).toFixed(1)} %`, number: true },
    { title: "", of: (b) => (trace.isCritical[b] ? "critical" : ""), class: () => "critical" },
  ], trace.longest, (b) => chart.show(b));
}

const ms = (value) => `${d3.format(",.3f")(value)} ms`;
const signed = (value) => `${d3.format("+,.3f")(value)} ms`;

function addDiffTables(parent, diff, listed = 200) {
  const some = (rows, heading) => (rows.length > listed ? `${heading} (the first ${listed} of ${rows.length})` : `${heading} (${rows.length})`);
  const what = [
    { title: "what", of: (r) => r.name, class: () => "name", long: true },
    { title: "operator", of: (r) => r.op || r.kind },
  ];
  const pair = [...what,
    { title: "device before", of: (r) => r.lane_a },
    { title: "after", of: (r) => r.lane_b, class: (r) => (r.lane_a === r.lane_b ? "" : "critical") },
    { title: "time before", of: (r) => ms(r.a_ms), number: true },
    { title: "after", of: (r) => ms(r.b_ms), number: true },
    { title: "difference", of: (r) => signed(r.delta_ms), number: true },
    { title: "ratio", of: (r) => (r.ratio === null ? "" : `${d3.format(".3~g")(r.ratio)} ×`), number: true },
  ];
  const single = [...what,
    { title: "device", of: (r) => r.lane },
    { title: "time", of: (r) => ms(r.ms), number: true },
  ];
  addTable(parent, "Devices", [
    { title: "device", of: (l) => l.name, class: () => "name" },
    { title: "busy before", of: (l) => ms(l.busy_a_ms), number: true },
    { title: "after", of: (l) => ms(l.busy_b_ms), number: true },
    { title: "difference", of: (l) => signed(l.busy_b_ms - l.busy_a_ms), number: true },
  ], diff.lanes);
  for (const [rows, heading, columns] of [[diff.moved, "Moved to another device", pair], [diff.slower, "Slower", pair],
    [diff.faster, "Faster", pair], [diff.only_a, "Only before", single], [diff.only_b, "Only after", single]])
    addTable(parent, some(rows, heading), columns, rows.slice(0, listed));
}
