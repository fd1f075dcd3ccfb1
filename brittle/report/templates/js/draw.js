// Elements and small pictures.
const find = (selector, inside = document) => inside.querySelector(selector);
const findAll = (selector, inside = document) => [...inside.querySelectorAll(selector)];

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  return filled(made, attributes, inside);
}

function shape(name, attributes = {}, ...inside) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  return filled(made, attributes, inside);
}

function filled(made, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

const label = (x, y, words, kind = "label", anchor = "start") => shape("text", {x, y, class: kind, "text-anchor": anchor}, words);
const stroke = (x1, y1, x2, y2, kind) => shape("line", {x1, y1, x2, y2, class: kind});

const axis = (low, high, start, end) => value => start + (high > low ? (value - low) / (high - low) : 0) * (end - start);

function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(factor => unit * factor).find(each => each >= rough * 0.999);
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place <= Math.floor(high / step + 1e-9); place++) found.push(place * step);
  return found;
}

function bytes(text) {
  return Uint8Array.from(atob(text), each => each.charCodeAt(0));
}
