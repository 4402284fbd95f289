// --- cards, drawn when they scroll into view ---

const PAPER = 660; // width of a printed page inside all margins, in pixels
let paper = Infinity;
const main = byId("pairs");
const list = byId("list");
const viewOf = new WeakMap();

for (const view of views) {
  const { pair } = view;
  view.card = element("article", { id: `sentence-${pair.number}`, "aria-label": `Sentence ${pair.number}`, tabindex: -1 });
  view.height = 120 + 20 * Math.max(pair.source.length, 6) + 60;
  view.card.style.minHeight = `${view.height}px`;
  view.item = element("li");
  view.rateLabel = element("span", { class: hasGold ? "rate" : "rate plain" });
  view.button = element("button", { type: "button" },
    element("span", { class: "number" }, String(pair.number)),
    element("span", { class: "words", dir: "auto", lang: data.languages[0] }, pair.source.slice(0, 40).join(" ")),
    view.rateLabel);
  view.item.append(view.button);
  view.button.addEventListener("click", () => choose(view));
  viewOf.set(view.card, view);
}

function countsLine(view) {
  const counts = tally(view.pair);
  const line = element("span", { class: "counts" });
  if (!view.pair.gold) {
    line.append(counts.link === 1 ? "1 link" : `${counts.link} links`);
    return line;
  }
  line.append(element("b", {}, `AER ${percent(errorRate(counts))}`));
  const parts = ["sure", "possible", "wrong", "missed"].filter((kind) => counts[kind]).map((kind) => `${counts[kind]} ${kind}`);
  line.append(` \u00a0 ${parts.join(", ") || "no links"}`);
  return line;
}

function render(view) {
  const { pair, card } = view;
  const style = getComputedStyle(card);
  const inside = card.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const room = Math.max(Math.min(inside, paper), 200);
  const figures = element("div", { class: "figures" });
  const links = shown(pair);
  const mode = document.body.dataset.view;
  const count = links.filter(([, kind]) => kind !== "missed" && kind !== "open").length;
  const add = (name, words, svg) => {
    svg.setAttribute("aria-label", `Sentence ${pair.number} as ${words}, ${count} predicted links`);
    figures.append(element("figure", { class: name, tabindex: 0 }, svg));
  };
  if (!pair.source.length || !pair.target.length) {
    const side = pair.source.length ? "target" : "source";
    const rest = element("p", { dir: "auto" }, [...pair.source, ...pair.target].join(" "));
    figures.append(element("p", {}, `The ${side} is empty: there is nothing to link.`), rest);
  } else {
    // Smaller cells leave room for the curves next to the matrix.
    const tight = room - GAP - 90 - 1 - sum(columnsOf(pair));
    const smaller = mode === "both" && !fitsRows(pair, room) && cellOf(pair, tight).cell >= (paper < Infinity ? 11 : 13);
    const grid = mode === "curves" ? null : matrix(view, smaller ? tight : room);
    if (mode !== "matrix") {
      const beside = grid ? room - Number(grid.getAttribute("width")) - GAP : room;
      add("curves", "curves between source and target words", curves(view, room, beside));
    }
    if (grid) add("matrix", "matrix of source words by target words", grid);
  }
  const details = element("details", {}, element("summary", {}, "Links as text"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) {
      details.append(element("ul", {}, ...inOrder(links).map(([link, kind]) => element("li", { dir: "auto" }, say(pair, link, kind)))));
    }
  });
  const title = element("h2", {}, `Sentence ${pair.number}`);
  card.replaceChildren(title, countsLine(view), figures, details);
  card.style.minHeight = "";
  view.drawn = true;
  listen(view, figures);
}

function forget(view) {
  view.height = view.card.offsetHeight;
  view.card.style.minHeight = `${view.height}px`;
  view.card.replaceChildren();
  view.drawn = false;
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const view = viewOf.get(entry.target);
    if (entry.isIntersecting && !view.drawn) render(view);
    else if (!entry.isIntersecting && view.drawn && !view.card.contains(document.activeElement)) forget(view);
  }
}, { rootMargin: "1500px 0px" });

// --- highlighted words and links ---

const tip = byId("tip");
function showTip(words, x, y) {
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 6))}px`;
  tip.style.top = `${y + 20 + height > innerHeight ? y - height - 10 : y + 18}px`;
}

function light(view, i, j) {
  const { card } = view;
  const lights = i !== null || j !== null;
  card.classList.toggle("lighted", lights);
  const near = { source: new Set(i === null ? [] : [i]), target: new Set(j === null ? [] : [j]) };
  for (const link of card.querySelectorAll(".link")) {
    const s = Number(link.dataset.source);
    const t = Number(link.dataset.target);
    const lit = lights && (i === null || s === i) && (j === null || t === j);
    link.classList.toggle("lit", lit);
    if (lit && link.dataset.kind !== "open") {
      near.source.add(s);
      near.target.add(t);
    }
  }
  for (const side of ["source", "target"]) {
    for (const word of card.querySelectorAll(`[data-${side}-word]`)) {
      const index = Number(word.getAttribute(`data-${side}-word`));
      const band = word.classList.contains("band");
      word.classList.toggle("lit", lights && (band ? index === (side === "source" ? i : j) : near[side].has(index)));
    }
  }
}

function wordTip(view, side, index) {
  const at = side === "source" ? 0 : 1;
  const said = shown(view.pair).filter(([link, kind]) => link[at] === index && kind !== "open").map(([link, kind]) => say(view.pair, link, kind));
  const word = text((side === "source" ? view.pair.source : view.pair.target)[index]);
  return said.length ? said.join("\n") : `${word}: no links`;
}

function listen(view, figures) {
  figures.addEventListener("pointermove", (event) => {
    const { target } = event;
    const svg = target.closest("svg");
    const word = target.closest(".word");
    const link = target.closest(".link");
    let i = null;
    let j = null;
    let words = "";
    if (word) {
      const side = word.hasAttribute("data-source-word") ? "source" : "target";
      const index = Number(word.getAttribute(`data-${side}-word`));
      if (side === "source") i = index;
      else j = index;
      words = wordTip(view, side, index);
    } else {
      let cell = link ? [Number(link.dataset.source), Number(link.dataset.target)] : null;
      if (!cell && svg && svg.cellAt) {
        const frame = svg.getBoundingClientRect();
        cell = svg.cellAt(event.clientX - frame.left, event.clientY - frame.top);
      }
      if (cell) {
        [i, j] = cell;
        const found = shown(view.pair).find(([known]) => known[0] === i && known[1] === j);
        words = found ? say(view.pair, ...found) : `${text(view.pair.source[i])} \u2013 ${text(view.pair.target[j])}`;
      }
    }
    light(view, i, j);
    showTip(words, event.clientX, event.clientY);
  });
  figures.addEventListener("pointerleave", () => {
    light(view, null, null);
    showTip("");
  });
  // Arrow keys move through the source words (left, right) and the target words (up, down).
  const steps = { ArrowRight: ["source", 1], ArrowLeft: ["source", -1], ArrowDown: ["target", 1], ArrowUp: ["target", -1] };
  const at = { source: -1, target: -1 };
  figures.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      light(view, null, null);
      showTip("");
    }
    if (!(event.key in steps)) return;
    const [side, step] = steps[event.key];
    const words = side === "source" ? view.pair.source : view.pair.target;
    if (!words.length) return;
    event.preventDefault();
    at[side] = at[side] < 0 ? (step > 0 ? 0 : words.length - 1) : (at[side] + step + words.length) % words.length;
    light(view, side === "source" ? at[side] : null, side === "target" ? at[side] : null);
    const frame = view.card.querySelector(`.word[data-${side}-word="${at[side]}"]`).getBoundingClientRect();
    showTip(wordTip(view, side, at[side]), frame.left, frame.bottom - 10);
  });
  figures.addEventListener("focusout", () => {
    light(view, null, null);
    showTip("");
  });
}

// --- order, search, threshold, keys ---

const ORDERS = [
  ["file", "of the file", (a, b) => a.place - b.place, true],
  ["worst", "worst first", (a, b) => b.rate - a.rate || a.place - b.place, hasGold],
  ["doubt", "least confident first", (a, b) => a.confidence - b.confidence || a.place - b.place, hasConfidence],
  ["long", "longest first", (a, b) => b.pair.source.length + b.pair.target.length - a.pair.source.length - a.pair.target.length || a.place - b.place, true],
];
const order = byId("order");
for (const [value, words, , offered] of ORDERS) if (offered) order.append(element("option", { value }, words));
const search = byId("search");
const slider = byId("threshold");
byId("threshold-label").hidden = !hasConfidence;

let sequence = views; // the pairs that are shown, in order
let current = null;

function count() {
  const total = { link: 0, sure: 0, possible: 0, wrong: 0, missed: 0, open: 0 };
  for (const view of views) {
    const counts = tally(view.pair);
    for (const kind in total) total[kind] += counts[kind];
    if (view.pair.gold) {
      view.rate = errorRate(counts);
      view.rateLabel.textContent = percent(view.rate);
      view.rateLabel.style.setProperty("--share", percent(view.rate));
    } else {
      view.rateLabel.textContent = counts.link;
    }
    view.button.setAttribute("aria-label", `Sentence ${view.pair.number}, ${view.pair.gold ? `alignment error rate ${percent(view.rate)}` : `${counts.link} links`}`);
  }
  const summary = byId("summary");
  const pairs = views.length === 1 ? "1 sentence pair" : `${views.length.toLocaleString("en")} sentence pairs`;
  summary.replaceChildren(sequence.length < views.length ? `${sequence.length.toLocaleString("en")} of ${pairs}` : pairs);
  const predicted = total.link + total.sure + total.possible + total.wrong;
  summary.append(`, ${predicted.toLocaleString("en")} links`);
  if (hasGold) {
    const share = (a, b) => (b ? percent(a / b) : "\u2013");
    summary.append(" \u00a0 ", element("b", {}, `AER ${percent(errorRate(total))}`),
      ` \u00a0 precision ${share(total.sure + total.possible, total.sure + total.possible + total.wrong)}`,
      ` \u00a0 recall ${share(total.sure, total.sure + total.missed)}`);
  }
}

function arrange() {
  const wanted = search.value.trim().toLowerCase();
  const compare = ORDERS.find(([value]) => value === order.value)[2];
  sequence = views.filter((view) => !wanted || view.haystack.includes(wanted) || String(view.pair.number) === wanted);
  sequence = sequence.slice().sort(compare);
  watcher.disconnect();
  for (const view of views) if (view.drawn) forget(view);
  // By fragments, as a call cannot take one argument per pair.
  const items = new DocumentFragment();
  const cards = new DocumentFragment();
  for (const view of sequence) {
    items.append(view.item);
    cards.append(view.card);
  }
  list.replaceChildren(items);
  main.replaceChildren(cards);
  if (!sequence.length) main.append(element("p", { class: "nothing" }, views.length ? "No sentence pair matches the search." : "There are no sentence pairs."));
  sequence.slice(0, EAGER).forEach(render);
  for (const view of sequence) watcher.observe(view.card);
}

function redraw() {
  for (const view of views) if (view.drawn) render(view);
}

function choose(view) {
  if (current) for (const made of [current.card, current.button]) made.removeAttribute("aria-current");
  current = view;
  for (const made of [view.card, view.button]) made.setAttribute("aria-current", "true");
  if (!view.drawn) render(view);
  view.card.scrollIntoView({ block: "start" });
  view.card.focus({ preventScroll: true });
  const frame = view.item.getBoundingClientRect();
  const nav = list.parentElement;
  const window = nav.getBoundingClientRect();
  if (frame.top < window.top) nav.scrollTop -= window.top - frame.top;
  else if (frame.bottom > window.bottom) nav.scrollTop += frame.bottom - window.bottom;
}

const legend = byId("legend");
for (const kind of hasGold ? ["sure", "possible", "wrong", "missed", "open"] : []) {
  const sample = draw("svg", { width: 46, height: 18, "aria-hidden": "true" });
  if (kind !== "open") {
    const line = draw("path", { d: "M20 9H45" });
    line.setAttribute("class", "link");
    line.setAttribute("data-kind", kind);
    sample.append(draw("g", { class: "curves" }, line));
  } else sample.setAttribute("width", 18);
  const symbol = mark(kind, 8, 9, 17);
  symbol.setAttribute("class", "link mark");
  symbol.setAttribute("data-kind", kind);
  sample.append(symbol);
  legend.append(element("li", {}, sample, WORDS[kind]));
}
if (hasConfidence) legend.append(element("li", {}, "fainter: less confident"));

let waiting = 0;
search.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { arrange(); count(); }, views.length > 500 ? 150 : 0);
});
order.addEventListener("change", arrange);
byId("view").addEventListener("change", (event) => {
  document.body.dataset.view = event.target.value;
  redraw();
});
let pending = 0;
const soon = (action) => {
  clearTimeout(pending);
  pending = setTimeout(action, 0);
};
slider.addEventListener("input", () => {
  threshold = Number(slider.value);
  slider.nextElementSibling.value = threshold.toFixed(2);
  soon(() => { count(); redraw(); });
});
slider.addEventListener("change", () => { if (order.value === "worst") arrange(); });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target === search) search.blur();
  if (event.target.closest("input, select")) return;
  if (event.key === "/") {
    event.preventDefault();
    search.focus();
  }
  const step = { j: 1, k: -1 }[event.key];
  if (!step || !sequence.length) return;
  const place = sequence.indexOf(current);
  choose(sequence[place < 0 ? 0 : Math.max(0, Math.min(sequence.length - 1, place + step))]);
});

const header = document.querySelector("header");
const fit = () => document.documentElement.style.setProperty("--head", `${header.offsetHeight}px`);
let width = innerWidth;
addEventListener("resize", () => {
  fit();
  if (innerWidth !== width) {
    width = innerWidth;
    soon(redraw);
  }
});
addEventListener("beforeprint", () => {
  paper = PAPER;
  sequence.forEach(render);
});
addEventListener("afterprint", () => {
  paper = Infinity;
  redraw();
});

document.body.dataset.view = "both";
arrange();
count();
fit();
