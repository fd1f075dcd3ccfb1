// The picture for LaTeX, and the numbers behind it for a table.

const POINT = 0.4; // of TeX, to a unit of the picture
const SIGNS = { "γ": "$\\gamma$", "ε": "$\\varepsilon$", "λ": "$\\lambda$", "−": "$-$", "–": "--", "≤": "$\\le$", "≥": "$\\ge$", "∞": "$\\infty$", "→": "$\\to$", "↑": "$\\uparrow$", "·": "$\\cdot$", "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
const OPACITIES = { "fill-opacity": "fill opacity", "stroke-opacity": "draw opacity", opacity: "opacity" };

const place = (x, y) => `(${Number(Number(x).toFixed(2))},${Number(Number(y).toFixed(2))})`;
const points = (size) => `${Number((POINT * size).toFixed(2))}pt`;

// Everything that is drawn with a pen; the shading is pixels, and left out.
export function tikz(svg) {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number), colours = new Map();
  const shapes = [...svg.querySelectorAll("line, circle, rect, path, text")].filter((each) => !each.matches("[data-screen]"));
  const lines = shapes.map((each) => drawn(each, colours)).filter(Boolean);
  return [
    "% drawn by brittle explore; needs \\usepackage{tikz}",
    `\\begin{tikzpicture}[x=${POINT}pt, y=-${POINT}pt]`,
    ...[...colours].map(([value, name]) => `\\definecolor{${name}}{HTML}{${value}}`),
    `\\clip (0,0) rectangle ${place(width, height)};`,
    ...lines, "\\end{tikzpicture}", "",
  ].join("\n");
}

function drawn(element, colours) {
  const of = (name) => element.getAttribute(name) ?? 0;
  if (element.matches("text")) return written(element, colours);
  const options = style(element, colours);
  if (!options) return null;
  const [x, y] = [Number(of("x")), Number(of("y"))];
  const shape = {
    line: () => `${place(of("x1"), of("y1"))} -- ${place(of("x2"), of("y2"))}`,
    circle: () => `${place(of("cx"), of("cy"))} circle [radius=${points(of("r"))}]`,
    rect: () => `${place(x, y)} rectangle ${place(x + Number(of("width")), y + Number(of("height")))}`,
    path: () => [...of("d").matchAll(/([ML])?\s*(-?[\d.]+)[ ,]+(-?[\d.]+)/g)].map(([, move, a, b]) => (move === "M" ? "" : "-- ") + place(a, b)).join(" "),
  }[element.localName]();
  return shape ? `\\path[${options}] ${shape};` : null;
}

function style(element, colours) {
  const found = [], of = (name) => element.getAttribute(name);
  const fill = named(of("fill"), colours), stroke = named(of("stroke"), colours);
  if (fill) found.push(`fill=${fill}`);
  if (stroke) found.push(`draw=${stroke}`, `line width=${points(of("stroke-width") ?? 1)}`);
  if (stroke && of("stroke-dasharray")) found.push(`dash pattern=${of("stroke-dasharray").split(/[ ,]+/).map((size, k) => `${k % 2 ? "off" : "on"} ${points(size)}`).join(" ")}`);
  if (!found.length) return null;
  for (const [name, word] of Object.entries(OPACITIES)) if (of(name) !== null && Number(of(name)) !== 1) found.push(`${word}=${of(name)}`);
  return found.join(", ");
}

function written(element, colours) {
  const [, a, b, turn] = (element.getAttribute("transform") ?? "").match(/translate\(([-\d.]+)[ ,]+([-\d.]+)\)(?: rotate\(([-\d.]+)\))?/) ?? [];
  const anchor = { middle: "base", end: "base east" }[element.getAttribute("text-anchor")] ?? "base west";
  const size = points(element.getAttribute("font-size") ?? 12), at = a === undefined ? place(element.getAttribute("x"), element.getAttribute("y")) : place(a, b);
  const options = [`anchor=${anchor}`, "inner sep=0pt", `text=${named(element.getAttribute("fill"), colours) ?? "black"}`, `font=\\fontsize{${size}}{${size}}\\selectfont`];
  if (turn) options.push(`rotate=${-Number(turn)}`);
  return `\\node[${options.join(", ")}] at ${at} {${tex(element.textContent)}};`;
}

const tex = (text) => [...text].map((letter) => SIGNS[letter] ?? (/[&%$#_{}]/.test(letter) ? `\\${letter}` : letter)).join("");

function named(value, colours) {
  if (!value || value === "none" || value === "transparent") return null;
  const pen = (named.pen ??= document.createElement("canvas").getContext("2d"));
  pen.fillStyle = "#000000";
  pen.fillStyle = value; // the browser writes any colour as #rrggbb
  const code = pen.fillStyle.slice(1, 7).toUpperCase();
  if (!colours.has(code)) colours.set(code, `brittle${[...String(colours.size)].map((digit) => "abcdefghij"[digit]).join("")}`);
  return colours.get(code);
}

// Rows under their names; what is not known stays empty.
export function csv(names, rows) {
  const cell = (value) => (value === null || value === undefined ? "" : /[",\r\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
