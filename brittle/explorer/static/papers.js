// The settings of the four papers: training as it goes, and the theorem's hypotheses turning green.

import { ask, floats, stream } from "./api.js";
import { choice, colour, complain, h, number, s, say, slider } from "./dom.js";
import { chart, theorems } from "./draw.js";

export class Papers {
  constructor(root, about, changed) {
    Object.assign(this, { root, about, changed, frames: [], frame: -1, c: null, name: "vardi2022", seed: 0, values: {} });
    this.opened = new Set(Object.values(about.papers).map((each) => each.theorems[0]));
    this.build();
  }

  state() { return this.started ? { name: this.name, values: this.values, seed: this.seed, c: this.c } : null; }

  async open(kept) {
    if (this.started) return this.redraw();
    this.started = true;
    if (this.about.papers[kept.name]) this.name = kept.name;
    this.seed = Number.isInteger(kept.seed) ? kept.seed : 0;
    this.choose(this.name, kept.values ?? {});
    await this.run();
    if (typeof kept.c === "number") { this.c = kept.c; this.drawFan(); }
  }

  build() {
    this.buttons = Object.keys(this.about.papers).map((name) => h("button", { id: `paper-${name}`, onclick: () => { this.choose(name); this.run().catch(complain); } }, name));
    this.title = h("h2"); this.words = h("p", { class: "quiet" }); this.controls = h("div", { id: "paper-controls" });
    this.runButton = h("button", { id: "run-paper", class: "main", onclick: () => this.run().catch(complain) }, "▶ Train");
    this.seedBox = h("input", { type: "number", min: 0, max: 99999, value: 0, "aria-label": "seed", onchange: () => { this.seed = Math.max(0, Math.round(Number(this.seedBox.value)) || 0); this.later(); } });
    this.fan = s("svg", { class: "picture", id: "fan", role: "img", "aria-label": "Every example's margin along one direction", viewBox: "0 0 720 400" });
    this.curves = s("svg", { class: "picture", id: "curves", role: "img", "aria-label": "Loss, margin and KKT residual", viewBox: "0 0 460 250" });
    this.sizes = s("svg", { class: "picture", id: "sizes", role: "img", "aria-label": "Size that flips all examples", viewBox: "0 0 460 250" });
    this.scrubber = h("input", { id: "paper-scrubber", type: "range", min: 0, max: 0, value: 0, "aria-label": "Where training is", oninput: () => this.to(Number(this.scrubber.value)) });
    this.moment = h("output", { id: "paper-moment" });
    this.counter = h("p", { id: "paper-counter" }); this.box = h("div", { id: "paper-theorems" }); this.readout = h("div", { class: "readout" });
    this.sizeInput = h("input", { id: "paper-c", type: "range", min: 0, max: 1000, value: 0, "aria-label": "size of the perturbation", oninput: () => { this.c = (Number(this.sizeInput.value) / 1000) * this.now().universal.reach; this.drawFan(); this.changed(); } });
    const main = h("div", { class: "stack" },
      h("div", { class: "card" }, h("figure", {}, this.fan), h("label", { class: "field" }, h("span", {}, "push every example by c along one direction"), h("output", { id: "paper-size" }), this.sizeInput), this.counter,
        h("div", { class: "timeline" }, h("span", { class: "quiet small" }, "training"), this.scrubber, this.moment), this.readout),
      h("div", { class: "charts" }, h("div", { class: "card" }, this.curves), h("div", { class: "card" }, this.sizes)));
    const aside = h("aside", { class: "stack" },
      h("div", { class: "card" }, h("div", { class: "row" }, this.buttons), this.title, this.words, this.controls, h("div", { class: "row" }, this.runButton, h("span", { class: "quiet small" }, "seed"), this.seedBox)),
      h("div", { class: "card" }, h("h2", {}, "What it supposes"), this.box));
    this.root.append(h("div", { class: "split" }, main, aside));
  }

  choose(name, values = {}) {
    this.name = name;
    const paper = this.about.papers[name];
    this.values = Object.fromEntries(Object.entries(paper.controls).map(([key, each]) => [key, values[key] ?? each.set]));
    this.buttons.forEach((button) => button.setAttribute("aria-pressed", button.textContent === name));
    this.title.textContent = paper.title;
    this.words.textContent = paper.about;
    this.seedBox.value = this.seed;
    this.controls.replaceChildren(...Object.entries(paper.controls).map(([key, each]) => slider(each.label, { ...each, value: this.values[key] }, (value) => {
      this.values[key] = value;
      if (key === "dim" && this.values.codimension >= value) this.values.codimension = value - 1;
      this.later();
    })));
    this.c = null;
  }

  later() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.run().catch(complain), 350);
  }

  async run() {
    this.running?.abort();
    this.running = new AbortController();
    const mine = this.running;
    this.frames = [];
    document.body.classList.add("busy");
    try {
      for await (const frame of stream("paper", { paper: this.name, seed: this.seed, ...this.values }, mine.signal)) {
        this.frames.push(frame);
        this.to(this.frames.length - 1);
      }
    } finally {
      if (mine === this.running) document.body.classList.remove("busy");
    }
    const last = this.frames.at(-1);
    if (last?.message && !last.message.startsWith("reached") && !last.message.startsWith("a weight")) say(last.message, 7000);
    this.root.dataset.runs = Number(this.root.dataset.runs ?? 0) + 1;
    this.changed();
  }

  now() { return this.frames[this.frame]; }

  to(place) {
    this.frame = place;
    this.scrubber.max = this.frames.length - 1;
    this.scrubber.value = place;
    this.redraw();
  }

  redraw() {
    const frame = this.now();
    if (!frame) return;
    this.moment.textContent = frame.log_loss === null ? (frame.where === "start" ? "at its start" : "at the KKT point") : `ln L = ${number(frame.log_loss, 3)}`;
    this.box.replaceChildren(...theorems(frame.theorems, this.opened));
    this.drawFan();
    this.drawCurves();
    const items = [[frame.neurons, "neurons"], [number(frame.margin), "smallest margin"], [number(frame.normalised_margin), "normalised margin γ"], [number(frame.stationarity, 3), "distance from a KKT point, ε"], [number(frame.universal.smallest), "size that flips all"]];
    this.readout.replaceChildren(...items.map(([value, words]) => h("div", {}, h("b", {}, String(value)), h("span", {}, words))));
  }

  drawFan() {
    const frame = this.now(), known = frame?.universal;
    if (!known) return;
    const c = Math.min(this.c ?? 1.02 * (known.smallest ?? known.reach / 1.5), known.reach);
    const [count, steps] = known.margins.shape, values = (known.values ??= floats(known.margins));
    const flipped = new Set(known.intervals.filter(([, start, stop]) => start < c && (stop === null || c < stop)).map(([k]) => k));
    const series = Array.from({ length: count }, (_, k) => ({ points: Array.from({ length: steps }, (_, j) => [(known.reach * j) / (steps - 1), values[k * steps + j]]), colour: flipped.has(k) ? colour("universal") : colour("pos"), width: 1.3, opacity: 0.75 }));
    chart(this.fan, { width: 720, height: 400, series, zero: true, x: { label: "size c of the perturbation, x − y c z" }, y: { label: "margin" }, title: "Every example along one direction", marks: [{ x: c, colour: colour("universal") }, ...(known.smallest === null ? [] : [{ x: known.smallest, colour: colour("flip"), dash: "4 4", label: "all are flipped", row: 0 }])] });
    this.sizeInput.value = (1000 * c) / known.reach;
    document.getElementById("paper-size").textContent = number(c, 4);
    const right = known.considered.filter(Boolean).length;
    this.counter.replaceChildren(h("b", {}, `${flipped.size} of ${right}`), ` flipped. `, h("span", { class: "quiet" }, known.smallest === null ? "No size flips all of them at once." : `All of them at c = ${number(known.smallest)}.`));
    this.counter.dataset.flipped = flipped.size;
  }

  drawCurves() {
    const along = (get) => this.frames.map((each, k) => [k, get(each)]).filter(([, value]) => value !== null && value !== undefined);
    const here = [{ x: this.frame, colour: colour("quiet"), dash: "2 3" }];
    chart(this.curves, { x: { label: "frame" }, y: {}, logY: true, title: "Loss, margin, distance from a KKT point", marks: here, series: [
      { name: "L", points: along((each) => (each.log_loss === null ? null : Math.exp(each.log_loss))), colour: colour("neg") },
      { name: "γ", points: along((each) => each.normalised_margin), colour: colour("pos") },
      { name: "ε", points: along((each) => each.stationarity), colour: colour("ball") }] });
    chart(this.sizes, { x: { label: "frame" }, y: { label: "size" }, zero: true, title: "One direction: the size that flips all", marks: here, series: [{ points: along((each) => each.universal.smallest), colour: colour("universal"), dots: 2.4 }] });
  }

  key(key) {
    const steps = { ",": -1, ".": 1, arrowleft: -1, arrowright: 1 };
    if (key === "t") { this.run().catch(complain); return true; }
    const next = this.frame + (steps[key] ?? 0);
    if (!steps[key] || next < 0 || next >= this.frames.length) return false;
    this.to(next);
    return true;
  }

  async python() { return (await ask("paper-python", { paper: this.name, seed: this.seed, ...this.values })).lines; }

  // The training, frame by frame
  table() {
    const names = ["frame", "log_loss", "neurons", "smallest_margin", "normalised_margin", "distance_from_kkt", "size_that_flips_all"];
    return [names, this.frames.map((each, k) => [k, each.log_loss, each.neurons, each.margin, each.normalised_margin, each.stationarity, each.universal?.smallest])];
  }

  picture() { return { svg: this.fan, name: `brittle-${this.name}` }; }
}
