// The Pareto chart, which follows the limits of the strip (strip.js) while they are dragged.
//
// Plotly draws the chart for the limits that Python knows. While a slider moves Plotly is not asked for anything,
// since the least of its redraws takes longer than a frame: marks of excluded stacks are dimmed where they stand,
// and density, frontier and limits are drawn on a canvas below. On release Python answers with the next chart.
// Names come from users: they reach the page as text only.

const bus = (window.clqLimits ??= Object.assign(new EventTarget(), { values: null, held: false }));

/** Which stacks meet the limits; a value that is not known (NaN) meets none, nor what is required. */
export function meets(points, limits, axes) {
  const ok = new Uint8Array(points.quality.length).fill(1);
  for (const { key, limit, higher, required } of axes) {
    const values = points[key];
    const bound = limits[limit];
    if (bound == null && !required) continue;
    const sign = higher ? 1 : -1;
    const least = bound == null ? -Infinity : sign * bound;
    for (let row = 0; row < ok.length; row++) if (!(sign * values[row] >= least)) ok[row] = 0;
  }
  return ok;
}

/** The sign that turns quality so that more is better. */
const turned = (axes) => (axes.find(({ key }) => key === "quality").higher ? 1 : -1);

/** The row of the best quality among some that are left. */
export function leader(points, ok, axes, rows) {
  const sign = turned(axes);
  let best;
  for (const row of rows) {
    if (ok[row] && !(sign * points.quality[row] <= sign * points.quality[best])) best = row;
  }
  return best;
}

/** Rows on the frontier of quality and the x axis among those that are left, by rising x. */
export function frontier(points, ok, axes, across) {
  const x = points[across];
  const sign = turned(axes);
  const line = [];
  let last = -1;
  for (const row of points.order) {
    if (!ok[row] || Number.isNaN(x[row])) continue;
    const gain = last < 0 ? 1 : sign * (points.quality[row] - points.quality[last]);
    if (gain > 0 || (gain === 0 && x[row] === x[last])) line.push((last = row));
  }
  return line;
}

/** How far the chosen stack's name may move from where it was placed; pixels, the nearest first. */
const ASIDE = [[0, 0], [0, -6], [0, -14], [0, -24], [30, -6], [-30, -6], [70, 0], [-70, 0], [0, 38], [60, 20], [-60, 20], [0, -40]];
/** Names of marks and limits; the first annotation says which way is better. */
const LABELS = '.annotation:not([data-index="0"])';
const same = (a, b) => Object.keys(b).every((key) => a[key] === b[key]);

class Live {
  constructor(host) {
    this.host = host;
    this.plot = host.querySelector(".clq-plot");
    this.canvas = host.querySelector("canvas");
    this.resized = new ResizeObserver(async () => {
      if (!this.drawn || this.ended || !this.plot.clientWidth) return; // hidden, or gone
      await this.Plotly.Plots.resize(this.plot);
      if (!this.ended) this.clear();
    });
    this.resized.observe(this.plot);
    this.heard = () => this.hear();
    bus.addEventListener("limits", this.heard);
  }

  end() {
    bus.removeEventListener("limits", this.heard);
    this.resized.disconnect();
    this.ended = true;
    if (this.drawn) this.Plotly.purge(this.plot);
  }

  /** Where the limits stand on the page; where there is no strip, as Python has them. */
  get values() {
    return bus.values && same(Object.keys(bus.values), Object.keys(this.data.values)) ? bus.values : this.data.values;
  }

  /** Python has something new, or the theme has changed. */
  take({ data: { told: [told], ...tables }, setTriggerValue }) {
    const data = { ...tables, ...told };
    this.send = setTriggerValue;
    this.data = data;
    this.points = {};
    for (const { name } of data.points.schema.fields) this.points[name] = data.points.getChild(name).toArray();
    this.stale = true;
    plotly(data.library).then(
      (Plotly) => {
        this.Plotly = Plotly;
        this.hear();
      },
      () => setTriggerValue("failed", true),
    );
  }

  /** Either the limits are those that Python has drawn for, or they are on their way. */
  hear() {
    if (!this.Plotly || this.ended) return;
    if (!bus.held && same(this.values, this.data.values)) {
      if (this.stale || this.dragging) this.draw(this.Plotly);
    } else if (this.drawn) {
      this.host.setAttribute("aria-busy", "true");
      if (!this.dragging || !same(this.values, this.followed)) this.soon();
    } else this.draw(this.Plotly);
  }

  /** Follow in the next frame; a limit that was let go is sent to Python first. */
  soon() {
    if (this.coming) return;
    this.coming = true;
    const frame = () => {
      if (!this.coming) return;
      this.coming = false;
      if (!this.dragging) this.begin();
      this.follow();
    };
    if (bus.held) requestAnimationFrame(frame);
    else setTimeout(() => requestAnimationFrame(frame));
  }

  /** Plotly's turn: the chart as Python made it, in the colours of the page. */
  async draw(Plotly) {
    if (this.ended) return;
    const { data } = this;
    this.stale = false;
    const { data: traces, layout } = JSON.parse(data.figure.getChild("json").get(0));
    this.dress(traces, layout);
    const scale = traces.map(({ marker }) => marker?.colorbar?.title?.text).find(Boolean);
    if (this.drawn && scale !== this.scale) { // Plotly would leave the old scale of colours beside the new one
      Plotly.purge(this.plot);
      this.drawn = false;
    }
    this.scale = scale;
    await Plotly.react(this.plot, traces, layout, data.config);
    if (!this.drawn) {
      this.drawn = true;
      this.plot.on("plotly_click", ({ points: [at] }) => {
        const row = at && at.customdata && at.customdata[0];
        if (row >= 0) this.send("picked", row);
      });
    }
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", data.alt);
    this.calm();
    this.host.classList.add("clq-ready");
    if (data !== this.data || !same(this.values, data.values) || bus.held) return this.hear();
    this.clear();
    this.host.removeAttribute("aria-busy");
    this.say(this.now());
  }

  /** Take away names that lie on something in a window of this size; the chosen stack's moves aside instead. */
  clear() {
    const labels = [...this.plot.querySelectorAll(LABELS)];
    for (const label of labels) label.style.display = label.style.transform = "";
    const whole = this.plot.getBoundingClientRect();
    const marks = this.boxes(whole);
    const { xaxis, xaxis2 } = this.plot._fullLayout;
    const left = whole.left + (xaxis ?? xaxis2)._offset; // where nothing is timed, there is the strip alone
    const kept = [];
    const free = (box) => {
      const on = ({ left, right, top, bottom }) =>
        left < box.right && right > box.left && top < box.bottom && bottom > box.top;
      return box.left >= left && box.right <= whole.right && !kept.some(on) && !marks.some(on);
    };
    const isChosen = (label) => /font-weight: ?bold/.test(label.innerHTML);
    for (const label of labels.sort((one, other) => isChosen(other) - isChosen(one))) {
      const { left, right, top, bottom } = label.getBoundingClientRect();
      const places = ASIDE.slice(0, isChosen(label) ? undefined : 1).map(([x, y]) => ({
        x, y, left: left + x, right: right + x, top: top + y, bottom: bottom + y,
      }));
      const place = places.find(free);
      if (place) kept.push(place);
      if (place?.x || place?.y) label.style.transform = `translate(${place.x}px, ${place.y}px)`;
      if (!place) label.style.display = "none";
    }
  }

  /** Where the marks stand in the window; from their numbers, since to ask a thousand elements takes a frame. */
  boxes({ left, top }) {
    const { calcdata, _fullLayout: layout } = this.plot;
    return calcdata.flatMap((marks) => {
      const { xaxis, mode } = marks[0].trace;
      if (!mode?.includes("markers")) return [];
      const [across, down] = [layout[`xaxis${xaxis.slice(1)}`], layout.yaxis];
      return marks.map(({ x, y, mrc }) => {
        const [at, high] = [left + across._offset + across.c2p(x), top + down._offset + down.c2p(y)];
        return { left: at - mrc, right: at + mrc, top: high - mrc, bottom: high + mrc };
      });
    });
  }

  dress(traces, layout) {
    const { text, ground, line, dark } = dressed(this.host, layout);
    for (const trace of traces) {
      if (!trace.meta) continue;
      trace.uid = trace.meta; // Plotly makes a class of it
      if (!this.data.drawing.marks[trace.meta]) continue;
      trace.marker.line = { width: 0.7, color: trace.marker.opacity < 0.5 ? ground : text };
      if (trace.marker.colorscale === "Viridis") trace.marker.colorscale = this.data.drawing[dark ? "dark" : "light"];
    }
    if (this.plot.clientWidth < 560) {
      const keys = traces.filter(({ showlegend }) => showlegend !== false).length;
      const more = 20 * Math.max(keys - 2, 0); // rows of the legend below the first two
      Object.assign(layout.legend, { yref: "container", y: 0.01, yanchor: "bottom" }); // below the axis's title
      Object.assign(layout.margin, { b: keys ? 104 + more : 48, l: 50, r: 20 });
      layout.yaxis.title.text = layout.yaxis.title.text.split(":")[0]; // no room; the card says what it counts
      layout.height += more;
      layout.annotations = layout.annotations.filter(({ name }) => name !== "stack"); // they would lie on each other
      for (const shape of layout.shapes) delete shape.label;
      for (const { marker } of traces) if (marker?.showscale) marker.showscale = false; // no room; the table says it
    }
    layout.template = {};
    for (const axis of ["xaxis", "xaxis2", "yaxis"]) {
      if (layout[axis]) Object.assign(layout[axis], { gridcolor: line, linecolor: line, tickcolor: line });
    }
  }

  /** Find what a drag changes: the marks with their rows, and where the axes are. */
  begin() {
    this.dragging = true;
    this.marks = [];
    for (const [name, rows] of Object.entries(this.data.drawing.marks)) {
      this.plot.querySelectorAll(`.trace${name} path.point`).forEach((node, place) => {
        this.marks.push({ node, row: rows[node.__data__?.i ?? place], ok: -1 });
      });
    }
    const { width, height } = this.plot.getBoundingClientRect();
    Object.assign(this.canvas, { width: width * devicePixelRatio, height: height * devicePixelRatio });
    const { xaxis, xaxis2, yaxis } = this.plot._fullLayout;
    this.axes = { x: xaxis ?? xaxis2, x2: xaxis2, y: yaxis };
    this.timed = Boolean(xaxis);
    this.panels = this.data.drawing.panels.map((panel) => ({
      start: panel.start,
      x: panel.x.map((edge) => this.px(panel.axis, edge)),
      y: panel.y.map((edge) => this.px("y", edge)),
    }));
    // What holds for the old limits gives way to what is drawn on the canvas.
    this.hidden = this.plot.querySelectorAll(`[class*=" traceover-"], .heatmaplayer, .shapelayer, ${LABELS}`);
    this.show("hidden");
  }

  calm() {
    this.coming = false;
    if (!this.dragging) return;
    this.dragging = false;
    this.canvas.width = 0;
    this.show("");
  }

  show(visibility) {
    for (const { style } of this.hidden) style.visibility = visibility;
    for (const { classList } of [this.host, document.body]) classList.toggle("clq-dragging", visibility !== "");
  }

  px(axis, value) {
    return this.axes[axis]._offset + this.axes[axis].d2p(value);
  }

  /** The limits as numbers, who meets them, and the best of those. */
  now() {
    const limits = {};
    for (const [key, value] of Object.entries(this.values)) if (value != null) limits[key] = value;
    const { axes, names } = this.data.drawing;
    const ok = meets(this.points, limits, axes);
    const best = leader(this.points, ok, axes, Object.keys(names));
    return { limits, ok, best, left: ok.reduce((sum, each) => sum + each, 0) };
  }

  say({ best, left, limits }) {
    const total = this.points.quality.length;
    const some = `${left.toLocaleString("en")} of ${total.toLocaleString("en")} stacks`;
    const who = total === 1 ? (left ? "The only stack" : "No stack") : left < total ? some : total === 2 ? "Both stacks" : `All ${some.split(" of ")[1]}`;
    const limited = Object.keys(limits).length ? (total === 1 ? "meets the limits" : "meet the limits") : "can be chosen";
    // At rest the heading names the choice, which among equals need not be the highest.
    const name = this.dragging && best && `${this.data.drawing.names[best]}, ${this.points.quality[best].toFixed(3)}`;
    const words = `${who} ${limited}.${name ? ` Best quality: ${name}.` : ""}`;
    this.host.querySelector(".clq-count").textContent = words;
    this.host.querySelector(".clq-note").textContent = this.data.note;
    clearTimeout(this.quiet); // a screen reader is told when the slider rests
    this.quiet = setTimeout(() => (this.host.querySelector(".clq-said").textContent = words), 400);
  }

  /** One frame of a drag. */
  follow() {
    const now = this.now();
    this.followed = this.values;
    const [bright, dim] = this.data.drawing.opacity;
    for (const mark of this.marks) {
      if (mark.ok !== now.ok[mark.row]) mark.node.style.opacity = (mark.ok = now.ok[mark.row]) ? bright : dim;
    }
    this.say(now);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const { x, x2, y } = this.axes;
    const right = x2 ? x2._offset + x2._length : x._offset + x._length;
    pen.save();
    pen.beginPath();
    pen.rect(x._offset, y._offset, right - x._offset, y._length);
    pen.clip();
    this.density(pen, now.ok);
    this.line(pen, now);
    pen.restore();
    this.rules(pen, now.limits, right);
  }

  density(pen, ok) {
    const { panels, points } = this;
    if (!panels.length) return;
    const last = panels[panels.length - 1];
    const size = last.start + (last.x.length - 1) * (last.y.length - 1);
    const counts = [new Uint32Array(size), new Uint32Array(size)];
    points.cell.forEach((cell, row) => cell < 0 || counts[ok[row]][cell]++);
    const most = Math.sqrt(this.data.drawing.most);
    counts.forEach((count, allowed) => {
      const [colour, least, full] = this.data.drawing.shades[allowed];
      pen.fillStyle = colour;
      for (const { start, x, y } of panels) {
        const columns = x.length - 1;
        for (let cell = 0; cell < columns * (y.length - 1); cell++) {
          const n = count[start + cell];
          if (!n) continue;
          const [column, row] = [cell % columns, Math.floor(cell / columns)];
          pen.globalAlpha = least + (full - least) * (Math.sqrt(n) / most);
          pen.fillRect(x[column], y[row + 1], x[column + 1] - x[column], y[row] - y[row + 1]);
        }
      }
    });
    pen.globalAlpha = 1;
  }

  /** The frontier of what is left as steps, and a ring around its best. */
  line(pen, { ok, best }) {
    const { axes, across } = this.data.drawing;
    const { [across]: along, quality } = this.points;
    const at = frontier(this.points, ok, axes, across).map((row) => [this.px("x", along[row]), this.px("y", quality[row])]);
    Object.assign(pen, { strokeStyle: this.data.drawing.frontier, fillStyle: this.data.drawing.frontier, lineWidth: 2 });
    pen.beginPath();
    at.forEach(([x, y], place) => {
      if (place) pen.lineTo(x, at[place - 1][1]);
      pen[place ? "lineTo" : "moveTo"](x, y);
    });
    pen.stroke();
    if (this.panels.length) for (const [x, y] of at) pen.fillRect(x - 2.5, y - 2.5, 5, 5);
    if (best && along[best] === along[best]) {
      pen.strokeStyle = this.data.drawing.accent;
      pen.beginPath();
      pen.arc(this.px("x", along[best]), this.px("y", quality[best]), 10, 0, 7);
      pen.stroke();
    }
  }

  /** The limits on x and on y as labelled lines. */
  rules(pen, limits, right) {
    const { x, y } = this.axes;
    const { limit, quality, words: called } = this.data.drawing;
    const words = (key) => `${called[key]} ${bus.words?.[key] ?? limits[key]}`;
    Object.assign(pen, { strokeStyle: this.data.drawing.accent, lineWidth: 1.5 });
    pen.fillStyle = getComputedStyle(this.host).color;
    pen.font = "12px sans-serif";
    pen.setLineDash([8, 6]);
    const rule = (from, to) => {
      pen.beginPath();
      pen.moveTo(...from);
      pen.lineTo(...to);
      pen.stroke();
    };
    const left = this.timed ? this.px("x", limits[limit]) : NaN;
    if (left >= x._offset && left <= x._offset + x._length) {
      rule([left, y._offset], [left, y._offset + y._length]);
      pen.fillText(words(limit), left + 4, y._offset + y._length - 6);
    }
    const high = this.px("y", limits[quality]);
    if (high >= y._offset && high <= y._offset + y._length) {
      rule([x._offset, high], [right, high]);
      pen.textAlign = "right";
      pen.fillText(words(quality), right - 4, high + 14);
      pen.textAlign = "left";
    }
    pen.setLineDash([]);
  }
}

const lives = new WeakMap();

export default function (component) {
  const host = component.parentElement.querySelector(".clq-live");
  if (!lives.has(host)) lives.set(host, new Live(host));
  lives.get(host).take(component);
  return () => lives.get(host).end();
}
