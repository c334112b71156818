// The data, and figures as text. Everything in the data is shown as text alone, never as HTML.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

const percent = part => `${(100 * part).toFixed(1)} %`;
const dimsText = dims => Object.entries(dims).map(([name, value]) => `${name}=${value}`).join(" ");
const fileName = path => path.slice(path.lastIndexOf("/") + 1);
const settingName = s => `${s.policy}, ${s.strategy}`;
const problemName = s => [fileName(s.model), dimsText(s.dims), "on", s.target].filter(Boolean).join(" ");

/// Returns the unit in which the shortest of some seconds is 1 or more.
function unitFor(seconds) {
  const shortest = d3.min(seconds.filter(s => s > 0));
  if (shortest < 1e-3)
    return { name: "µs", of: 1e6 };
  return shortest < 1 ? { name: "ms", of: 1e3 } : { name: "s", of: 1 };
}

function probabilityText(p) {
  return p === null ? "" : p < 0.0001 ? "< 0.0001" : p.toFixed(4);
}

function requestsText(r) {
  return `${r.count} ${r.count === 1 ? "request" : "requests"}, ` +
    (r.per_second === undefined ? `${r.in_flight} in flight` : `${r.per_second} a second`);
}

/// Returns the settings by their baseline, in the order of the file.
function groupsOf(settings) {
  const groups = new Map();
  for (const s of settings) {
    if (!groups.has(s.baseline))
      groups.set(s.baseline, []);
    groups.get(s.baseline).push(s);
  }
  return [...groups.values()];
}

/// Adds a table. A column has a heading, a function from a row to its text, and perhaps one to its class.
function addTable(parent, columns, rows) {
  const table = parent.append("table");
  const classOf = (column, row) => column.class ? column.class(row) : null;
  table.append("thead").append("tr").selectAll("th").data(columns).join("th")
    .attr("class", c => c.left ? "name" : null).text(c => c.heading);
  table.append("tbody").selectAll("tr").data(rows).join("tr").selectAll("td")
    .data(row => columns.map(column => ({ column, row }))).join("td")
    .attr("class", d => d.column.left ? "name" : classOf(d.column, d.row))
    .text(d => d.column.text(d.row));
}
