// Every other chart of a page. What is in sight is drawn first, the rest once the browser has nothing else to do.

/** Of its height, from which on a chart is in sight. */
const SEEN = 0.1;
const BUTTON = { width: 24, height: 24, path: "M5 5h6v2H7v4H5zM13 5h6v6h-2V7h-4zM5 13h2v4h4v2H5zM17 13h2v6h-6v-2h4z" };

class Figure {
  constructor(host) {
    this.plot = host.querySelector(".clq-plot");
    this.host = host;
    this.sight = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) this.draw();
    }, { threshold: SEEN });
    this.sight.observe(this.plot);
    this.resized = new ResizeObserver(() => {
      if (this.drawn && !this.stale && this.plot.clientWidth) this.Plotly.Plots.resize(this.plot);
    });
    this.resized.observe(this.plot);
  }

  end() {
    this.sight.disconnect();
    this.resized.disconnect();
    this.ended = true;
    if (this.drawn) this.Plotly.purge(this.plot);
  }

  /** Python has something new, or the theme has changed. */
  take({ data, setTriggerValue }) {
    Object.assign(this, { data, send: setTriggerValue, stale: true });
    this.plot.style.height = `${data.height}px`;
    plotly(data.library).then(
      (Plotly) => {
        this.Plotly = Plotly;
        const { top, bottom, height } = this.plot.getBoundingClientRect();
        if (this.drawn || (bottom > 0 && top + SEEN * height < innerHeight)) this.draw();
        else requestIdleCallback(() => this.draw());
      },
      () => setTriggerValue("failed", true),
    );
  }

  async draw() {
    if (!this.Plotly || !this.stale || this.ended || !this.plot.clientWidth) return; // hidden in a fold
    this.stale = false;
    const { data: traces, layout } = JSON.parse(this.data.chart.getChild("json").get(0));
    const { text, line } = dressed(this.host, layout);
    const named = { title: { font: { size: 13 } }, automargin: true };
    const lines = { gridcolor: line, linecolor: line, tickcolor: line, zerolinecolor: line };
    layout.template = {
      data: { scatter: [{ marker: { line: { width: 0 } } }] },
      layout: {
        margin: { pad: 8, l: 0, r: 0 },
        xaxis: { ...named, ...lines, showgrid: false, zeroline: false },
        yaxis: { ...named, ...lines },
        annotationdefaults: { font: { color: text } },
        legend: { valign: "top", title: { side: "top" } },
        coloraxis: { colorbar: { thickness: 16, outlinewidth: 0, len: 0.75, y: 0.5745 } },
      },
    };
    const whole = { name: "Fullscreen", title: "Fullscreen", icon: BUTTON, click: () => this.fill() };
    await this.Plotly.react(this.plot, traces, layout, { ...this.data.config, modeBarButtonsToAdd: [whole] });
    if (this.ended) return this.Plotly.purge(this.plot);
    if (!this.drawn) {
      this.drawn = true;
      this.plot.on("plotly_click", ({ points: [at] }) => {
        const row = at?.customdata?.[0];
        if (this.data.clicks && row >= 0) this.send("picked", row);
      });
    }
    this.plot.setAttribute("role", "img");
    this.plot.setAttribute("aria-label", this.data.alt);
    this.host.classList.add("clq-ready");
  }

  /** Fill the screen, or leave it. */
  fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.host.requestFullscreen();
  }
}

const lives = new WeakMap();

export default function (component) {
  const host = component.parentElement.querySelector(".clq-figure");
  if (!lives.has(host)) lives.set(host, new Figure(host));
  lives.get(host).take(component);
  return () => lives.get(host).end();
}
