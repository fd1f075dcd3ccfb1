// An audit to walk through: one example at a time, along any ray.

import { ask, floats, newest } from "./api.js";
import { choice, colour, complain, h, number, s } from "./dom.js";
import { chart, contour, shading } from "./draw.js";

const WAYS = { flip: "its shortest flip", on: "the flip on the subspace", off: "the flip off the subspace", gradient: "the gradient", rival: "the nearest of another class", example: "another example", universal: "one direction for all", random: "a random direction" };

export class Walk {
  constructor(root, about, changed) {
    Object.assign(this, { root, about, changed, row: 0, way: "flip", across: "rival", sort: "step", t: 0, c: 0, seed: 0, other: 1, direction: null });
    this.load = newest(() => this.ask().catch(complain));
  }

  state() { return this.list ? { row: this.row, way: this.way, across: this.across, sort: this.sort, t: this.t, c: this.c, seed: this.seed, other: this.other } : null; }

  async open(kept) {
    if (this.list) return this.redraw();
    this.root.replaceChildren(h("p", { class: "card" }, `Measuring ${this.about.walk} …`));
    this.list = await ask("examples");
    const limits = { row: this.list.labels.length - 1, other: this.list.labels.length - 1, seed: 99999 };
    for (const name of ["row", "other", "seed"]) if (Number.isInteger(kept[name]) && kept[name] >= 0 && kept[name] <= limits[name]) this[name] = kept[name];
    for (const name of ["way", "across"]) if (this.ways()[kept[name]]) this[name] = kept[name];
    for (const name of ["t", "c"]) if (typeof kept[name] === "number") this[name] = kept[name];
    if (["step", "row", "label"].includes(kept.sort)) this.sort = kept.sort;
    if (!Number.isInteger(kept.row)) this.row = this.order()[0];
    this.direction = this.list.directions[0];
    this.build();
    this.universal = await ask("universal", { direction: this.direction });
    await this.load();
  }

  ways() {
    const fills = this.list.codimension === null;
    return Object.fromEntries(Object.entries(WAYS).filter(([name]) => !(fills && (name === "on" || name === "off"))));
  }

  build() {
    const { list } = this;
    this.grid = h("div", { class: "examples", id: "examples", role: "listbox", "aria-label": "Examples" });
    this.pictures = h("div", { class: "pictures" });
    this.facts = h("div", { class: "readout", id: "walk-facts" });
    this.words = h("p", { id: "walk-words" });
    this.rayBox = s("svg", { class: "picture", id: "ray", role: "img", "aria-label": "Margin along the ray", viewBox: "0 0 560 300" });
    this.sliceBox = s("svg", { class: "picture", id: "slice", role: "img", "aria-label": "Margins in a plane through the example", viewBox: "0 0 520 520" });
    this.kinks = h("p", { class: "small quiet", id: "kinks" });
    this.slide = h("input", { id: "slide", type: "range", min: 0, max: 1000, value: 0, "aria-label": "how far along the ray", oninput: () => { this.t = (Number(this.slide.value) / 1000) * (this.ray?.limit ?? 1); this.drawRay(); this.drawPictures(); this.changed(); } });
    this.wayChoice = choice("direction of the ray", this.ways(), this.way, (value) => { this.way = value; this.load(); });
    this.acrossChoice = choice("second direction of the slice", this.ways(), this.across, (value) => { this.across = value; this.load(); });
    this.sortChoice = choice("order", { step: "nearest to a flip first", row: "as they are", label: "by label" }, this.sort, (value) => { this.sort = value; this.drawList(); this.changed(); });
    this.otherBox = h("input", { type: "number", min: 0, max: list.labels.length - 1, value: this.other, "aria-label": "which example", onchange: () => { this.other = Math.min(list.labels.length - 1, Math.max(0, Math.round(Number(this.otherBox.value)) || 0)); this.load(); } });
    this.moved = h("div", { id: "moved" });
    this.sizeInput = h("input", { id: "walk-c", type: "range", min: 0, max: 1000, value: 0, "aria-label": "size of the perturbation", oninput: () => { this.c = (Number(this.sizeInput.value) / 1000) * this.reach(); this.drawUniversal(); this.changed(); } });
    this.counter = h("p", { id: "walk-counter" });
    this.curve = s("svg", { class: "picture", id: "flip-curve", role: "img", "aria-label": "Share of examples flipped by the size", viewBox: "0 0 420 210" });
    this.directionChoice = choice("direction", Object.fromEntries(list.directions.map((each) => [each, { examples: "from the examples (vardi2022)", gradients: "from the gradients", falling: "from the gradients" }[each]])), this.direction, (value) => { this.direction = value; return ask("universal", { direction: value }).then((found) => { this.universal = found; this.drawUniversal(); }).catch(complain); });
    const main = h("div", { class: "stack" },
      h("div", { class: "card" }, this.words, this.facts),
      h("div", { class: "charts" },
        h("div", { class: "card" }, h("div", { class: "row" }, h("span", { class: "quiet" }, "along"), this.wayChoice, this.otherBox), h("figure", {}, this.rayBox), h("label", { class: "field" }, h("span", {}, "slide along the ray"), h("output", { id: "slide-at" }), this.slide), this.kinks, this.pictures, this.moved),
        h("div", { class: "card" }, h("div", { class: "row" }, h("span", { class: "quiet" }, "and across"), this.acrossChoice), h("figure", {}, this.sliceBox), h("p", { class: "small quiet" }, "Inside the circle nothing flips the example: that is proved. Dots are the other examples, projected on this plane."))));
    const aside = h("aside", { class: "stack" },
      h("div", { class: "card" }, h("div", { class: "row" }, h("h2", {}, `${list.title}: ${list.examples} examples`)), h("div", { class: "row small" }, this.sortChoice), this.grid,
        h("p", { class: "small quiet" }, list.labels.length < list.examples ? `The first ${list.labels.length} are listed. ` : "", "Below each: how far one step along its gradient has to go.")),
      h("details", { class: "card", open: true }, h("summary", {}, "One direction for all"), this.directionChoice, h("label", { class: "field" }, h("span", {}, "size c"), h("output", { id: "walk-size" }), this.sizeInput), this.counter, this.curve));
    this.root.replaceChildren(h("div", { class: "split" }, main, aside));
    this.drawList();
  }

  name(label) {
    const { names, binary } = this.list;
    if (names) return names[binary ? (label > 0 ? 1 : 0) : label];
    return binary ? (label > 0 ? "+1" : "−1") : String(label);
  }

  order() {
    const rows = this.list.labels.map((_, k) => k);
    const far = (k) => this.list.steps[k] ?? Infinity;
    if (this.sort === "step") rows.sort((a, b) => far(a) - far(b));
    if (this.sort === "label") rows.sort((a, b) => this.list.labels[a] - this.list.labels[b] || far(a) - far(b));
    return rows;
  }

  image(row) {
    const { pixels, columns } = this.list;
    this.pixels ??= pixels ? floats(pixels) : null;
    return this.pixels?.subarray(row * columns, (row + 1) * columns);
  }

  drawList() {
    const flipped = this.flipped ?? new Set();
    this.grid.replaceChildren(...this.order().map((row) => {
      const wrong = this.list.margins[row] <= 0;
      const button = h("button", { "data-row": row, role: "option", "aria-selected": row === this.row, "aria-pressed": row === this.row, title: `example ${row}, label ${this.name(this.list.labels[row])}${wrong ? ", misclassified" : ""}`, class: `${flipped.has(row) ? "flipped" : ""} ${wrong ? "wrong" : ""}`, onclick: () => this.choose(row) });
      if (this.list.image) button.append(canvas(this.image(row), this.list.image));
      button.append(h("span", {}, this.list.image ? "" : `${row}: `, this.name(this.list.labels[row])), h("span", { class: "quiet" }, number(this.list.steps[row], 3)));
      return button;
    }));
  }

  choose(row) {
    this.row = row;
    this.t = 0;
    this.grid.querySelectorAll("button").forEach((each) => { const on = Number(each.dataset.row) === row; each.setAttribute("aria-pressed", on); each.setAttribute("aria-selected", on); });
    return this.load();
  }

  async ask() {
    const asked = { row: this.row, way: this.way, across: this.across, seed: this.seed, example: this.other };
    document.body.classList.add("busy");
    try {
      this.example = await ask("example", { row: this.row });
      this.ray = await ask("ray", asked);
      this.slice = await ask("slice", asked);
    } finally {
      document.body.classList.remove("busy");
    }
    if (!this.t) this.t = this.ray.first_flip ?? 0;
    this.redraw();
    this.root.dataset.updates = Number(this.root.dataset.updates ?? 0) + 1;
    this.changed();
  }

  redraw() {
    if (!this.example) return;
    this.drawFacts(); this.drawRay(); this.drawSlice(); this.drawPictures(); this.drawUniversal();
    this.otherBox.hidden = this.way !== "example" && this.across !== "example";
  }

  drawFacts() {
    const { example, list } = this;
    const proved = example.lower === null ? "Nothing can be proved of this kind of network." : example.status === "exact" ? "The proof and the attack meet: the radius is known." : example.status === "error" ? "It is misclassified as it is." : "Between the two lies what is open.";
    this.words.replaceChildren(h("b", {}, `Example ${example.row}, label ${this.name(example.label)}. `), example.upper ? `A perturbation of length ${number(example.upper)} makes it ${this.name(example.becomes)}, ${number((100 * example.upper) / example.norm, 3)} % of its norm. ` : "", proved);
    const items = [["lower", example.lower, "proved: no flip below"], ["upper", example.upper, `shortest flip found${example.status ? ` (${example.status})` : ""}`]];
    if (list.codimension !== null) items.push(["on", example.lengths.on, "on the data's subspace"], ["off", example.lengths.off, `off it (${list.codimension} dimensions)`]);
    items.push(["limit", example.rival_distance === null ? null : example.rival_distance / 2, "what the data allow"], ["margin", example.margin, "margin"]);
    this.facts.replaceChildren(...items.map(([id, value, words]) => h("div", {}, h("b", { id: `fact-${id}`, "data-value": value }, number(value)), h("span", {}, words))));
    this.moved.replaceChildren(...(list.image ? [] : [h("p", { class: "small quiet" }, "The features that the flip moves most:"), h("table", { class: "hypotheses" }, h("tbody", {}, example.moved.map((each) => h("tr", {}, h("td", {}, `feature ${each.feature}`), h("td", { class: "numbers" }, `${number(each.from)} → ${number(each.from + each.by)}`)))))]));
  }

  drawRay() {
    const { ray } = this;
    if (!ray) return;
    const points = ray.sizes.map((size, k) => [size, ray.values[k]]);
    const marks = [{ x: Math.min(this.t, ray.limit), colour: colour("universal") }];
    if (this.example.lower > 0) marks.push({ x: this.example.lower, colour: colour("ball"), label: "proved", row: 0 });
    if (ray.first_flip !== null) marks.push({ x: ray.first_flip, colour: colour("flip"), dash: "4 4", label: "first flip", row: 1 });
    this.rayChart = chart(this.rayBox, { width: 560, height: 300, zero: true, x: { label: "distance from the example" }, y: { label: "margin" }, series: [{ points, colour: colour("pos"), width: 2, dots: ray.exact && points.length < 120 ? 2 : 0 }], marks });
    this.kinks.textContent = ray.exact ? `${ray.kinks} kinks, each at its place: between them the margin is linear.` : "Sampled: this network has no linear pieces, or too many.";
    this.slide.value = (1000 * Math.min(this.t, ray.limit)) / ray.limit;
    document.getElementById("slide-at").textContent = number(Math.min(this.t, ray.limit), 4);
  }

  drawSlice() {
    const { slice } = this, side = 520, svg = this.sliceBox;
    if (!slice) return;
    const shape = slice.margins.shape, count = shape[0], values = (slice.values ??= floats(slice.margins));
    const px = (x) => ((x + slice.half) / (2 * slice.half)) * side, py = (y) => side - px(y);
    const unit = [...values].map(Math.abs).sort((a, b) => a - b)[Math.floor(values.length / 2)] || 1;
    const cell = side / (count - 1);
    svg.replaceChildren(s("rect", { width: side, height: side, fill: colour("paper") }), s("image", { href: shading(values, shape, unit, 0.55), x: -cell / 2, y: -cell / 2, width: side + cell, height: side + cell, preserveAspectRatio: "none" }),
      s("path", { d: contour(values, shape, (j) => j * cell, (i) => side - i * cell), fill: "none", stroke: colour("boundary"), "stroke-width": 2.2 }));
    const others = (slice.near ??= floats(slice.others));
    for (let k = 0; k < others.length / 2; k++) {
      const x = others[2 * k], y = others[2 * k + 1];
      if (k !== slice.row && Math.abs(x) < slice.half && Math.abs(y) < slice.half) svg.append(s("circle", { cx: px(x), cy: py(y), r: 3, fill: this.list.labels[k] === this.example.label ? colour("pos") : colour("neg"), opacity: 0.55 }));
    }
    if (this.example.lower > 0) svg.append(s("circle", { cx: px(0), cy: py(0), r: (this.example.lower / (2 * slice.half)) * side, fill: colour("ball"), "fill-opacity": 0.12, stroke: colour("ball"), "stroke-width": 2 }));
    const [fx, fy] = slice.flip;
    svg.append(s("line", { x1: px(0), y1: py(0), x2: px(fx), y2: py(fy), stroke: colour("flip"), "stroke-width": 2 }), s("circle", { cx: px(fx), cy: py(fy), r: 4.5, fill: colour("flip") }), s("circle", { cx: px(0), cy: py(0), r: 7, fill: colour("ink"), stroke: colour("paper"), "stroke-width": 2 }));
    svg.append(s("text", { x: side - 8, y: side - 10, "text-anchor": "end", "font-size": 13, "font-family": "system-ui, sans-serif", fill: colour("ink") }, `→ ${WAYS[this.way]}`), s("text", { x: 10, y: 20, "font-size": 13, "font-family": "system-ui, sans-serif", fill: colour("ink") }, `↑ ${WAYS[this.across]}`));
  }

  // The example, what is added, and both: as far along the ray as the slider says.
  drawPictures() {
    const { image } = this.list, flip = this.example?.flips[this.way] ?? this.example?.flips.flip;
    this.pictures.hidden = !image || !this.example?.flips[this.way];
    if (this.pictures.hidden) return;
    const x = this.image(this.row), delta = floats(flip), size = Math.hypot(...delta) || 1;
    const added = Float32Array.from(delta, (each) => (each / size) * this.t), both = Float32Array.from(x, (each, k) => each + added[k]);
    const low = Math.min(...x), high = Math.max(...x);
    this.pictures.replaceChildren(...[[x, "the example", null], [added, "what is added", Math.max(...added.map(Math.abs)) || 1], [both, "both", null]].map(([values, words, scale]) =>
      h("figure", {}, canvas(values, image, { low, high, scale }), h("figcaption", { class: "small quiet" }, words))));
  }

  reach() {
    const starts = this.universal?.intervals.map((each) => each[1]) ?? [];
    return 1.3 * (this.universal?.smallest ?? (starts.length ? Math.max(...starts) : 1));
  }

  drawUniversal() {
    const known = this.universal;
    if (!known) return;
    const at = (c) => new Set(known.intervals.filter(([, start, stop]) => start < c && (stop === null || c < stop)).map(([k]) => k));
    this.flipped = at(this.c);
    const sizes = Array.from({ length: 121 }, (_, k) => (this.reach() * k) / 120);
    chart(this.curve, { width: 420, height: 210, x: { label: "size c" }, y: { label: "flipped, %", range: [0, 100] }, series: [{ points: sizes.map((c) => [c, (100 * at(c).size) / Math.max(1, known.count)]), colour: colour("universal") }], marks: [{ x: this.c, colour: colour("ink") }] });
    this.counter.replaceChildren(h("b", {}, `${this.flipped.size} of ${known.count}`), ` flipped at c = ${number(this.c, 3)}. `, h("span", { class: "quiet" }, known.smallest === null ? "No size flips all of them at once." : `All of them at ${number(known.smallest)}.`));
    this.counter.dataset.flipped = this.flipped.size;
    this.sizeInput.value = (1000 * this.c) / this.reach();
    document.getElementById("walk-size").textContent = number(this.c, 3);
    this.grid.querySelectorAll("button").forEach((each) => each.classList.toggle("flipped", this.flipped.has(Number(each.dataset.row))));
  }

  key(key) {
    const order = this.order(), place = order.indexOf(this.row), steps = { arrowleft: -1, arrowright: 1, ",": -1, ".": 1 };
    if (!steps[key] || order[place + steps[key]] === undefined) return false;
    this.choose(order[place + steps[key]]);
    return true;
  }

  async python() { return (await ask("walk-python", { row: this.row, way: this.way })).lines; }

  // The examples, and how far one step along its gradient has to go
  table() {
    const { labels, margins, steps } = this.list;
    return [["example", "label", "margin", "gradient_step"], labels.map((label, k) => [k, this.name(label), margins[k], steps[k]])];
  }

  picture() { return { svg: this.sliceBox, name: `brittle-example-${this.row}` }; }
}

// Pixels as they are, or in two colours round zero where a `scale` is given.
function canvas(values, shape, given = {}) {
  const [height, width] = shape.slice(-2), channels = shape.length === 3 ? shape[0] : 1;
  const element = h("canvas", { width, height }), context = element.getContext("2d"), image = context.createImageData(width, height);
  const low = given.low ?? Math.min(...values), high = given.high ?? Math.max(...values), { scale } = given;
  for (let k = 0; k < width * height; k++) {
    for (let c = 0; c < 3; c++) {
      const value = values[(channels === 3 ? c : 0) * width * height + k];
      if (scale) {
        const share = Math.max(-1, Math.min(1, value / scale));
        image.data[4 * k + c] = 255 * (share > 0 ? [1 - share, 1 - 0.55 * share, 1 - 0.3 * share][c] : [1 + 0.16 * share, 1 + 0.63 * share, 1 + share][c]);
      } else image.data[4 * k + c] = (255 * (value - low)) / (high - low || 1);
    }
    image.data[4 * k + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return element;
}
