// Five titles in the order they have so far, dragged by mouse or thumb; Python is told when one is let go.

export default function ({ parentElement, data, setTriggerValue }) {
  const list = parentElement.querySelector(".clq-order");
  const row = ({ place, title }, rank) => {
    const item = document.createElement("li");
    item.dataset.place = place;
    item.textContent = title;
    item.title = `Drag to its place; now ${rank + 1}`;
    return item;
  };
  list.replaceChildren(...data.rows.map(row));
  const places = () => [...list.children].map((item) => Number(item.dataset.place));
  let held = null, before = "";
  const take = (event) => {
    held = event.target.closest("li");
    if (!held) return;
    before = String(places());
    held.classList.add("clq-held");
    list.setPointerCapture(event.pointerId);
    event.preventDefault();
  };
  const move = (event) => {
    if (!held) return;
    const below = [...list.children].find((item) => {
      const box = item.getBoundingClientRect();
      return item !== held && event.clientY < box.top + box.height / 2;
    });
    if (held.nextElementSibling !== (below ?? null)) list.insertBefore(held, below ?? null);
  };
  const release = () => {
    if (!held) return;
    held.classList.remove("clq-held");
    const place = Number(held.dataset.place);
    held = null;
    if (String(places()) !== before) setTriggerValue("moved", { places: places(), place });
  };
  Object.assign(list, { onpointerdown: take, onpointermove: move, onpointerup: release, onpointercancel: release });
}
