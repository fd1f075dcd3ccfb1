// The laboratory: points that can be moved, and everything that follows them.

import { ask, floats, newest, stream } from "./api.js";
import { byId, check, choice, colour, complain, h, number, s, say, slider } from "./dom.js";
import { chart, contour, shading, theorems } from "./draw.js";

const HEIGHT = 720; // of the picture, in its own units
const NAMES = { moons: "Moons", rings: "Rings", line: "Line of seven", xor: "XOR", sphere: "Slice of the sphere", clusters: "Clusters", own: "Your own points" };
const SHOWN = { shading: true, balls: true, flips: true, neurons: false, multipliers: true, universal: false, values: false };
const START = { width: 60, start: "pytorch", scale: 1, loss: "exponential", seed: 0, until: -20 };
const SCENES = [
  ["Two classes of points in the plane.", { shading: false, balls: false, flips: false, neurons: false, multipliers: false, universal: false }],
  ["A network that gradient flow tends to: its boundary, and how sure it is.", { shading: true, balls: false, flips: false, neurons: false, multipliers: false, universal: false }],
  ["A KKT point: a few neurons, each a line along which the network bends, carried by the points on the margin.", { shading: true, balls: false, flips: false, neurons: true, multipliers: true, universal: false }],
  ["Inside its ball no perturbation flips a point. That is proved.", { shading: true, balls: true, flips: false, neurons: false, multipliers: false, universal: false }],
  ["Where the ball touches the boundary: the shortest flip.", { shading: true, balls: true, flips: true, neurons: false, multipliers: false, universal: false }],
  ["One direction, against every label: how many points flip?", { shading: true, balls: false, flips: false, neurons: false, multipliers: false, universal: true }],
];

export class Plane {
  constructor(root, about, changed) {
    Object.assign(this, { root, about, changed });
    this.aspect = matchMedia("(max-width: 62rem)").matches ? 1 : 1.5;
    this.points = []; this.view = { x: 0, y: 0, half: 2.6 }; this.show = { ...SHOWN };
    this.given = { ...START }; this.preset = { preset: "moons", count: 20, noise: 0.08, seed: 0 };
    this.direction = "examples"; this.c = 0; this.label = 1; this.chosen = -1; this.frames = []; this.frame = -1;
    this.mode = "kkt"; this.jump = "kkt"; this.network = null; this.found = null; this.pinned = null; this.scene = 0;
    this.opened = new Set(["vardi2022/4.1"]);
    this.update = newest((parts, body) => this.ask(parts, body).catch((error) => this.refused(error)));
    this.build();
  }

  state() {
    if (!this.points.length) return null;
    const kept = { points: this.points, given: this.given, show: this.show, c: this.c, direction: this.direction, mode: this.mode, jump: this.jump, view: this.view, preset: this.preset };
    if (this.mode === "frame") kept.log_loss = this.frames[this.frame]?.log_loss ?? null;
    else if (this.network) kept.network = this.network;
    return kept;
  }

  async open(kept) {
    if (this.points.length) return this.redraw();
    for (const name of ["given", "show", "preset", "view"]) Object.assign(this[name], kept[name] ?? {});
    for (const name of ["c", "direction", "network"]) this[name] = kept[name] ?? this[name];
    if (Object.hasOwn(this.about.jumps, kept.jump)) this.jump = kept.jump;
    this.settle();
    if (!Array.isArray(kept.points) || !kept.points.length) return this.load();
    this.points = kept.points;
    if (kept.mode === "frame") {
      await this.train(false);
      const nearest = this.frames.findIndex((each) => each.log_loss === kept.log_loss);
      return this.to(nearest < 0 ? this.frames.length - 1 : nearest);
    }
    this.mode = "given";
    await this.update();
    if (kept.mode === "kkt") this.mode = "kkt";
    this.changed();
  }

  build() {
    this.svg = s("svg", { class: "picture", viewBox: `0 0 ${HEIGHT * this.aspect} ${HEIGHT}`, role: "application", "aria-label": "Points in the plane. Click to add one, drag to move it." });
    this.layers = Object.fromEntries(["ground", "shade", "neurons", "pinned", "balls", "boundary", "flips", "universal", "points"].map((name) => [name, s("g")]));
    this.svg.append(...Object.values(this.layers));
    this.svg.style.aspectRatio = this.aspect;
    this.bindPointer();
    this.readout = h("div", { class: "readout", id: "plane-readout" });
    this.sceneLine = h("p", { class: "scene", id: "scene" });
    this.timeline = this.buildTimeline();
    const main = h("div", { class: "card" }, this.sceneLine, h("figure", {}, this.svg), this.timeline, this.readout);
    this.theoremBox = h("div", { id: "plane-theorems" });
    const aside = h("aside", { class: "stack" }, this.buildPoints(), this.buildNetwork(), this.buildShow(), this.buildUniversal(),
      this.historyCard(), h("details", { class: "card", open: true }, h("summary", {}, "Theorems on these points"), this.theoremBox));
    this.root.append(h("div", { class: "split" }, main, aside));
  }

  buildPoints() {
    this.presetChoice = choice("preset", Object.fromEntries(this.about.presets.map((each) => [each, NAMES[each] ?? each])), this.preset.preset, (value) => { this.preset.preset = value; this.load(); });
    this.countSlider = slider("points", { least: 4, most: 40, value: this.preset.count }, (value) => { this.preset.count = value; this.load(); });
    this.noiseSlider = slider("noise", { least: 0, most: 0.5, whole: false, value: this.preset.noise }, (value) => { this.preset.noise = value; this.load(); });
    this.labelButtons = [1, -1].map((label) => h("button", { id: label > 0 ? "add-plus" : "add-minus", "aria-pressed": label === this.label, onclick: () => this.adding(label) }, label > 0 ? "● plus" : "■ minus"));
    this.relabelButton = h("button", { id: "relabel", disabled: true, onclick: () => this.relabel() }, "Relabel");
    this.removeButton = h("button", { id: "remove", disabled: true, onclick: () => this.remove() }, "Remove");
    return h("details", { class: "card", open: true }, h("summary", {}, "Points"),
      h("div", { class: "row" }, this.presetChoice, h("button", { id: "again", title: "Draw the points again", onclick: () => { this.preset.seed += 1; this.load(); } }, "Draw again")),
      this.countSlider, this.noiseSlider,
      h("div", { class: "row" }, h("span", { class: "quiet small" }, "A click adds"), this.labelButtons),
      h("div", { class: "row" }, this.relabelButton, this.removeButton, h("button", { id: "zoom-in", "aria-label": "Zoom in", onclick: () => this.zoom(1 / 1.25) }, "+"), h("button", { id: "zoom-out", "aria-label": "Zoom out", onclick: () => this.zoom(1.25) }, "−")));
  }

  buildNetwork() {
    const changed = (name) => (value) => { this.given[name] = value; this.stale(); };
    this.widthSlider = slider("width", { least: 2, most: this.about.most.width, log: true, value: this.given.width }, changed("width"));
    this.scaleSlider = slider("start divided by", { least: 0.1, most: 100, log: true, whole: false, value: this.given.scale }, changed("scale"));
    this.startChoice = choice("start", this.about.starts, this.given.start, changed("start"));
    this.lossChoice = choice("loss", this.about.losses, this.given.loss, changed("loss"));
    this.seedBox = h("input", { type: "number", min: 0, max: 99999, value: this.given.seed, "aria-label": "seed", onchange: () => { this.given.seed = Math.max(0, Math.round(Number(this.seedBox.value)) || 0); this.stale(); } });
    const jumps = Object.entries(this.about.jumps).map(([name, label]) => h("button", { id: `jump-${name}`, class: name === "kkt" ? "main" : "", onclick: () => this.jumpTo(name) }, label));
    return h("details", { class: "card", open: true }, h("summary", {}, "Network"),
      h("div", { class: "row" }, jumps, h("button", { id: "train", onclick: () => this.train().catch(complain) }, "▶ Train")),
      this.widthSlider, this.scaleSlider,
      h("div", { class: "row small" }, h("span", { class: "quiet" }, "start"), this.startChoice, h("span", { class: "quiet" }, "loss"), this.lossChoice),
      h("div", { class: "row small" }, h("span", { class: "quiet" }, "seed"), this.seedBox, h("button", { id: "pin", title: "Keep this boundary and its numbers, to compare with what comes next", "aria-pressed": false, onclick: () => this.pin() }, "Pin to compare")));
  }

  buildShow() {
    const words = { shading: "logits", balls: "proved balls", flips: "shortest flips", neurons: "neurons", multipliers: "multipliers", values: "radii as numbers" };
    const colours = { balls: "ball", flips: "flip", neurons: "neuron" };
    this.checks = {};
    return h("div", { class: "card" }, h("div", { class: "row small", id: "show" }, Object.entries(words).map(([name, text]) =>
      (this.checks[name] = check(text, this.show[name], (on) => { this.show[name] = on; this.redraw(); this.changed(); }, colours[name])))));
  }

  buildUniversal() {
    this.universalCheck = check("push every point", this.show.universal, (on) => { this.show.universal = on; this.redraw(); this.changed(); }, "universal");
    this.sizeSlider = slider("size c", { least: 0, most: 6, whole: false, value: this.c }, (value) => { this.c = value; this.show.universal = true; this.universalCheck.set(true); this.drawUniversal(); this.changed(); });
    this.directionChoice = choice("direction", { examples: "from the examples (vardi2022)", gradients: "from the gradients" }, this.direction, (value) => { this.direction = value; this.update(["universal"], { jump: "none" }); });
    this.counter = h("p", { id: "counter" });
    return h("details", { class: "card", open: true }, h("summary", {}, "One direction for all"), h("div", { class: "row" }, this.universalCheck, this.directionChoice), this.sizeSlider, this.counter);
  }

  buildTimeline() {
    this.playButton = h("button", { id: "play", disabled: true, "aria-label": "Play the flow", onclick: () => this.play() }, "▶");
    this.scrubber = h("input", { id: "scrubber", type: "range", min: 0, max: 0, value: 0, disabled: true, "aria-label": "Where the flow is", oninput: () => { this.stop(); this.to(Number(this.scrubber.value)); } });
    this.moment = h("output", { id: "moment" }, "train to see the flow");
    return h("div", { class: "timeline" }, this.playButton, this.scrubber, this.moment);
  }

  historyCard() {
    this.history = s("svg", { class: "picture", id: "history", viewBox: "0 0 460 250" });
    this.historyBox = h("details", { class: "card", open: true, hidden: true }, h("summary", {}, "The flow so far"), this.history);
    return this.historyBox;
  }

  // What is asked of the server

  body(parts) {
    return { points: this.points, network: this.network ?? undefined, jump: this.mode === "kkt" ? this.jump : "none", direction: this.direction, parts: parts ?? ["grid", "radii", "universal", "kkt", "gap", "theorems"], ...this.given, ...this.view, aspect: this.aspect };
  }

  async load() {
    this.stop();
    const { points } = await ask("points", this.preset).catch((error) => { complain(error); return {}; });
    if (!points) return;
    const far = Math.max(...points.flatMap(([x, y]) => [Math.abs(x), Math.abs(y)]));
    this.view = { x: 0, y: 0, half: Number((Math.max(1, far) * 1.22).toFixed(3)) };
    Object.assign(this, { points, network: null, chosen: -1, mode: "kkt", jump: "kkt", frames: [], frame: -1, pinned: null });
    byId("pin").setAttribute("aria-pressed", false);
    this.showTimeline();
    await this.update();
    this.changed();
  }

  async ask(parts, further) {
    const asked = performance.now(), points = this.points;
    const found = await ask("plane", { ...this.body(parts), ...further });
    this.took = performance.now() - asked;
    this.network = found.network;
    this.found = { ...(parts ? this.found : {}), ...(parts?.includes("kkt") ? { gap: null } : {}), ...found, points };
    this.redraw();
    this.svg.dataset.updates = Number(this.svg.dataset.updates ?? 0) + 1;
    this.changed();
    if (found.behind) this.update(parts); // the boundary stays a moment behind its points where it has to be solved for again
  }

  // Nothing of the points before is shown as if it were of these.
  refused(error) {
    complain(error);
    if (!this.found || this.found.points === this.points) return;
    this.found = null;
    this.redraw();
    this.changed();
  }

  jumpTo(name) {
    this.stop();
    this.jump = name;
    this.mode = "kkt";
    if (this.frame >= 0) this.network = this.frames[this.frame].network;
    const before = this.network?.v.length;
    return this.update().then(() => {
      const now = this.network?.v.length;
      if (before > now) say(`${before} neurons collapse to ${now}`);
      this.changed();
    });
  }

  stale() {
    this.network = null;
    this.frames = []; this.frame = -1;
    this.mode = "kkt";
    this.showTimeline();
    this.update();
  }

  async train(playing = true) {
    this.stop();
    this.running?.abort();
    this.running = new AbortController();
    const mine = this.running;
    this.frames = []; this.mode = "frame";
    document.body.classList.add("busy");
    try {
      for await (const frame of stream("flow", { points: this.points, ...this.given, ...this.view, aspect: this.aspect }, mine.signal)) {
        this.frames.push(frame);
        this.showTimeline();
        if (playing) this.drawFrame(this.frames.length - 1);
      }
    } finally {
      document.body.classList.remove("busy");
    }
    const last = this.frames.at(-1);
    if (last?.message && !last.message.startsWith("reached")) say(last.message, 7000);
    if (playing && mine === this.running) await this.to(this.frames.length - 1);
  }

  // One moment of the flow: the picture at once, the proofs when it stays

  drawFrame(place) {
    const frame = this.frames[place];
    if (!frame) return;
    this.frame = place;
    this.mode = "frame";
    this.network = frame.network;
    this.found = { ...frame, kkt: frame.stationarity === null ? null : { stationarity: frame.stationarity, normalised_margin: frame.normalised_margin }, points: this.points };
    this.scrubber.value = place;
    this.redraw();
  }

  async to(place) {
    this.drawFrame(place);
    await this.update();
    this.changed();
  }

  play() {
    if (this.playing) return this.stop();
    let place = this.frame >= this.frames.length - 1 ? 0 : this.frame;
    this.playButton.textContent = "❚❚";
    this.playing = setInterval(() => {
      this.drawFrame(place);
      place += 1;
      if (place >= this.frames.length) { this.stop(); this.to(this.frames.length - 1); }
    }, 160);
  }

  stop() {
    clearInterval(this.playing);
    this.playing = null;
    if (this.playButton) this.playButton.textContent = "▶";
  }

  showTimeline() {
    const some = this.frames.length > 1;
    this.playButton.disabled = !some;
    this.scrubber.disabled = !some;
    this.scrubber.max = Math.max(0, this.frames.length - 1);
    this.historyBox.hidden = !some;
    if (!some) this.moment.textContent = "train to see the flow";
  }

  // Points

  adding(label) {
    this.label = label;
    this.labelButtons.forEach((button, k) => button.setAttribute("aria-pressed", (k === 0) === (label > 0)));
  }

  choose(place) {
    this.chosen = place;
    this.relabelButton.disabled = this.removeButton.disabled = place < 0;
    this.drawPoints();
  }

  moved(place, x, y) {
    const points = this.points.map((each) => [...each]);
    points[place][0] = Number(x.toFixed(4));
    points[place][1] = Number(y.toFixed(4));
    this.edited(points);
  }

  relabel() {
    if (this.chosen < 0) return;
    const points = this.points.map((each) => [...each]);
    points[this.chosen][2] *= -1;
    this.edited(points);
  }

  remove() {
    if (this.chosen < 0 || this.points.length <= 2) return;
    const points = this.points.filter((_, place) => place !== this.chosen);
    this.choose(-1);
    this.edited(points);
  }

  add(x, y) {
    if (this.points.length >= this.about.most.points) return say(`${this.about.most.points} points are the most`);
    const points = [...this.points, [Number(x.toFixed(4)), Number(y.toFixed(4)), this.label]];
    this.edited(points);
    this.choose(points.length - 1);
  }

  edited(points) {
    this.stop();
    this.points = points;
    if (this.mode === "frame" || this.mode === "given") this.mode = this.mode === "frame" ? "given" : this.mode;
    this.drawPoints();
    clearTimeout(this.resting); // hypotheses are looked at when the points rest
    this.resting = setTimeout(() => this.rest(), 300);
    return this.update(["grid", "radii", "universal", "kkt"], { patient: false });
  }

  async rest() {
    if (this.mode === "kkt" && this.jump !== "kkt") await this.update(); // what was followed need not be the largest any more
    else if (!this.found?.behind) await this.update(["gap", "theorems"], { jump: "none" });
  }

  zoom(factor) {
    this.view.half = Number(Math.min(50, Math.max(0.05, this.view.half * factor)).toPrecision(5));
    this.redraw();
    return this.update(["grid"], { jump: "none" });
  }

  bindPointer() {
    const place = (event) => {
      const box = this.svg.getBoundingClientRect(), unit = HEIGHT / box.height;
      return this.world((event.clientX - box.left) * unit, (event.clientY - box.top) * unit);
    };
    let drag = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const hit = event.target.closest("[data-point]");
      drag = { point: hit ? Number(hit.dataset.point) : -1, x: event.clientX, y: event.clientY, far: false };
      if (hit) { this.svg.setPointerCapture(event.pointerId); this.choose(drag.point); this.layers.points.children[drag.point]?.focus({ preventScroll: true }); event.preventDefault(); }
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!drag) return;
      drag.far ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
      if (drag.point >= 0 && drag.far) this.moved(drag.point, ...place(event));
    });
    const up = (event) => {
      if (drag && drag.point < 0 && !drag.far && event.type === "pointerup") {
        const [x, y] = place(event);
        if (this.chosen >= 0) this.choose(-1);
        this.add(x, y);
      }
      drag = null;
    };
    this.svg.addEventListener("pointerup", up);
    this.svg.addEventListener("pointercancel", up);
    this.svg.addEventListener("dblclick", (event) => { if (event.target.closest("[data-point]")) this.relabel(); });
    this.svg.addEventListener("wheel", (event) => { if (event.shiftKey) { event.preventDefault(); this.zoom(event.deltaY > 0 ? 1.1 : 1 / 1.1); } }, { passive: false });
  }

  key(key, event) {
    const focused = document.activeElement?.closest?.("[data-point]");
    if (focused) this.chosen = Number(focused.dataset.point);
    const step = (event.shiftKey ? 0.1 : 0.02) * this.view.half;
    const arrows = { arrowleft: [-step, 0], arrowright: [step, 0], arrowup: [0, step], arrowdown: [0, -step] };
    if (focused && arrows[key]) {
      const [x, y] = this.points[this.chosen];
      this.moved(this.chosen, x + arrows[key][0], y + arrows[key][1]);
      return true;
    }
    if (document.body.classList.contains("lecture") && (key === "arrowright" || key === "arrowleft")) {
      this.toScene(this.scene + (key === "arrowright" ? 1 : -1));
      return true;
    }
    const toggles = { b: "balls", f: "flips", n: "neurons", m: "multipliers", u: "universal" };
    if (toggles[key]) {
      const name = toggles[key];
      this.show[name] = !this.show[name];
      this.settle();
      this.redraw();
      this.changed();
      return true;
    }
    const keys = {
      x: () => this.relabel(), delete: () => this.remove(), backspace: () => this.remove(), escape: () => this.choose(-1),
      k: () => this.jumpTo("kkt"), g: () => this.jumpTo("largest"), h: () => this.jumpTo("radius"), t: () => (this.frames.length > 1 ? this.play() : this.train().catch(complain)),
      ",": () => this.frame > 0 && this.to(this.frame - 1), ".": () => this.frame + 1 < this.frames.length && this.to(this.frame + 1),
      "[": () => this.push(-0.05), "]": () => this.push(0.05),
    };
    if (!keys[key]) return false;
    keys[key]();
    return true;
  }

  push(by) {
    this.c = Math.min(this.reach(), Math.max(0, this.c + by * this.reach()));
    this.show.universal = true;
    this.settle();
    this.drawUniversal();
    this.changed();
  }

  toScene(place) {
    this.scene = Math.min(SCENES.length - 1, Math.max(0, place));
    Object.assign(this.show, SCENES[this.scene][1]);
    if (this.show.universal && !this.c) this.c = this.found?.universal?.smallest ?? this.reach() / 2;
    this.settle();
    this.redraw();
    this.changed();
  }

  lecture(on) {
    if (on) this.toScene(this.scene);
  }

  // The controls as the state has them
  settle() {
    for (const [name, box] of Object.entries(this.checks)) box.set(this.show[name]);
    this.universalCheck.set(this.show.universal);
    this.sizeSlider.set(this.c);
    this.presetChoice.value = this.preset.preset;
    this.countSlider.set(this.preset.count); this.noiseSlider.set(this.preset.noise);
    this.widthSlider.set(this.given.width); this.scaleSlider.set(this.given.scale);
    this.startChoice.value = this.given.start; this.lossChoice.value = this.given.loss; this.seedBox.value = this.given.seed;
    this.directionChoice.value = this.direction;
  }

  // Drawing

  px(x, y) {
    const { x: cx, y: cy, half } = this.view;
    return [((x - cx) / half + this.aspect) * (HEIGHT / 2), (1 - (y - cy) / half) * (HEIGHT / 2)];
  }

  world(px, py) {
    const { x, y, half } = this.view;
    return [x + half * (px / (HEIGHT / 2) - this.aspect), y + half * (1 - py / (HEIGHT / 2))];
  }

  length(size) { return (size / (2 * this.view.half)) * HEIGHT; }

  redraw() {
    if (!this.points.length) return;
    this.layers.ground.replaceChildren(s("rect", { width: HEIGHT * this.aspect, height: HEIGHT, fill: colour("paper") }));
    this.sceneLine.textContent = SCENES[this.scene][0];
    this.drawGrid();
    this.drawNeurons();
    this.drawRadii();
    this.drawUniversal();
    this.drawPoints();
    this.drawReadout();
    this.drawHistory();
    if (!this.found) this.theoremBox.replaceChildren();
    if (this.found?.theorems) this.theoremBox.replaceChildren(...theorems(this.found.theorems, this.opened));
  }

  drawGrid() {
    const { shade, boundary, pinned } = this.layers;
    shade.replaceChildren(); boundary.replaceChildren(); pinned.replaceChildren();
    const grid = this.found?.grid;
    if (!grid) return;
    const shape = grid.logits.shape, values = (grid.values ??= floats(grid.logits));
    const [left, top] = this.px(grid.x - grid.half * grid.aspect, grid.y + grid.half), size = this.length(2 * grid.half);
    const margins = [...this.found.margins ?? [1]].map(Math.abs).sort((a, b) => a - b);
    const unit = (margins[Math.floor(margins.length / 2)] || 1) * 1.5;
    const bare = document.body.classList.contains("lecture") && this.scene === 0;
    const across = (size * grid.aspect) / (shape[1] - 1), up = size / (shape[0] - 1);
    if (this.show.shading) shade.append(s("image", { href: shading(values, shape, unit), x: left - across / 2, y: top - up / 2, width: size * grid.aspect + across, height: size + up, preserveAspectRatio: "none" }));
    const d = contour(values, shape, (j) => left + j * across, (i) => top + size - i * up);
    this.boundaryPath = d;
    if (!bare) boundary.append(s("path", { d, fill: "none", stroke: colour("boundary"), "stroke-width": 2.4, "stroke-linecap": "round" }));
    if (this.pinned) pinned.append(s("path", { d: this.pinned.boundary, fill: "none", stroke: colour("quiet"), "stroke-width": 2, "stroke-dasharray": "7 6" }));
  }

  pin() {
    this.pinned = this.pinned || !this.found ? null : { boundary: this.boundaryPath, numbers: Object.fromEntries(this.numbers()) };
    byId("pin").setAttribute("aria-pressed", Boolean(this.pinned));
    this.drawGrid();
    this.drawReadout();
  }

  drawNeurons() {
    const layer = this.layers.neurons;
    layer.replaceChildren();
    if (!this.show.neurons || !this.network || !this.found) return;
    const { W, b, v } = this.network, far = 4 * this.view.half, strongest = Math.max(...v.map((each, k) => Math.abs(each) * Math.hypot(...W[k])));
    W.forEach(([a, c], k) => {
      const size = Math.hypot(a, c), strength = (Math.abs(v[k]) * size) / strongest;
      if (!(size > 0)) return;
      const foot = [(-b[k] * a) / size ** 2, (-b[k] * c) / size ** 2];
      if (Math.hypot(foot[0] - this.view.x, foot[1] - this.view.y) > 2 * far) return;
      const [x1, y1] = this.px(foot[0] - (far * c) / size, foot[1] + (far * a) / size), [x2, y2] = this.px(foot[0] + (far * c) / size, foot[1] - (far * a) / size);
      layer.append(s("line", { x1, y1, x2, y2, stroke: colour(v[k] > 0 ? "pos" : "neg"), "stroke-width": 1.3, "stroke-opacity": 0.15 + 0.75 * strength, "stroke-dasharray": "2 3" }));
    });
  }

  drawRadii() {
    const { balls, flips } = this.layers, radii = this.found?.radii;
    balls.replaceChildren(); flips.replaceChildren();
    if (!radii || radii.lower.length !== this.points.length) return;
    (this.found.points ?? this.points).forEach(([x, y], k) => {
      const [cx, cy] = this.px(x, y), lower = radii.lower[k], upper = radii.upper[k];
      if (this.show.balls && lower > 0 && this.length(lower) < 3 * HEIGHT) {
        balls.append(s("circle", { cx, cy, r: this.length(lower), fill: colour("ball"), "fill-opacity": 0.1, stroke: colour("ball"), "stroke-width": 1.6 }));
        if (upper !== null && upper > lower * 1.001) balls.append(s("circle", { cx, cy, r: this.length(upper), fill: "none", stroke: colour("ball"), "stroke-dasharray": "3 4" }));
      }
      if (this.show.flips && upper > 0) {
        const [fx, fy] = this.px(x + radii.flips[k][0], y + radii.flips[k][1]);
        flips.append(s("line", { x1: cx, y1: cy, x2: fx, y2: fy, stroke: colour("flip"), "stroke-width": 2 }), s("circle", { cx: fx, cy: fy, r: 3.4, fill: colour("flip") }));
      }
      if (this.show.values && lower !== null) flips.append(s("text", { x: cx + 11, y: cy - 9, "font-size": 12, "font-family": "system-ui, sans-serif", fill: colour("ink") }, number(lower, 3)));
    });
  }

  reach() {
    const known = this.found?.universal;
    const starts = (known?.intervals ?? []).map((each) => each[1]);
    const most = known?.smallest ?? (starts.length ? Math.max(...starts) : this.view.half);
    return Math.max(0.1, 1.4 * most);
  }

  drawUniversal() {
    const layer = this.layers.universal, known = this.found?.universal;
    layer.replaceChildren();
    this.sizeSlider.querySelector("output").textContent = number(this.c, 3);
    if (!known || known.considered.length !== this.points.length) { this.counter.textContent = ""; return; }
    const flipped = new Set(known.intervals.filter(([, start, stop]) => start < this.c && (stop === null || this.c < stop)).map(([k]) => k));
    const right = known.considered.filter(Boolean).length;
    this.counter.replaceChildren(h("b", {}, `${flipped.size} of ${right}`), ` flipped at c = ${number(this.c, 3)}. `, h("span", { class: "quiet" }, known.smallest === null ? "No size flips all of them." : `All of them at ${number(known.smallest)}.`));
    this.counter.dataset.flipped = flipped.size;
    if (!this.show.universal) return;
    const [zx, zy] = known.z;
    (this.found.points ?? this.points).forEach(([x, y, label], k) => {
      const [x1, y1] = this.px(x, y), [x2, y2] = this.px(x - label * this.c * zx, y - label * this.c * zy);
      const ink = flipped.has(k) ? colour("universal") : colour("quiet");
      layer.append(s("line", { x1, y1, x2, y2, stroke: ink, "stroke-width": flipped.has(k) ? 2 : 1.2 }), marker(label, x2, y2, 6.5, { fill: flipped.has(k) ? colour("universal") : colour("paper"), stroke: colour(label > 0 ? "pos" : "neg"), "stroke-width": 2 }));
    });
  }

  drawPoints() {
    const layer = this.layers.points, multipliers = this.show.multipliers ? this.found?.kkt?.multipliers : null;
    const largest = multipliers ? Math.max(...multipliers, 1e-300) : 1;
    const marks = this.points.map(([x, y, label], k) => {
      const [cx, cy] = this.px(x, y), share = multipliers?.length === this.points.length ? Math.sqrt(multipliers[k] / largest) : null;
      const size = share === null ? 7.5 : 5 + 8 * share;
      const words = `point ${k + 1}, ${label > 0 ? "plus" : "minus"}, at ${number(x, 3)}, ${number(y, 3)}`;
      return s("g", { "data-point": k, tabindex: 0, role: "button", "aria-label": words, cursor: "grab" },
        s("circle", { cx, cy, r: 16, fill: "transparent", "data-screen": "" }),
        k === this.chosen ? s("circle", { cx, cy, r: size + 5, fill: "none", stroke: colour("ink"), "stroke-width": 1.6, "data-screen": "" }) : null,
        marker(label, cx, cy, size, { fill: colour(label > 0 ? "pos" : "neg"), stroke: colour("paper"), "stroke-width": 2, "fill-opacity": share === 0 ? 0.75 : 1 }));
    });
    const focused = layer.contains(document.activeElement) ? Number(document.activeElement.dataset.point) : -1;
    layer.replaceChildren(...marks);
    layer.children[focused]?.focus({ preventScroll: true });
  }

  // What is said of the network, as [id, value, words]
  numbers() {
    const radii = this.found?.radii, kkt = this.found?.kkt;
    const lower = radii ? [...radii.lower].sort((a, b) => a - b) : [];
    const median = lower.length ? lower[Math.floor((lower.length - 1) / 2)] : null;
    const wrong = this.found?.margins ? [...this.found.margins].filter((each) => each <= 0).length : "–";
    return [
      ["smallest", lower.length ? number(lower[0]) : "–", "smallest proved radius"],
      ["median", number(median), "median proved radius"],
      ["gamma", kkt ? number(kkt.normalised_margin) : "–", "normalised margin γ"],
      ["share", this.found?.gap ? `≥ ${number(100 * this.found.gap.share, 3)} %` : "–", "of the largest margin"],
      ["residual", kkt ? number(kkt.stationarity, 3) : "–", "distance from a KKT point, ε"],
      ["neurons", this.found && this.network ? this.network.v.length : "–", "neurons"],
      ["wrong", wrong, "misclassified"],
    ];
  }

  drawReadout() {
    const before = (id) => (this.pinned ? h("span", { id: `pinned-${id}` }, `pinned: ${this.pinned.numbers[id]}`) : null);
    this.readout.replaceChildren(...this.numbers().map(([id, value, words]) => h("div", {}, h("b", { id: `read-${id}` }, String(value)), h("span", {}, words), before(id))));
  }

  drawHistory() {
    const frame = this.frames[this.frame];
    if (frame) this.moment.textContent = frame.log_loss === null ? "at its start" : `ln L = ${number(frame.log_loss, 3)}, step ${frame.steps}`;
    if (this.frames.length < 2) return;
    const at = (name) => this.frames.map((each, k) => [k, each[name]]).filter(([, value]) => value !== null);
    chart(this.history, {
      height: 210, x: { label: "frame" }, y: {}, logY: true, title: "loss, margin, distance from a KKT point",
      series: [
        { name: "L", points: this.frames.map((each, k) => [k, each.log_loss === null ? NaN : Math.exp(each.log_loss)]), colour: colour("neg") },
        { name: "γ", points: at("normalised_margin"), colour: colour("pos") },
        { name: "ε", points: at("stationarity"), colour: colour("ball") },
      ],
      marks: this.frame >= 0 ? [{ x: this.frame, colour: colour("ink") }] : [],
    });
  }

  // What the library says of every point
  table() {
    const { radii, margins, kkt } = this.found ?? {}, along = this.found?.universal;
    const flipped = new Map((along?.intervals ?? []).map(([k, start]) => [k, start]).reverse()); // the first interval of each
    const names = ["x", "y", "label", "margin", "proved_radius", "flip_length", "flip_x", "flip_y", "multiplier", "flipped_by_one_direction_from"];
    return [names, this.points.map(([x, y, label], k) => [x, y, label, margins?.[k], radii?.lower[k], radii?.upper[k], radii?.flips[k]?.[0], radii?.flips[k]?.[1], kkt?.multipliers?.[k], flipped.get(k)])];
  }

  picture() { return { svg: this.svg, name: `brittle-plane-${this.preset.preset}` }; }

  async python() { return (await ask("python", { points: this.points, network: this.network, direction: this.direction })).lines; }
}

function marker(label, cx, cy, size, given) {
  if (label > 0) return s("circle", { cx, cy, r: size, ...given });
  const side = 1.8 * size;
  return s("rect", { x: cx - side / 2, y: cy - side / 2, width: side, height: side, rx: 2, ...given });
}
