// One timeline on a canvas that is as high as what can be seen of it: rows from top to bottom, time from left to right. Only what is in
// sight is painted (paint.js).

const GUTTER = 210, AXIS = 26, ROW = 20, COUNTER = 38, GAP = 12;

class Chart {
  // `domain`: the latest time of all charts of the page; `hears`: told of bars under the pointer and of zooms.
  constructor(parent, trace, domain, hears) {
    this.trace = trace;
    this.domain = domain;
    this.hears = hears;
    this.hovered = -1;
    this.onlyCritical = false;
    this.layOut();
    this.box = parent.appendChild(document.createElement("div"));
    this.box.className = "chart";
    this.canvas = this.box.appendChild(document.createElement("canvas"));
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Timeline of ${trace.lanes.length} lanes and ${trace.count} bars`);
    this.room = this.box.appendChild(document.createElement("div")); // as high as what is below the canvas
    this.transform = d3.zoomIdentity;
    this.zoom = d3.zoom().on("zoom", () => this.zoomed(d3.event));
    d3.select(this.canvas).call(this.zoom);
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => this.leave());
    this.box.addEventListener("scroll", () => this.paintSoon());
    this.resize();
    new ResizeObserver(() => Math.max(this.box.clientWidth, 400) !== this.width && this.resize()).observe(this.box); // scroll bars come and go
  }

  // Rows: of each lane its tracks that have bars, then its counters.
  layOut() {
    const trace = this.trace;
    this.rows = [];
    this.lanes = [];
    let y = AXIS + 4;
    trace.lanes.forEach((lane, l) => {
      const top = y;
      trace.tracks.forEach((track, t) => {
        if (track.lane !== l || trace.order[t].length === 0) return;
        this.rows.push({ track: t, y, height: ROW });
        y += ROW + 2;
      });
      trace.counters.forEach((counter) => {
        if (counter.lane !== l) return;
        const sums = counter.values.map((v) => d3.sum(v));
        this.rows.push({ counter, sums, most: Math.max(d3.max(sums) || 0, 1), y: y + 3, height: COUNTER });
        y += COUNTER + 6;
      });
      y = Math.max(y, top + 36);
      this.lanes.push({ lane, top, bottom: y });
      y += GAP;
    });
    this.height = y;
    this.rowOf = new Map(this.rows.filter((r) => r.counter === undefined).map((r) => [r.track, r]));
  }

  resize() {
    this.visible = Math.min(this.height, Math.max(200, Math.floor(window.innerHeight * 0.72) - 2));
    this.canvas.style.height = `${this.visible}px`;
    this.room.style.height = `${this.height - this.visible}px`;
    this.width = Math.max(this.box.clientWidth, 400);
    this.canvas.style.width = `${this.width}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.visible * ratio);
    const span = this.width - GUTTER - 10;
    this.base = d3.scaleLinear().domain([0, this.domain]).range([GUTTER, GUTTER + span]);
    const area = [[GUTTER, 0], [GUTTER + span, this.visible]];
    this.zoom.extent(area).translateExtent(area).scaleExtent([1, Math.max(1, this.domain / 200)]);
    this.paintSoon();
  }

  get x() { return this.transform.rescaleX(this.base); }

  zoomed(event) {
    const source = event.sourceEvent;
    if (source && source.type === "mousemove") this.box.scrollTop -= source.movementY || 0;
    this.transform = event.transform;
    this.leave();
    this.paintSoon();
    if (source && !this.follows) this.hears.zoomed(this);
  }

  // Takes another chart's zoom over.
  follow(transform) {
    this.follows = true; // D3 gives it the event that the other is moved by
    d3.select(this.canvas).call(this.zoom.transform, transform);
    this.follows = false;
  }
  scaleBy(factor) { d3.select(this.canvas).call(this.zoom.scaleBy, factor); this.hears.zoomed(this); }
  moveBy(part) { d3.select(this.canvas).call(this.zoom.translateBy, (part * this.width) / this.transform.k, 0); this.hears.zoomed(this); }
  showAll() { this.follow(d3.zoomIdentity); this.hears.zoomed(this); }

  // Zooms so that a bar takes a tenth of the width, and scrolls to it.
  show(bar) {
    const { begin, until } = this.trace;
    const length = Math.max(until[bar] - begin[bar], this.domain / 1e6);
    const k = Math.min(Math.max(this.domain / (length * 10), 1), this.zoom.scaleExtent()[1]);
    const middle = this.base((begin[bar] + until[bar]) / 2);
    const centre = (this.base.range()[0] + this.base.range()[1]) / 2;
    d3.select(this.canvas).call(this.zoom.transform, d3.zoomIdentity.translate(centre - k * middle, 0).scale(k));
    this.hears.zoomed(this);
    const row = this.rowOf.get(this.trace.track[bar]);
    this.box.scrollTop = row.y - this.visible / 2;
    this.hovered = bar;
    this.box.scrollIntoView({ block: "nearest" });
    this.paintSoon();
  }

  // Where a bar's middle is, in pixels of the window; null if it is out of sight.
  positionOf(bar) {
    const at = this.canvas.getBoundingClientRect();
    const x = this.x((this.trace.begin[bar] + this.trace.until[bar]) / 2);
    const row = this.rowOf.get(this.trace.track[bar]);
    const y = row.y + row.height / 2 - this.box.scrollTop;
    return x < GUTTER || x > this.width || y < AXIS || y > this.visible ? null : { x: at.left + x, y: at.top + y };
  }

  point(event) {
    const at = this.canvas.getBoundingClientRect();
    const x = event.clientX - at.left, y = event.clientY - at.top + this.box.scrollTop;
    const row = x >= GUTTER && event.clientY - at.top > AXIS ? this.rows.find((r) => y >= r.y && y <= r.y + r.height) : undefined;
    const time = this.x.invert(x);
    const bar = row && row.counter === undefined ? this.trace.barAt(row.track, time, this.x.invert(x + 3) - time) : -1;
    if (bar !== this.hovered) {
      this.hovered = bar;
      this.paintSoon();
    }
    this.hears.pointed(this, event, bar, row && row.counter, time);
  }

  leave() {
    if (this.hovered >= 0) this.paintSoon();
    this.hovered = -1;
    this.hears.pointed(this, null, -1);
  }

  paintSoon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      paintChart(this);
    });
  }
}
