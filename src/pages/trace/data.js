// What the page shows, as it was written by trace_page.cpp: columns of bars become arrays, each track knows its bars in the order of their begins.

const ENUM_KINDS = ["run", "chunk", "node", "upload", "download", "other"];

class Trace {
  constructor(raw) {
    this.title = raw.title;
    this.end = Math.max(raw.end, 1);
    this.lanes = raw.lanes;
    this.tracks = raw.tracks;
    this.texts = raw.texts;
    this.counters = raw.counters;
    this.longest = raw.longest;
    this.criticalTime = raw.criticalTime;
    const columns = raw.bars || {};
    this.count = (columns.begin || []).length;
    this.begin = Float64Array.from(columns.begin || []);
    this.until = Float64Array.from(columns.end || []);
    this.track = Uint32Array.from(columns.track || []);
    this.columns = columns;
    this.kind = Uint8Array.from(columns.kind || [], (k) => ENUM_KINDS.indexOf(this.texts[k]));
    this.isCritical = new Uint8Array(this.count);
    for (const b of raw.critical) this.isCritical[b] = 1;
    this.matches = null; // by bar, while something is searched for
    this.indexTracks();
    this.indexEdges(raw.edges);
  }

  // By track: bars in the order of their begins, and the latest end of each and those before it.
  indexTracks() {
    this.order = this.tracks.map(() => []);
    for (let b = 0; b < this.count; ++b) this.order[this.track[b]].push(b);
    this.latest = this.order.map((bars) => {
      bars.sort((a, b) => this.begin[a] - this.begin[b] || this.until[b] - this.until[a]);
      const ends = new Float64Array(bars.length);
      let end = -Infinity;
      bars.forEach((b, i) => (ends[i] = end = Math.max(end, this.until[b])));
      return ends;
    });
  }

  indexEdges(edges) {
    this.before = new Map();
    this.after = new Map();
    this.criticalEdges = [];
    const add = (map, key, b) => (map.has(key) ? map.get(key).push(b) : map.set(key, [b]));
    for (const [from, to] of edges) {
      add(this.before, to, from);
      add(this.after, from, to);
      if (this.isCritical[from] && this.isCritical[to]) this.criticalEdges.push([from, to]);
    }
  }

  name(b) { return this.texts[this.columns.name[b]]; }
  op(b) { return this.texts[this.columns.op[b]]; }
  kernel(b) { return this.texts[this.columns.kernel[b]]; }
  lane(b) { return this.lanes[this.tracks[this.track[b]].lane]; }

  // The first bar of a track, in its order, that may reach a time.
  firstAt(track, time) { return d3.bisectLeft(this.latest[track], time); }

  // The bar of a track that covers a time, within a tolerance: the one that began last; -1 if there is none.
  barAt(track, time, tolerance) {
    const bars = this.order[track];
    const covers = (b, t) => this.begin[b] <= time + t && this.until[b] >= time - t;
    let near = -1;
    for (let i = d3.bisector((b) => this.begin[b]).right(bars, time + tolerance) - 1, left = 256; i >= 0 && left > 0; --i, --left) {
      if (covers(bars[i], 0)) return bars[i];
      if (near < 0 && covers(bars[i], tolerance)) near = bars[i];
      if (this.latest[track][i] < time - tolerance) break;
    }
    return near;
  }

  // Marks the bars whose name, operator or kernel holds a text; returns how many. An empty text ends the search.
  find(text) {
    this.matches = text ? new Uint8Array(this.count) : null;
    if (!text) return 0;
    const wanted = text.toLowerCase();
    const holds = this.texts.map((t) => t.toLowerCase().includes(wanted));
    let found = 0;
    for (let b = 0; b < this.count; ++b) {
      if (this.kind[b] === 0) continue;
      const c = this.columns;
      this.matches[b] = holds[c.name[b]] || holds[c.op[b]] || holds[c.kernel[b]];
      found += this.matches[b];
    }
    return found;
  }
}

// "1.234 ms": three or four digits in the unit that fits.
function timeText(ns) {
  const size = Math.abs(ns);
  const [by, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  return `${+(ns / by).toPrecision(4)} ${unit}`;
}

function bytesText(bytes) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (; Math.abs(bytes) >= 1024 && u < units.length - 1; ++u) bytes /= 1024;
  return `${u ? bytes.toFixed(1) : bytes} ${units[u]}`;
}

function counterText(counter, value) { return counter.name === "memory" ? bytesText(value) : d3.format(",")(value); }
