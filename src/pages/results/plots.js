// Draws a plot and a table for each group, and simulated beside real times.
"use strict";

/// More dots than these hide each other, and a million are too many for a browser; mean and interval are of all.
const mostDots = 500;
const width = 1000, rowHeight = 28, margin = { left: 230, right: 190, top: 8, bottom: 34 };

/// Returns the verdict's class, for its colour.
const verdictOf = s => s.beside_baseline ? s.beside_baseline.verdict : null;

function besideText(s) {
  if (s.runs.length === 0)
    return "no run";
  if (!s.beside_baseline)
    return "baseline";
  return `× ${s.beside_baseline.speedup.toFixed(3)}, ${s.beside_baseline.verdict}`;
}

function addAxis(svg, x, height, label) {
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${height - margin.bottom})`).call(d3.axisBottom(x).ticks(8));
  svg.append("text").attr("x", (margin.left + width - margin.right) / 2).attr("y", height - 3).attr("text-anchor", "middle").text(label);
}

/// Draws the runs of one setting about the middle of its row.
function addRuns(row, s, x, unit) {
  row.append("text").attr("x", margin.left - 10).attr("dy", "0.35em").attr("text-anchor", "end").text(settingName(s));
  row.append("text").attr("x", width - margin.right + 10).attr("dy", "0.35em").attr("class", verdictOf(s)).text(besideText(s));
  if (s.runs.length === 0)
    return;
  row.selectAll("circle").data(s.runs.slice(0, mostDots)).join("circle").attr("class", "run").attr("r", 4)
    .attr("cx", ([, seconds]) => x(seconds * unit.of))
    .append("title").text(([repetition, seconds]) => `repetition ${repetition}: ${(seconds * unit.of).toFixed(3)} ${unit.name}`);
  const mean = s.seconds.mean_s, [low, high] = s.seconds.mean_interval_s || [mean, mean];
  row.append("line").attr("class", "mean").attr("x1", x(low * unit.of)).attr("x2", x(high * unit.of));
  row.append("line").attr("class", "mean").attr("x1", x(mean * unit.of)).attr("x2", x(mean * unit.of)).attr("y1", -8).attr("y2", 8);
}

function addPlot(parent, group, unit) {
  const height = margin.top + rowHeight * group.length + margin.bottom;
  const ends = group.filter(s => s.runs.length > 0)
    .flatMap(s => [s.seconds.least_s, s.seconds.largest_s, ...(s.seconds.mean_interval_s || [])]);
  const x = d3.scaleLinear().domain([Math.min(0, d3.min(ends)) * unit.of, d3.max(ends) * unit.of || 1]).nice()
    .range([margin.left, width - margin.right]);
  const svg = parent.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", "times of each setting");
  addAxis(svg, x, height, `${unit.name} a repetition`);
  if (group[0].runs.length > 0)
    svg.append("line").attr("class", "reference").attr("y1", margin.top).attr("y2", height - margin.bottom)
      .attr("x1", x(group[0].seconds.mean_s * unit.of)).attr("x2", x(group[0].seconds.mean_s * unit.of));
  group.forEach((s, i) =>
    addRuns(svg.append("g").attr("transform", `translate(0,${margin.top + rowHeight * (i + 0.5)})`), s, x, unit));
}

function addGroupTable(parent, group, unit) {
  const time = seconds => (seconds * unit.of).toFixed(3);
  const ran = text => s => s.runs.length > 0 ? text(s) : "";
  const beside = text => s => s.beside_baseline ? text(s.beside_baseline) : "";
  addTable(parent, [
    { heading: "policy, strategy", left: true, text: settingName },
    { heading: "runs", text: s => s.runs.length },
    { heading: `median ${unit.name}`, text: ran(s => time(s.seconds.median_s)) },
    { heading: `mean ${unit.name}`, text: ran(s => time(s.seconds.mean_s)) },
    { heading: percent(data.confidence), text: s => s.seconds.mean_interval_s ? s.seconds.mean_interval_s.map(time).join(" – ") : "" },
    { heading: "speed-up", text: beside(c => c.speedup.toFixed(3)) },
    { heading: "p (t)", text: beside(c => probabilityText(c.t_adjusted)) },
    { heading: "p (rank)", text: beside(c => probabilityText(c.rank_adjusted)) },
    { heading: "", class: verdictOf, text: s => verdictOf(s) || "" },
  ], group);
}

function addGroup(group) {
  const parent = d3.select("#groups").append("section");
  parent.append("h2").text(`${problemName(group[0])}, ${group[0].mode}`);
  const seconds = group.flatMap(s => s.runs.map(run => run[1]));
  if (seconds.length === 0) {
    parent.append("p").text("No run of these settings ended.");
    return;
  }
  const unit = unitFor(seconds.some(s => s > 0) ? seconds : [1]);
  addPlot(parent, group, unit);
  addGroupTable(parent, group, unit);
}

/// Both axes are logarithmic: a distance from the diagonal is a relative error, whatever the time.
function addSimulationPlot(parent, pairs) {
  const side = 460, inset = 60;
  const times = pairs.flatMap(p => [p.simulated_s, p.real_s]).map(s => s * 1e3);
  const scale = d3.scaleLog().domain([d3.min(times) / 1.2, d3.max(times) * 1.2]);
  const x = scale.copy().range([inset, side]), y = scale.copy().range([side - inset, 0]);
  const svg = parent.append("svg").attr("viewBox", `0 0 ${width} ${side}`).attr("role", "img").attr("aria-label", "simulated and real times");
  const [low, high] = scale.domain();
  svg.append("line").attr("class", "reference").attr("x1", x(low)).attr("y1", y(low)).attr("x2", x(high)).attr("y2", y(high));
  svg.append("g").attr("class", "axis").attr("transform", `translate(0,${side - inset})`).call(d3.axisBottom(x).ticks(5, "~g"));
  svg.append("g").attr("class", "axis").attr("transform", `translate(${inset},0)`).call(d3.axisLeft(y).ticks(5, "~g"));
  svg.append("text").attr("x", side / 2).attr("y", side - 20).attr("text-anchor", "middle").text("real, ms (median)");
  svg.append("text").attr("transform", `translate(14,${side / 2}) rotate(-90)`).attr("text-anchor", "middle").text("simulated, ms");
  svg.selectAll("circle").data(pairs).join("circle").attr("class", "run").attr("r", 5)
    .attr("cx", p => x(p.real_s * 1e3)).attr("cy", p => y(p.simulated_s * 1e3)).append("title").text(p => `${p.name}: ${percent(p.error)}`);
}

function addSimulation() {
  const pairs = data.simulation.errors.map(e => {
    const real = data.settings[e.real];
    return { error: e.error, name: `${problemName(real)}, ${settingName(real)}`, real_s: real.seconds.median_s,
      simulated_s: data.settings[e.simulated].seconds.median_s };
  });
  if (pairs.length === 0)
    return;
  const parent = d3.select("#simulation");
  parent.append("h2").text(`Simulated beside real: mean error ${percent(data.simulation.mean_error)}`);
  if (pairs.every(p => p.simulated_s > 0))
    addSimulationPlot(parent, pairs);
  addTable(parent, [
    { heading: "setting", left: true, text: p => p.name },
    { heading: "simulated ms", text: p => (p.simulated_s * 1e3).toFixed(3) },
    { heading: "real ms", text: p => (p.real_s * 1e3).toFixed(3) },
    { heading: "error", text: p => percent(p.error) },
  ], pairs);
}

function addProblems() {
  if (data.problems.length === 0)
    return;
  const parent = d3.select("#problems");
  parent.append("h2").text("What failed");
  addTable(parent, [
    { heading: "setting", left: true, text: p => `${problemName(data.settings[p.setting])}, ${settingName(data.settings[p.setting])}` },
    { heading: "repetition", text: p => p.repetition === null ? "all" : p.repetition },
    { heading: "why", left: true, text: p => p.what },
  ], data.problems);
}

function addMadeWith() {
  const parent = d3.select("#made-with");
  parent.append("h2").text("Made with");
  parent.append("p").text(Object.entries(data.made_with.versions).map(([name, version]) => `${name} ${version}`).join(", "));
  addTable(parent, [
    { heading: "file", left: true, text: f => f.path },
    { heading: "bytes", text: f => f.bytes },
    { heading: "XXH3, 128 bits", text: f => f.xxh3_128 },
  ], data.made_with.files);
}

document.title = `${data.name}: results`;
d3.select("h1").text(data.name);
d3.select("#about").text(`${data.repetitions} repetitions of ${requestsText(data.requests)}; seed ${data.seed}, noise ${data.noise}; ` +
  `${percent(data.confidence)} confidence, probabilities after Holm's correction`);
if (data.repetitions > mostDots)
  d3.select("#key").text(`${d3.select("#key").text()} Dots are of the first ${mostDots} repetitions alone.`);
groupsOf(data.settings).forEach(addGroup);
addSimulation();
addProblems();
addMadeWith();
