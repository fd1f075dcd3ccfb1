// Downloads: what the page shows, for other programs.
function save(name, parts, type) {
  const address = URL.createObjectURL(new Blob(parts, {type}));
  const link = element("a", {href: address, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function csv() {
  const names = Object.keys(table), cell = value => /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
  const lines = table.example.map((_, row) => names.map(name => cell(String(table[name][row] ?? ""))).join(","));
  return [names.join(","), ...lines, ""].join("\n");
}

const DRAWN = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "opacity", "font-size", "font-family", "font-weight", "text-anchor"];

// A copy that needs no style sheet: what the page's rules say of every part is written to it.
function alone(chart) {
  const copy = chart.cloneNode(true), box = chart.getBoundingClientRect();
  const whole = [chart, ...findAll("*", chart)], parts = [copy, ...findAll("*", copy)];
  whole.forEach((part, place) => plainStyle(part, parts[place]));
  const defs = find("svg.defs defs"), pattern = defs.cloneNode(true);
  findAll("*", defs).forEach((part, place) => plainStyle(part, findAll("*", pattern)[place]));
  copy.prepend(pattern);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return {text: new XMLSerializer().serializeToString(copy), box};
}

function plainStyle(from, to) {
  const style = getComputedStyle(from);
  for (const name of DRAWN) if (style.getPropertyValue(name)) to.setAttribute(name, style.getPropertyValue(name));
  to.removeAttribute("class");
}

async function png(chart) {
  const {text, box} = alone(chart), image = new Image(), canvas = element("canvas"), scale = 2, edge = 12;
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  canvas.width = (box.width + 2 * edge) * scale;
  canvas.height = (box.height + 2 * edge) * scale;
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(find("#strip")).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, edge * scale, edge * scale, box.width * scale, box.height * scale);
  return new Promise(done => canvas.toBlob(done, "image/png"));
}

async function savePicture(figure) {
  save(figure.dataset.name + ".png", [await png(find("svg", figure))], "image/png");
}

function startSaves() {
  find("#get-json").addEventListener("click", () => save("audit.json", [JSON.stringify(audit, null, 2)], "application/json"));
  find("#get-csv").addEventListener("click", () => save("examples.csv", [csv()], "text/csv"));
  find("#get-latex").addEventListener("click", () => save("audit.tex", [content.latex], "text/plain"));
  find("#get-png").addEventListener("click", async () => { for (const figure of findAll(".figure")) if (find("svg", figure)) await savePicture(figure); });
  find("#print").addEventListener("click", () => window.print());
  for (const figure of findAll(".figure")) {
    const button = element("button", {type: "button", class: "save noprint", "aria-label": "Save this picture as PNG"}, "PNG");
    button.addEventListener("click", () => savePicture(figure));
    figure.append(button);
  }
}
