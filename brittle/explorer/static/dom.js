// Elements, without a framework.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

export function s(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "checked" || name === "value") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// As the report writes numbers.
export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(Math.min(2, digits - 1)).replace(/\.?0+e/, "e").replace("e+", "e") : String(Number(value.toPrecision(digits)));
}

export function slider(label, given, changed) {
  const { least, most, log = false, whole = true, value } = given;
  const places = 1000;
  const place = (x) => (log ? Math.log(x / least) / Math.log(most / least) : (x - least) / (most - least)) * places;
  const at = (p) => {
    const x = log ? least * (most / least) ** (p / places) : least + ((most - least) * p) / places;
    return whole ? Math.round(x) : Number(x.toPrecision(3));
  };
  const output = h("output", {}, number(value));
  const input = h("input", { type: "range", min: 0, max: places, "aria-label": label, value: place(value), step: whole && !log ? places / (most - least) : 1 });
  let now = value;
  input.addEventListener("input", () => {
    now = at(Number(input.value));
    output.textContent = number(now);
    input.setAttribute("aria-valuetext", number(now));
    changed(now);
  });
  const element = h("label", { class: "field" }, h("span", {}, label), output, input);
  element.set = (x) => { now = x; input.value = place(x); output.textContent = number(x); };
  element.get = () => now;
  return element;
}

export function choice(label, options, value, changed) {
  const pairs = Array.isArray(options) ? options.map((each) => [each, each]) : Object.entries(options);
  const select = h("select", { "aria-label": label, onchange: () => changed(select.value) },
    pairs.map(([key, text]) => h("option", { value: key }, text)));
  select.value = value;
  return select;
}

export function check(label, value, changed, swatch) {
  const box = h("input", { type: "checkbox", checked: value, onchange: () => changed(box.checked) });
  const mark = swatch ? h("span", { class: "swatch" }) : null;
  if (mark) mark.style.color = `var(--${swatch})`;
  const element = h("label", { class: "check" }, box, mark, label);
  element.set = (on) => { box.checked = on; };
  return element;
}

let hiding = 0;
export function say(text, lasting = 3500) {
  const line = byId("status");
  line.textContent = text;
  line.classList.add("shown");
  clearTimeout(hiding);
  hiding = setTimeout(() => line.classList.remove("shown"), lasting);
}

export function complain(error) {
  if (error?.name !== "AbortError") say(error.message, 7000);
}
