// "The attacker may move x by r": surely safe, unknown, broken.
function counts(r) {
  const broken = known.filter(each => each.upper <= r).length;
  const safe = known.filter(each => each.upper > r && (r === 0 || each.lower > r)).length;
  return {safe, unknown: known.length - safe - broken, broken};
}

// Where the last example is flipped; what the data allow is shown too, unless that would squeeze all the rest to the left.
const FAR = 3;
const longest = Math.max(0, ...known.map(each => each.upper).filter(Number.isFinite)), allowed = audit.limit ? audit.limit.median : 0;
const farthest = (longest > 0 && allowed > FAR * longest ? longest : Math.max(longest, allowed) || 1) * 1.05;
const field = {left: 52, right: 690, top: 10, bottom: 206};

function area(heights, kind) {
  const steps = heights.length - 1, x = axis(0, steps, field.left, field.right), y = axis(0, 1, field.bottom, field.top);
  const upper = heights.map(([, high], step) => `${x(step).toFixed(1)} ${y(high).toFixed(1)}`);
  const lower = heights.map(([low], step) => `${x(step).toFixed(1)} ${y(low).toFixed(1)}`).reverse();
  return shape("path", {d: "M" + [...upper, ...lower].join("L") + "Z", class: kind});
}

// As wide as its place, so that words and numbers keep their size on every screen.
function attackerChart() {
  const place = find("#attacker-chart"), width = Math.max(280, place.clientWidth);
  field.right = width - 10;
  const all = Array.from({length: 320}, (_, step) => counts(farthest * step / 319)), n = known.length;
  const chart = shape("svg", {viewBox: `0 0 ${width} 250`, class: "chart", role: "img"});
  chart.append(shape("title", {}, "Shares of the examples that are surely safe, unknown and broken, by the length of the change"));
  chart.append(area(all.map(each => [(each.safe + each.unknown) / n, 1]), "broken"));
  chart.append(area(all.map(each => [each.safe / n, (each.safe + each.unknown) / n]), "unknown"));
  chart.append(area(all.map(each => [0, each.safe / n]), "safe"));
  const x = axis(0, farthest, field.left, field.right), y = axis(0, 1, field.bottom, field.top);
  for (const value of ticks(0, farthest)) chart.append(label(x(value), 222, number(value, 3), "tick", "middle"));
  for (const value of [0, 0.5, 1]) chart.append(label(field.left - 6, y(value) + 4, share(value, 0), "tick", "end"));
  chart.append(stroke(field.left, field.bottom, field.right, field.bottom, "base"));
  chart.append(label((field.left + field.right) / 2, 242, "length r of the change", "axis", "middle"));
  chart.append(stroke(field.left, field.top - 6, field.left, field.bottom, "cursor"));
  find("svg", place)?.remove();
  place.prepend(chart);
}

function move(r) {
  const now = counts(r), x = axis(0, farthest, field.left, field.right)(Math.min(r, farthest));
  for (const name of ["safe", "unknown", "broken"]) find("#" + name).textContent = `${now[name]} (${share(now[name] / known.length, 0)})`;
  const cursor = find("#attacker-chart .cursor");
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  const size = audit.vulnerability.norm_of_examples, each = r / Math.sqrt(audit.geometry.columns);
  const part = size > 0 ? `${share(r / size)} of a typical example; ` : "";
  find("#r").setAttribute("aria-valuetext", number(r));
  find("#r-words").textContent = `${part}${number(each, 2)} on each of the ${audit.geometry.columns} features, if spread evenly`;
}

function startAttacker() {
  attackerChart();
  const slider = find("#r"), typed = find("#r-number");
  const median = audit.vulnerability.free.median;
  let r = median === null ? farthest / 2 : median;  // what is typed is rounded: the counts are of r itself
  slider.addEventListener("input", () => { r = farthest * slider.value / 1000; typed.value = Number(r.toPrecision(4)); move(r); });
  typed.addEventListener("input", () => { r = Math.max(0, Number(typed.value) || 0); slider.value = 1000 * r / farthest; move(r); });
  window.addEventListener("resize", () => { attackerChart(); move(r); });
  slider.value = 1000 * r / farthest;
  typed.value = Number(r.toPrecision(4));
  move(r);
}
