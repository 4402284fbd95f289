const byId = (id) => document.getElementById(id);
const main = byId("cases");
const kind = document.body.dataset.kind;
const cards = [...main.querySelectorAll("article")];
const order = byId("order");
const filter = byId("filter");
const names = new Intl.Collator("en", { numeric: true });
const nothing = document.createElement("p");
nothing.className = "nothing";

// Errors are worst when large, the other rates when small; cards without a rate come last.
const rate = (card, key) => (key in card.dataset ? Number(card.dataset[key]) : null);
const compare = {
  name: () => 0,
  error: (a, b) => (rate(b, "error") ?? -1) - (rate(a, "error") ?? -1),
  iou: (a, b) => (rate(a, "iou") ?? 2) - (rate(b, "iou") ?? 2),
  boundary: (a, b) => (rate(a, "boundary") ?? 2) - (rate(b, "boundary") ?? 2),
};
let current = null;

function arrange() {
  const words = filter.value.trim().toLowerCase();
  const key = compare[order.value];
  const sorted = [...cards].sort((a, b) => key(a, b) || names.compare(a.dataset.name, b.dataset.name));
  const kept = sorted.filter((card) => card.dataset.name.toLowerCase().includes(words));
  nothing.textContent = cards.length ? `No ${kind} has this name.` : `There are no ${kind}s.`;
  main.replaceChildren(...(kept.length ? kept : [nothing]));
  byId("found").textContent = words ? `${kept.length} of ${cards.length}` : "";
  if (current && !current.isConnected) mark(null);
}

function mark(card) {
  current?.removeAttribute("aria-current");
  current = card;
  card?.setAttribute("aria-current", "true");
}

function go(step) {
  const visible = [...main.querySelectorAll("article")];
  if (!visible.length) return;
  const at = current ? visible.indexOf(current) + step : 0;
  mark(visible[Math.max(0, Math.min(visible.length - 1, at))]);
  current.scrollIntoView({ block: "start" });
  current.focus({ preventScroll: true });
}

const toggles = { g: byId("gold-edges"), p: byId("predicted-edges") };
for (const box of Object.values(toggles)) {
  const apply = () => document.body.classList.toggle(box.id, box.checked);
  box.addEventListener("change", apply);
  apply(); // a browser may keep the state over a reload
}
const opacity = byId("opacity");
const tint = () => document.body.style.setProperty("--opacity", String(opacity.value / 100));
opacity.addEventListener("input", tint);
tint();
order.addEventListener("change", arrange);
filter.addEventListener("input", arrange);
main.addEventListener("click", (event) => {
  const card = event.target.closest("article");
  if (card) mark(card);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target === filter) {
    filter.value = "";
    arrange();
    filter.blur();
    return;
  }
  if (event.target.closest?.("input[type=search], select")) return;
  if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "/") filter.focus();
  else if (toggles[event.key] && kind === "image") toggles[event.key].click();
  else return;
  event.preventDefault();
});

const controls = document.querySelector(".controls");
const measure = () => document.body.style.setProperty("--head", `${controls.offsetHeight}px`);
addEventListener("resize", measure);
measure();
arrange();
