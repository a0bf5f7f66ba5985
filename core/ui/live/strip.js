// The limits as sliders and fields. Whoever else on the page follows them, as the chart does, listens at
// window.clqLimits: its `values` are where they stand now, `held` says that one is being dragged, and it tells of
// every change. Python is told when one is let go, or typed: one message, and so one step of the browser's history.

const bus = (window.clqLimits ??= Object.assign(new EventTarget(), { values: null, held: false }));

/** Where a limit stands on its slider; no limit at its loose end. */
export function place(limit, value) {
  const { bottom, top, steps, log, upper } = limit;
  if (value == null) return upper ? steps : 0;
  const share = log
    ? (Math.log(Math.max(value, Number.MIN_VALUE)) - Math.log(bottom)) / (Math.log(top) - Math.log(bottom))
    : (value - bottom) / (top - bottom);
  return Math.min(Math.max(Math.round(share * steps), 0), steps);
}

/** The limit at a place of its slider, rounded as people say it. */
export function limitAt(limit, step) {
  const { bottom, top, steps, log, upper, share, counts } = limit;
  if (step === (upper ? steps : 0)) return null;
  const part = step / steps;
  const value = log ? bottom * (top / bottom) ** part : bottom + (top - bottom) * part;
  return share || counts ? Number(value.toFixed(2)) : Number(value.toPrecision(3));
}

/** A typed limit: null without one, undefined where it is no number that a limit can be. */
export function typed(limit, text) {
  const bare = text.replace(/[\s$]|ms$/g, "");
  if (bare === "" || bare === "nolimit") return null;
  if (limit.levels.length) return limit.levels.includes(bare) ? limit.levels.indexOf(bare) : undefined;
  const [, said, unit] = bare.match(/^(.*?)(s|%)?$/);
  const times = { s: limit.suffix.includes("ms") ? 1000 : NaN, "%": limit.share ? 0.01 : NaN }[unit] ?? 1;
  const value = plain((Number(pointed(said) || NaN) * times) / limit.factor);
  const least = limit.counts ? -1e9 : 0;
  return bare !== "" && value >= least && value <= (limit.share ? 1 : 1e9) ? value : undefined;
}

/** A number with a point for its decimals: 0,5 has a decimal comma, 1,500 one between thousands. */
function pointed(text) {
  const thousands = /^[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(text);
  return thousands ? text.replaceAll(",", "") : text.replace(",", ".");
}

/** What may be typed, where something else was. */
function wanted({ levels, share, suffix }) {
  if (levels.length) return `Write one of ${levels.join(", ")}.`;
  if (share) return "Write a number from 0 to 1, such as 0.55.";
  return suffix.includes("ms") ? "Write milliseconds such as 20, or 1.5 s." : "Write a number such as 2.50.";
}

/** A number with at least its decimals, and all that were typed. */
export function digits({ digits, factor, levels }, value) {
  if (levels.length) return levels[value];
  const shown = plain(value * factor);
  const fixed = shown.toFixed(digits);
  return Number(fixed) === shown ? fixed : String(shown);
}

/** A number without what multiplying adds. */
const plain = (value) => Number(value.toPrecision(12));

const STEPS = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
const same = (a, b) => Object.keys(b).every((key) => a[key] === b[key]);
const make = (tag, parent, properties = {}) => {
  const made = Object.assign(document.createElement(tag), properties);
  parent.append(made);
  return made;
};

/** Let the sidebar's links, which a move of a limit does not draw again, lead to pages under these limits. */
function follow(limits) {
  for (const link of document.querySelectorAll("[data-testid=stSidebar] [data-testid=stPageLink] a")) {
    const url = new URL(link.href);
    for (const [key, [text]] of Object.entries(limits)) {
      if (text === undefined) url.searchParams.delete(key);
      else url.searchParams.set(key, text);
    }
    if (url.href === link.href) continue;
    link.href = url.href;
    const page = pageOf(link);
    if (page) page.queryString = url.search.slice(1);
  }
}

/** What Streamlit asks for on a click of a link; without it, that click would be two steps of the history. */
function pageOf(link) {
  let part = link[Object.keys(link).find((name) => name.startsWith("__reactFiber$"))];
  while (part && part.memoizedProps?.element?.queryString === undefined) part = part.return;
  return part?.memoizedProps.element;
}

class Strip {
  constructor(host) {
    this.host = host;
    this.group = host.querySelector(".clq-limits");
    this.inputs = new Map();
    this.sent = 0; // number of the last release
    this.waiting = false; // Python has not answered yet
    const fold = host.querySelector(".clq-fold");
    fold.onclick = () => fold.setAttribute("aria-expanded", host.classList.toggle("clq-open"));
    this.letGo = () => {
      if (!bus.held) return;
      bus.held = false;
      setTimeout(() => this.release()); // a slider that is back where it was tells of no change
    };
    addEventListener("pointerup", this.letGo);
    addEventListener("pointercancel", this.letGo);
  }

  end() {
    document.body.classList.remove("clq-limited");
    removeEventListener("pointerup", this.letGo);
    removeEventListener("pointercancel", this.letGo);
    Object.assign(bus, { values: null, held: false });
  }

  /** Python has something new. */
  take({ data: [data], setTriggerValue, setStateValue }) {
    this.send = setTriggerValue;
    const phone = innerWidth <= 640; // where tables show the start of a name, and the numbers beside it
    if (phone !== data.phone) setStateValue("phone", phone);
    if (!this.data) this.sent = data.answered;
    if (data.answered < this.sent) return; // an answer to an earlier release
    const moved = bus.held || (this.waiting && !same(this.values, this.asked));
    this.waiting = false;
    this.data = data;
    if (moved) return bus.held || this.release(); // the limits have moved on
    this.values = { ...data.values };
    follow(data.address);
    this.build();
    for (const limit of data.limits) this.show(limit);
    this.host.classList.add("clq-ready");
    document.body.classList.add("clq-limited"); // the fields are not needed
    this.host.removeAttribute("aria-busy");
    this.tell();
  }

  /** The sliders and fields, made once per set of limits. */
  build() {
    const wanted = JSON.stringify(this.data.limits);
    if (wanted === this.built) return;
    this.built = wanted;
    this.group.replaceChildren();
    this.inputs.clear();
    for (const limit of this.data.limits) {
      const { key, label, help, steps } = limit;
      const box = make("div", this.group, { title: help });
      make("label", box, { htmlFor: `clq-limit-${key}`, textContent: label });
      const row = make("div", box, { className: "clq-row" });
      const slider = make("input", row, { type: "range", min: 0, max: steps, step: 1, id: `clq-limit-${key}` });
      const field = make("input", row, { type: "text", inputMode: "decimal", placeholder: this.data.free });
      field.setAttribute("aria-label", label);
      field.autocomplete = "off";
      slider.tabIndex = -1; // by keyboard a limit is one stop: its field, where the arrows move it as a slider's do
      field.setAttribute("aria-keyshortcuts", "ArrowUp ArrowDown");
      slider.addEventListener("pointerdown", () => (bus.held = true));
      slider.addEventListener("input", () => this.set(limit, limitAt(limit, slider.valueAsNumber)));
      slider.addEventListener("change", () => bus.held || this.release());
      field.addEventListener("change", () => this.enter(limit, field));
      field.addEventListener("keydown", (event) => this.step(limit, field, event));
      field.addEventListener("keyup", ({ key }) => STEPS[key] && this.release());
      this.inputs.set(key, { slider, field });
    }
  }

  /** What was typed into a field counts on Enter, or when the field is left. */
  enter(limit, field) {
    const value = typed(limit, field.value);
    field.setAttribute("aria-invalid", value === undefined);
    field.setCustomValidity(value === undefined ? wanted(limit) : "");
    if (value === undefined) return field.reportValidity();
    this.set(limit, value);
    this.release();
  }

  /** An arrow moves a limit by one place of its slider, from what is typed. */
  step(limit, field, event) {
    const way = STEPS[event.key];
    if (!way) return;
    event.preventDefault();
    const from = typed(limit, field.value) ?? this.values[limit.key];
    this.set(limit, limitAt(limit, Math.min(Math.max(place(limit, from) + way, 0), limit.steps)));
  }

  set(limit, value) {
    this.values[limit.key] = value;
    this.show(limit);
    this.tell();
  }

  /** Slider, field and folded line say the limit. */
  show(limit) {
    const { slider, field } = this.inputs.get(limit.key);
    const value = this.values[limit.key];
    if (limitAt(limit, slider.valueAsNumber) !== value) slider.value = place(limit, value);
    slider.setAttribute("aria-valuetext", value == null ? this.data.free : this.words(limit));
    field.value = value == null ? "" : digits(limit, value);
    field.removeAttribute("aria-invalid");
    field.setCustomValidity("");
    const set = this.data.limits.filter(({ key }) => this.values[key] != null);
    const named = (each) => (each.prefix || each.suffix ? "" : each.label.replace(/at (least|most)$/, "")); // no unit says it
    const line = set.map((each) => `${named(each)}${each.upper ? "≤" : "≥"} ${this.words(each)}`).join(" · ");
    this.host.querySelector(".clq-fold").textContent = line || this.data.free;
  }

  words(limit) {
    return `${limit.prefix}${digits(limit, this.values[limit.key])}${limit.suffix}`;
  }

  tell() {
    const set = this.data.limits.filter(({ key }) => this.values[key] != null);
    Object.assign(bus, { values: { ...this.values }, words: {} });
    for (const limit of set) bus.words[limit.key] = this.words(limit);
    bus.dispatchEvent(new Event("limits"));
  }

  /** A limit was let go, moved by a key or typed: tell Python, one message at a time. */
  release() {
    if (this.waiting) return;
    if (same(this.values, this.data.values)) return this.tell();
    this.waiting = true;
    this.asked = { ...this.values };
    this.host.setAttribute("aria-busy", "true");
    this.send("released", { number: ++this.sent, values: this.asked });
  }
}

const strips = new WeakMap();

export default function (component) {
  const host = component.parentElement.querySelector(".clq-strip");
  if (!strips.has(host)) strips.set(host, new Strip(host));
  strips.get(host).take(component);
  return () => strips.get(host).end();
}
