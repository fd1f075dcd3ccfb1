// The margin in a plane through one example: its shortest flip to the right, the nearest of another class upwards.
function sliceOf(one) {
  const slice = examples.slices[one.row];
  if (!slice) return null;
  const margins = [...bytes(slice.margins)].map(each => (each - 128) / 127), size = 320, n = slice.grid;
  const chart = shape("svg", {viewBox: "0 0 340 352", class: "chart", role: "img"});
  chart.append(shape("title", {}, `A slice through example ${one.example}: the boundary lies ${number(one.upper, 3)} to the right`));
  const picture = {href: shaded(margins, n), x: 10, y: 10, width: size, height: size, preserveAspectRatio: "none"};
  chart.append(shape("image", picture), shape("rect", {x: 10, y: 10, width: size, height: size, class: "slicebox"}));
  chart.append(shape("path", {d: boundary(margins, n, size, 10), class: "edge"}));
  const across = axis(-slice.reach, slice.reach, 10, 10 + size), up = axis(-slice.reach, slice.reach, 10 + size, 10);
  const ball = Math.min(one.lower, slice.reach) * size / (2 * slice.reach);
  if (one.lower > 0) chart.append(shape("circle", {cx: across(0), cy: up(0), r: ball, class: "ball"}, shape("title", {}, `proved: no flip within ${number(one.lower, 3)}`)));
  chart.append(shape("circle", {cx: across(0), cy: up(0), r: 4.5, class: "here"}, shape("title", {}, "the example")));
  chart.append(shape("circle", {cx: across(one.upper), cy: up(0), r: 4.5, class: "here moving"}, shape("title", {}, "on the way along its flip")));
  chart.append(label(across(0), up(0) - 9, clipped(one.label), "label onslice", "middle"));
  const [right, high] = slice.rival, inside = Math.max(Math.abs(right), Math.abs(high)) / slice.reach;
  const part = inside > 0.94 ? 0.94 / inside : 1;
  chart.append(stroke(across(0), up(0), across(right * part), up(high * part), "toward"));
  chart.append(label(across(right * part), up(high * part) + (part < 1 ? 12 : -6), clipped(examples.rivals.labels[one.row]) + (part < 1 ? " ↗" : ""), "label onslice", right * part > 0 ? "end" : "start"));
  chart.append(label(170, 347, "shortest flip →", "axis", "middle"));
  return {chart, place: t => across(t * one.upper)};
}

// A name that fits into the picture; in full it stands beside it.
const clipped = (name, most = 14) => name.length > most ? name.slice(0, most - 1) + "…" : name;

function shaded(margins, n) {
  const canvas = element("canvas"), image = new ImageData(n, n);
  canvas.width = canvas.height = n;
  margins.forEach((margin, at) => {
    const row = n - 1 - Math.floor(at / n), column = at % n;
    image.data.set([...diverging(margin > 0 ? -0.15 - 0.65 * margin : 0.15 - 0.65 * margin), 255], 4 * (row * n + column));
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  const large = element("canvas");
  large.width = large.height = 8 * n;
  const pen = large.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, 0, 0, 8 * n, 8 * n);
  return large.toDataURL("image/png");
}

// Where the margin is 0: a straight line through every square of four neighbours whose signs differ.
function boundary(margins, n, size, start) {
  const at = (row, column) => margins[row * n + column], lines = [];
  const x = column => start + (column + 0.5) * size / n, y = row => start + size - (row + 0.5) * size / n;
  for (let row = 0; row < n - 1; row++) for (let column = 0; column < n - 1; column++) {
    const corners = [[row, column], [row, column + 1], [row + 1, column + 1], [row + 1, column]], cuts = [];
    corners.forEach((one, side) => {
      const other = corners[(side + 1) % 4], a = at(...one), b = at(...other);
      if (a > 0 === b > 0) return;
      const part = a / (a - b);
      cuts.push([x(one[1] + part * (other[1] - one[1])), y(one[0] + part * (other[0] - one[0]))].map(each => each.toFixed(1)).join(" "));
    });
    for (let cut = 0; cut + 1 < cuts.length; cut += 2) lines.push(`M${cuts[cut]}L${cuts[cut + 1]}`);
  }
  return lines.join("");
}
