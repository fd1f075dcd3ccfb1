// Pictures as SVG with colours written out, so that a saved file looks like the page.

import { colour, h, number, s } from "./dom.js";

// The zero line of values on a grid of rows from below: marching squares.
export function contour(values, [rows, count], x, y) {
  const parts = [];
  const cross = (a, b) => a / (a - b);
  for (let i = 0; i + 1 < rows; i++) {
    for (let j = 0; j + 1 < count; j++) {
      const a = values[i * count + j], b = values[i * count + j + 1];
      const c = values[(i + 1) * count + j + 1], d = values[(i + 1) * count + j];
      const ends = [];
      if (a > 0 !== b > 0) ends.push([j + cross(a, b), i]);
      if (b > 0 !== c > 0) ends.push([j + 1, i + cross(b, c)]);
      if (c > 0 !== d > 0) ends.push([j + 1 - cross(c, d), i + 1]);
      if (d > 0 !== a > 0) ends.push([j, i + 1 - cross(d, a)]);
      if (ends.length === 4) { // a saddle: the middle decides which corners belong together
        if ((a + b + c + d > 0) === (a > 0)) ends.push(ends.shift());
      }
      for (let k = 0; k + 1 < ends.length; k += 2) {
        const [p, q] = [ends[k], ends[k + 1]];
        parts.push(`M${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}L${x(q[0]).toFixed(1)} ${y(q[1]).toFixed(1)}`);
      }
    }
  }
  return parts.join("");
}

function rgb(name) {
  const text = colour(name).replace("#", "");
  return [0, 2, 4].map((k) => parseInt(text.slice(k, k + 2), 16));
}

// A picture of the sign and size of values: one colour for each side, deeper where it is surer.
export function shading(values, [rows, count], unit, deepest = 0.5) {
  const canvas = h("canvas", { width: count, height: rows });
  const context = canvas.getContext("2d");
  const image = context.createImageData(count, rows);
  const sides = [rgb("neg"), rgb("pos")];
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < count; j++) {
      const value = values[(rows - 1 - i) * count + j];
      const side = sides[value > 0 ? 1 : 0];
      const place = 4 * (i * count + j);
      for (let k = 0; k < 3; k++) image.data[place + k] = side[k];
      image.data[place + 3] = 255 * (0.1 + (deepest - 0.1) * Math.tanh(Math.abs(value) / unit));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

export function ticks(low, high, count = 5) {
  const rough = (high - low) / count;
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

// Axes for a chart of x and y; `series` are { name, points, colour, dash, width, dots }.
export function chart(svg, given) {
  const { series, x, y, zero = false, logY = false, marks = [], title } = given;
  const shape = (given.height ?? 250) / (given.width ?? 460);
  const width = Math.max(300, Math.min(900, svg.clientWidth || given.width || 460)), height = Math.max(180, width * shape); // letters keep their size
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  const all = series.flatMap((each) => each.points).filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b) && (!logY || b > 0));
  const named = series.filter((each) => each.name), left = 52, right = 12, top = (title ? 26 : 12) + (named.length > 1 ? 16 : 0), bottom = 36;
  const range = (values, given) => {
    if (given) return given;
    let low = Math.min(...values), high = Math.max(...values);
    if (!(high > low)) { high = low + (Math.abs(low) || 1) * 0.5; low -= (Math.abs(low) || 1) * 0.5; }
    return [low, high];
  };
  const toY = (value) => (logY ? Math.log10(value) : value);
  const [x0, x1] = range(all.length ? all.map((p) => p[0]) : [0, 1], x.range);
  let [y0, y1] = range(all.length ? all.map((p) => toY(p[1])) : [0, 1], y.range);
  if (zero) { y0 = Math.min(y0, 0); y1 = Math.max(y1, 0); }
  const pad = y.range ? 0 : 0.06 * (y1 - y0);
  y0 -= pad; y1 += pad;
  const px = (value) => left + ((width - left - right) * (value - x0)) / (x1 - x0 || 1);
  const py = (value) => height - bottom - ((height - top - bottom) * (toY(value) - y0)) / (y1 - y0 || 1);
  const line = colour("line"), quiet = colour("quiet"), ink = colour("ink");
  const text = (a, b, words, more = {}) => s("text", { x: a, y: b, "font-size": 11.5, fill: quiet, "font-family": "system-ui, sans-serif", ...more }, words);
  svg.append(s("rect", { width, height, fill: colour("paper") }));
  if (title) svg.append(text(width < 420 ? 12 : left, 15, title, { fill: ink, "font-size": width < 420 ? 12 : 13, "font-weight": 600 }));
  for (const value of ticks(x0, x1, 5)) {
    svg.append(s("line", { x1: px(value), x2: px(value), y1: top, y2: height - bottom, stroke: line, "stroke-width": 0.7 }));
    svg.append(text(px(value), height - bottom + 14, number(value, 3), { "text-anchor": "middle" }));
  }
  for (const value of ticks(y0, y1, 4)) {
    if (logY && Math.abs(value - Math.round(value)) > 1e-9) continue;
    const at = logY ? 10 ** value : value;
    svg.append(s("line", { x1: left, x2: width - right, y1: py(at), y2: py(at), stroke: line, "stroke-width": 0.7 }));
    svg.append(text(left - 6, py(at) + 4, number(at, 3), { "text-anchor": "end" }));
  }
  if (!logY && y0 < 0 && y1 > 0) svg.append(s("line", { x1: left, x2: width - right, y1: py(0), y2: py(0), stroke: quiet, "stroke-width": 1.2 }));
  svg.append(text((left + width - right) / 2, height - 5, x.label, { "text-anchor": "middle" }));
  if (y.label) svg.append(text(0, 0, y.label, { transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }));
  for (const mark of marks) {
    if (!(mark.x >= x0 && mark.x <= x1)) continue;
    svg.append(s("line", { x1: px(mark.x), x2: px(mark.x), y1: top, y2: height - bottom, stroke: mark.colour, "stroke-width": 1.6, "stroke-dasharray": mark.dash ?? null }));
    if (mark.label) svg.append(text(px(mark.x) + (px(mark.x) > width / 2 ? -5 : 5), top + (mark.row ?? 0) * 14 + 11, mark.label, { fill: mark.colour, "text-anchor": px(mark.x) > width / 2 ? "end" : "start", "font-weight": 600 }));
  }
  series.forEach((each) => {
    const good = each.points.filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b) && (!logY || b > 0));
    if (good.length) svg.append(s("path", { d: "M" + good.map(([a, b]) => `${px(a).toFixed(2)} ${py(b).toFixed(2)}`).join("L"), fill: "none", stroke: each.colour, "stroke-width": each.width ?? 1.8, "stroke-dasharray": each.dash ?? null, "stroke-opacity": each.opacity ?? 1, "stroke-linejoin": "round" }));
    for (const [a, b] of each.dots ? good : []) svg.append(s("circle", { cx: px(a), cy: py(b), r: each.dots, fill: each.colour }));
  });
  if (named.length > 1) {
    let at = left;
    for (const each of named) {
      svg.append(s("line", { x1: at, x2: at + 14, y1: top - 9, y2: top - 9, stroke: each.colour, "stroke-width": 2.4, "stroke-dasharray": each.dash ?? null }));
      svg.append(text(at + 18, top - 5, each.name));
      at += 30 + 6.1 * each.name.length;
    }
  }
  return { px, py, x: [x0, x1], at: (event) => {
    const box = svg.getBoundingClientRect();
    return x0 + ((x1 - x0) * (((event.clientX - box.left) / box.width) * width - left)) / (width - left - right);
  } };
}

// A value beside its threshold: the middle is the threshold, green to the side where it holds.
export function slack(each) {
  const svg = s("svg", { class: "slack", viewBox: "0 0 100 20", role: "img", "aria-label": `slack ${number(each.slack)}` });
  const good = colour("good"), bad = colour("bad"), most = each.relation === "≤";
  svg.append(s("rect", { x: 0, y: 8, width: 50, height: 4, rx: 2, fill: most ? good : bad, opacity: 0.35 }));
  svg.append(s("rect", { x: 50, y: 8, width: 50, height: 4, rx: 2, fill: most ? bad : good, opacity: 0.35 }));
  svg.append(s("rect", { x: 49, y: 3, width: 2, height: 14, fill: colour("quiet") }));
  let where = each.value > 0 && each.threshold > 0 ? Math.log10(each.value / each.threshold) / 2 : Math.sign((each.value ?? Infinity) - (each.threshold ?? 0)) * 0.6;
  if (!Number.isFinite(where)) where = each.holds === most ? -1 : 1;
  if ((where <= 0) !== (each.holds === most) && where !== 0) where = 0;
  svg.append(s("circle", { cx: 50 + 45 * Math.max(-1, Math.min(1, where)), cy: 10, r: 6, fill: each.holds ? good : bad }));
  return svg;
}

export function theorems(list, open) {
  return list.map((each) => {
    const failing = each.hypotheses.filter((one) => !one.holds).length;
    const state = each.verdict === "not_applicable" ? "none" : failing ? "" : "holds";
    const count = each.hypotheses.length ? `${each.hypotheses.length - failing} of ${each.hypotheses.length} hold` : "not about these data";
    const row = (one) => h("tr", {}, h("td", {}, one.name), h("td", { class: `numbers ${one.holds ? "good" : "bad"}` }, one.shown), h("td", {}, slack(one)));
    const element = h("details", { class: "theorem", "data-id": each.id, open: open.has(each.id) },
      h("summary", {}, h("span", { class: `dot ${state}` }), h("b", {}, each.id), h("span", { class: "quiet small" }, count)),
      h("p", { class: "small" }, each.claim),
      each.hypotheses.length ? h("table", { class: "hypotheses" }, h("tbody", {}, each.hypotheses.map(row))) : h("p", { class: "small quiet" }, each.why),
      each.promises.length ? h("p", { class: "small" }, `Promised and measured (${each.verdict.replace("_", " ")}):`) : null,
      each.promises.length ? h("table", { class: "hypotheses" }, h("tbody", {}, each.promises.map(row))) : null);
    element.addEventListener("toggle", () => (element.open ? open.add(each.id) : open.delete(each.id)));
    return element;
  });
}

export function saved(svg, kind, name) {
  const copy = svg.cloneNode(true);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.querySelectorAll("[data-screen]").forEach((each) => each.remove());
  copy.removeAttribute("class");
  const text = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  if (kind === "svg") return Promise.resolve(download(text, `${name}.svg`));
  return new Promise((done, failed) => {
    const image = new Image(), address = URL.createObjectURL(text), scale = 2;
    image.onload = () => {
      const canvas = h("canvas", { width: width * scale, height: height * scale });
      canvas.getContext("2d").drawImage(image, 0, 0, width * scale, height * scale);
      URL.revokeObjectURL(address);
      canvas.toBlob((blob) => done(download(blob, `${name}.png`)), "image/png");
    };
    image.onerror = () => failed(new Error("the picture could not be drawn"));
    image.src = address;
  });
}

export function download(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  return { name, size: blob.size };
}
