const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const theme = new URLSearchParams(location.search).get("theme");
if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;

const WORDS = {
  link: "predicted", sure: "right, sure", possible: "right, possible", wrong: "wrong", missed: "missed, sure",
  open: "possible, not predicted",
};
const SVG = "http://www.w3.org/2000/svg";
const FONT = getComputedStyle(document.body).fontFamily;
const SIZE = 14; // of words in curves, in pixels
const GAP = 28; // between the two figures of a pair, as in the style sheet
const EAGER = 30; // pairs drawn at once, before scrolling
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

const pen = document.createElement("canvas").getContext("2d");
const measure = (word, size) => {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(word).width;
};
const text = (word) => (word.trim() === "" ? "\u2205" : word);
const LONGEST = 24; // maximum characters of a word in a figure; tips and the list of links are complete
const short = (word) => {
  const letters = Array.from(text(word));
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}\u2026` : text(word);
};
const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};
const draw = (name, attributes = {}, ...children) => {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};
const percent = (share) => `${(100 * share).toFixed(1)}%`;

// --- the links of a pair at a threshold ---

let threshold = 0;
const kindOf = (pair, [, , predicted, gold, confidence]) => {
  const kept = predicted && (confidence === null || confidence >= threshold);
  if (!pair.gold) return kept ? "link" : null;
  if (kept) return ["wrong", "possible", "sure"][gold];
  return [null, "open", "missed"][gold];
};
const tally = (pair, counts = { link: 0, sure: 0, possible: 0, wrong: 0, missed: 0, open: 0 }) => {
  for (const link of pair.links) {
    const kind = kindOf(pair, link);
    if (kind) counts[kind] += 1;
  }
  return counts;
};
// Alignment error rate: 1 - (|A & S| + |A & P|) / (|A| + |S|).
const errorRate = (counts) => {
  const total = 2 * counts.sure + counts.possible + counts.wrong + counts.missed;
  return total ? 1 - (2 * counts.sure + counts.possible) / total : 0;
};

const views = data.pairs.map((pair, place) => ({
  pair, place, rate: 0, drawn: false,
  haystack: `${pair.source.join(" ")}\n${pair.target.join(" ")}`.toLowerCase(),
  confidence: pair.links.reduce((least, link) => (link[4] === null ? least : Math.min(least, link[4])), 2),
  turned: [pair.source, pair.target].map((words) => {
    const turned = words.reduce((count, word) => count + (RIGHT_TO_LEFT.test(word) ? 1 : 0), 0);
    return 2 * turned > words.length;
  }),
}));
const hasGold = data.pairs.some((pair) => pair.gold);
const hasConfidence = views.some((view) => view.confidence < 2);

// --- figures ---

const say = (pair, [i, j, , , confidence], kind) =>
  `${text(pair.source[i])} \u2013 ${text(pair.target[j])}: ${WORDS[kind]}` +
  (confidence === null ? "" : `, confidence ${confidence.toFixed(2)}`);

const describe = (made, pair, link, kind, classes) => {
  made.setAttribute("class", classes);
  made.dataset.sentence = pair.number;
  made.dataset.source = link[0];
  made.dataset.target = link[1];
  made.dataset.kind = kind;
  if (link[4] !== null) {
    made.dataset.confidence = link[4];
    made.style.setProperty("--o", (0.4 + 0.6 * link[4]).toFixed(3));
  }
  return made;
};

const wordBox = (side, index, word, x, y, width, height, attributes, bare) => {
  const label = draw("text", attributes, short(word));
  const box = draw("rect", { x, y, width, height, rx: 4 });
  const group = draw("g", { class: bare ? "word bare" : "word", [`data-${side}-word`]: index }, box, label);
  const language = data.languages[side === "source" ? 0 : 1];
  label.setAttribute("lang", language);
  label.setAttribute("direction", RIGHT_TO_LEFT.test(word) ? "rtl" : "ltr");
  return group;
};

// Errors are drawn last, on top.
const LAYERS = ["open", "link", "possible", "sure", "missed", "wrong"];
const shown = (pair) =>
  pair.links.map((link) => [link, kindOf(pair, link)]).filter(([, kind]) => kind !== null)
    .sort((a, b) => LAYERS.indexOf(a[1]) - LAYERS.indexOf(b[1]));

const inOrder = (links) => links.slice().sort(([a], [b]) => a[0] - b[0] || a[1] - b[1]);

const linked = (links) => {
  const sides = [new Set(), new Set()];
  for (const [link, kind] of links) {
    if (kind !== "open") {
      sides[0].add(link[0]);
      sides[1].add(link[1]);
    }
  }
  return sides;
};

const sum = (values) => values.reduce((a, b) => a + b, 0);
const widthsOf = (pair) => [pair.source, pair.target].map((words) => words.map((word) => measure(short(word), SIZE) + 8));
const rowsOf = (pair) => widthsOf(pair).map((widths) => sum(widths) + 6 * (widths.length - 1));
const columnsOf = (pair) => widthsOf(pair).map((widths) => Math.max(...widths, 20));
const fitsRows = (pair, room) => Math.max(...rowsOf(pair)) <= room;

// Two rows of words if they fit the width, otherwise two columns, as long sentences should not scroll sideways.
function curves(view, room, beside) {
  const { pair } = view;
  const links = shown(pair);
  const busy = linked(links);
  const sides = [pair.source, pair.target];
  const widths = widthsOf(pair);
  const svg = draw("svg", { role: "img", "font-size": SIZE, "font-family": FONT });
  const anchors = [[], []];
  const back = draw("g");
  const front = draw("g");
  const natural = rowsOf(pair);
  const full = Math.max(...natural, 60);
  const names = ["source", "target"];
  let curve;
  if (fitsRows(pair, room)) {
    const drop = Math.min(150, 70 + full / 12);
    sides.forEach((words, s) => {
      const gap = words.length > 1 ? Math.min(26, (full - natural[s]) / (words.length - 1)) : 0;
      let x = (full - natural[s] - gap * (words.length - 1)) / 2;
      const y = s === 0 ? 0 : 24 + drop;
      words.forEach((word, index) => {
        const width = widths[s][index];
        const left = view.turned[s] ? full - x - width : x;
        const middle = left + width / 2;
        front.append(wordBox(names[s], index, word, left, y, width, 24, { x: middle, y: y + 17, "text-anchor": "middle" }, !busy[s].has(index)));
        anchors[s].push([middle, s === 0 ? 25 : y - 1]);
        x += width + 6 + gap;
      });
    });
    svg.setAttribute("width", Math.ceil(full));
    svg.setAttribute("height", Math.ceil(48 + drop));
    curve = ([x, y], [u, v]) => `M${x} ${y}C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v}`;
  } else {
    const columns = columnsOf(pair);
    const used = sum(columns) + 1;
    const between = Math.max(90, Math.min(230, (beside >= used + 90 ? beside : room) - used));
    const height = 22 * Math.max(sides[0].length, sides[1].length);
    sides.forEach((words, s) => {
      const step = Math.min(height / words.length, 44);
      const top = (height - step * words.length) / 2;
      const edge = s === 0 ? columns[0] : columns[0] + between;
      words.forEach((word, index) => {
        const y = top + step * (index + 0.5);
        const width = widths[s][index];
        const left = s === 0 ? edge - width : edge;
        front.append(wordBox(names[s], index, word, left, y - 11, width, 22, { x: left + width / 2, y: y + 5, "text-anchor": "middle" }, !busy[s].has(index)));
        anchors[s].push([s === 0 ? edge + 2 : edge - 2, y]);
      });
    });
    svg.setAttribute("width", Math.ceil(columns[0] + between + columns[1]));
    svg.setAttribute("height", Math.ceil(height + 2));
    curve = ([x, y], [u, v]) => `M${x} ${y}C${(x + u) / 2} ${y} ${(x + u) / 2} ${v} ${u} ${v}`;
  }
  for (const [link, kind] of links) {
    if (kind === "open") continue; // these would hide the others; the matrix shows them
    back.append(describe(draw("path", { d: curve(anchors[0][link[0]], anchors[1][link[1]]) }), pair, link, kind, "link"));
  }
  svg.append(back, front);
  return svg;
}

const mark = (kind, x, y, cell) => {
  const r = cell * 0.32;
  if (kind === "possible" || kind === "open") {
    const d = r * 1.2;
    return draw("path", { d: `M${x} ${y - d}L${x + d} ${y}L${x} ${y + d}L${x - d} ${y}Z` });
  }
  if (kind === "wrong") return draw("path", { d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}` });
  return draw("path", { d: `M${x - r} ${y - r}H${x + r}V${y + r}H${x - r}Z` });
};

function cellOf(pair, room) {
  const n = Math.max(pair.source.length, pair.target.length);
  const wanted = n <= 25 ? 20 : n <= 45 ? 17 : 15;
  const size = Math.max(9, Math.min(13, wanted - 4));
  const labels = Math.max(...pair.source.map((word) => measure(short(word), size)), 20) + 12;
  const cell = Math.max(11, Math.min(wanted, Math.floor((room - labels - 30) / pair.target.length)));
  return { cell, size: Math.max(9, Math.min(13, cell - 3)), labels };
}

// One path for the lines and one mark per link; cells have no elements of their own.
function matrix(view, room) {
  const { pair } = view;
  const links = shown(pair);
  const busy = linked(links);
  const { cell, size, labels } = cellOf(pair, room);
  const rows = pair.source.length;
  const columns = pair.target.length;
  const slope = Math.PI / 3;
  const longest = Math.max(...pair.target.map((word) => measure(short(word), size)), 20);
  const top = Math.ceil(longest * Math.sin(slope) + 16);
  const last = Math.max(0, ...pair.target.map((word, j) => measure(short(word), size) * Math.cos(slope) - (columns - j - 1) * cell));
  const width = Math.ceil(labels + columns * cell + last + 12);
  const height = top + rows * cell + 2;
  const svg = draw("svg", { width, height, role: "img", "font-size": size, "font-family": FONT });
  const bands = draw("g");
  const words = draw("g");
  const lines = ["", ""];
  pair.source.forEach((word, i) => {
    const y = top + i * cell;
    bands.append(draw("rect", { class: "band", "data-source-word": i, x: labels, y, width: columns * cell, height: cell }));
    words.append(wordBox("source", i, word, 0, y, labels - 2, cell, { x: labels - 7, y: y + cell / 2 + size * 0.35, "text-anchor": RIGHT_TO_LEFT.test(word) ? "start" : "end" }, !busy[0].has(i)));
  });
  pair.target.forEach((word, j) => {
    const x = labels + j * cell;
    bands.append(draw("rect", { class: "band", "data-target-word": j, x, y: top, width: cell, height: rows * cell }));
    const turn = `rotate(-60 ${x + cell / 2} ${top - 5})`;
    const length = measure(short(word), size);
    const box = wordBox("target", j, word, x + cell / 2 - 4, top - 5 - cell * 0.42, length + 8, cell * 0.84, { x: x + cell / 2, y: top - 5 + size * 0.35, "text-anchor": RIGHT_TO_LEFT.test(word) ? "end" : "start" }, !busy[1].has(j));
    box.setAttribute("transform", turn);
    words.append(box);
  });
  for (let i = 0; i <= rows; i += 1) lines[i % 5 ? 0 : 1] += `M${labels} ${top + i * cell}h${columns * cell}`;
  for (let j = 0; j <= columns; j += 1) lines[j % 5 ? 0 : 1] += `M${labels + j * cell} ${top}v${rows * cell}`;
  const marks = draw("g");
  for (const [link, kind] of links) {
    const made = mark(kind, labels + (link[1] + 0.5) * cell, top + (link[0] + 0.5) * cell, cell);
    marks.append(describe(made, pair, link, kind, "link mark"));
  }
  svg.append(bands, draw("path", { class: "lines", d: lines[0] }), draw("path", { class: "lines strong", d: lines[1] }), words, marks);
  svg.cellAt = (x, y) => {
    const i = Math.floor((y - top) / cell);
    const j = Math.floor((x - labels) / cell);
    return i >= 0 && i < rows && j >= 0 && j < columns ? [i, j] : null;
  };
  return svg;
}
