// The search: a button and two keys open it; what it looks through was sent by Python, which opens what is chosen.
// A setting of this page is found here, in its field. Names come from users: they are text, never markup.

const SHOWN = 12;
const KINDS = ["page", "section", "setting", "measure", "stack", "workspace", "document"];
const BELOW = 1000; // what the workspace has nothing for comes after all that it has

/** How well an entry meets all words that were typed: the lower the better, undefined where it lacks one. */
function rank({ kind, title, alias, called, rest, below }, words, whole) {
  const sunk = below ? BELOW : 0;
  if (whole === title || whole === alias) return sunk - 1;
  let worst = 0;
  for (const word of words) {
    const at = title.indexOf(word);
    const begins = (text, place) => place === 0 || (place > 0 && /[^a-z0-9]/.test(text[place - 1]));
    let own;
    if (at >= 0) own = title === word ? 0 : begins(title, at) ? 1 : 3;
    else if (called.some((name) => name.startsWith(word))) own = 1;
    else {
      const there = rest.indexOf(word);
      if (there < 0) return undefined;
      own = begins(rest, there) ? 2 : 4;
    }
    worst += own;
  }
  return sunk + worst * KINDS.length + KINDS.indexOf(kind);
}

export function find(entries, text) {
  const whole = text.toLowerCase().trim();
  const words = whole.split(/\s+/).filter(Boolean);
  if (!words.length) return entries.slice(0, SHOWN);
  const ranked = entries.map((entry) => [rank(entry, words, whole), entry]).filter(([place]) => place !== undefined);
  return ranked.sort(([a, one], [b, other]) => a - b || one.at - other.at).slice(0, SHOWN).map(([, entry]) => entry);
}

/** The field of a setting on this page: in the strip of limits, or behind the button "Settings". */
async function reach(key) {
  const slider = document.getElementById(`clq-limit-${key}`);
  if (slider) {
    const fold = document.querySelector(".clq-strip:not(.clq-open) .clq-fold");
    if (fold?.offsetParent) fold.click();
    slider.nextElementSibling.focus();
    return true;
  }
  const button = document.querySelector(".st-key-settings button");
  if (!button) return false;
  button.click();
  for (let tries = 0; tries < 40; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const field = document.querySelector(`.st-key-${CSS.escape(key)} :is(input, [role=radio])`);
    if (!field?.getClientRects().length) continue;
    field.scrollIntoView({ block: "center" });
    field.focus();
    break;
  }
  return true;
}

class Search {
  constructor(host) {
    this.dialog = host.querySelector("dialog");
    this.input = host.querySelector("input");
    this.list = host.querySelector("ul");
    this.status = host.querySelector("p");
    host.querySelector(".clq-find-open").onclick = () => this.open();
    this.input.oninput = () => this.show();
    this.input.onkeydown = (event) => this.key(event);
    this.list.onclick = (event) => this.choose(event.target.closest("li"));
    this.dialog.onclick = (event) => event.target === this.dialog && this.dialog.close();
    this.pressed = (event) => {
      const { key, ctrlKey, metaKey, altKey, target } = event;
      const typing = target.closest?.("input, textarea, select, [contenteditable=true], [role=textbox]");
      if (key === "Escape" && this.dialog.open) return this.leave(event);
      const asked = (ctrlKey || metaKey) && !altKey ? key.toLowerCase() === "k" : key === "/" && !typing;
      if (!asked || this.dialog.open || document.querySelector("dialog[open], [role=dialog][aria-modal=true]")) return;
      event.preventDefault();
      this.open();
    };
    addEventListener("keydown", this.pressed, true); // before what is open behind it takes the key
    host.closest("[data-testid=stSidebar]")?.addEventListener("click", makeWay);
  }

  end() {
    removeEventListener("keydown", this.pressed, true);
  }

  leave(event) {
    event.preventDefault();
    event.stopPropagation();
    this.dialog.close();
  }

  open() {
    if (this.read !== this.data) {
      const rows = JSON.parse(new TextDecoder().decode(this.data));
      this.entries = rows.map(([kind, title, about, words, name, below], at) => ({
        at, kind, name, about, below, shown: title, title: title.toLowerCase(), alias: words.toLowerCase(),
        called: words.toLowerCase().split(" ").filter((word, place) => word && (kind === "setting" || !place)),
        rest: `${words} ${about}`.toLowerCase(),
      }));
      this.read = this.data;
    }
    this.input.value = "";
    this.show();
    this.dialog.showModal();
    this.input.focus();
  }

  show() {
    const found = find(this.entries, this.input.value);
    this.list.replaceChildren(...found.map((entry) => {
      const row = Object.assign(document.createElement("li"), { id: `clq-found-${entry.at}`, entry });
      row.setAttribute("role", "option");
      const parts = [["b", entry.shown], ["small", entry.kind], ["small", entry.about]];
      row.append(...parts.map(([tag, textContent]) => Object.assign(document.createElement(tag), { textContent })));
      return row;
    }));
    this.status.textContent = found.length ? "" : "Nothing is called so.";
    this.select(this.list.firstElementChild);
  }

  select(row) {
    for (const each of this.list.children) each.setAttribute("aria-selected", each === row);
    row?.scrollIntoView({ block: "nearest" });
    if (row) this.input.setAttribute("aria-activedescendant", row.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const rows = [...this.list.children];
    const at = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") this.choose(rows[at]);
    else if (step && rows.length) this.select(rows[(at + step + rows.length) % rows.length]);
    else return;
    event.preventDefault();
  }

  async choose(row) {
    if (!row) return;
    this.dialog.close();
    const { kind, name, at } = row.entry;
    if (kind !== "setting" || !(await reach(name))) this.send("chosen", at);
  }
}

/** On a phone the sidebar lies over the page: once a page was chosen in it, it makes way. */
function makeWay({ target, currentTarget }) {
  const shown = matchMedia("(max-width: 640px)").matches && target.closest("a[data-testid=stPageLink-NavLink]");
  if (shown) currentTarget.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
}

const searches = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  const host = parentElement.querySelector(".clq-find");
  if (!searches.has(host)) searches.set(host, new Search(host));
  Object.assign(searches.get(host), { data, send: setTriggerValue });
  return () => searches.get(host).end();
}
