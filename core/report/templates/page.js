"use strict";
// Draws the charts, sorts tables, and opens everything for print. Nothing is fetched.
(() => {
  const PAPER = 680; // width of a printed page's text at 96 pixels an inch
  const LOW = 410; // height on paper of charts that need not be higher, so that one fits below the answer
  const HIGH = 540; // charts above it have a line per stack, which keep their distance
  const charts = [...document.querySelectorAll(".chart")];
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const config = read("config");
  const heights = new Map(); // as made: Plotly forgets them when the window changes its size

  for (const place of charts) {
    const name = place.dataset.name;
    const figure = read(`data-${name}`);
    heights.set(place, figure.layout.height ?? LOW);
    const image = { ...config.toImageButtonOptions, filename: name };
    Plotly.newPlot(place, figure.data, figure.layout, {
      ...config,
      toImageButtonOptions: image,
      responsive: true,
    }).then(() => place.classList.add("drawn"));
  }

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details:not([open])")) {
      opened.push(each);
      each.open = true;
    }
    for (const place of charts) {
      const made = heights.get(place);
      const height = made <= HIGH ? Math.min(LOW, made) : made;
      // The place has the size too: Plotly asks it when the window changes its size, as it does for print.
      Object.assign(place.style, { minHeight: 0, height: `${height}px`, width: `${PAPER}px` });
      Plotly.relayout(place, { width: PAPER, height, autosize: false });
    }
  });
  addEventListener("afterprint", () => {
    for (const each of opened.splice(0)) each.open = false;
    for (const place of charts) {
      Object.assign(place.style, { minHeight: `${heights.get(place)}px`, height: "", width: "" });
      Plotly.relayout(place, { width: null, height: heights.get(place), autosize: true });
    }
  });

  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.order === undefined ? cell.textContent : Number(cell.dataset.order);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : typeof a === typeof b
        ? a.localeCompare(b, "en", { numeric: true })
        : typeof a === "number"
          ? -1
          : 1; // numbers before what is unknown
  const sort = (table, column, head) => {
    const now = head.getAttribute("aria-sort");
    const first = head.classList.contains("number") ? "descending" : "ascending";
    const next = now === null ? first : now === "descending" ? "ascending" : "descending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => (typeof a === typeof b ? sign * compare(a, b) : compare(a, b)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => sort(table, column, head));
      head.replaceChildren(button);
    });
  }
})();
