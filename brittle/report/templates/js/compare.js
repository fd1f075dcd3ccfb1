// Two audits of the same data: what changed from the other one to this; as in auditing/change.py.
const MEASURES = [
  ["median distance to a flip", ["vulnerability", "free", "median"]],
  ["proved for half of the examples", ["vulnerability", "certified", "median_lower"]],
  ["share of what the data allow", ["limit", "share"], share],
  ["proved share of it", ["limit", "proved_share"], share],
  ["training accuracy", ["regime", "accuracy"], share],
];
const SAME = 1e-3;
const reach = (whole, path) => path.reduce((value, name) => value === null ? null : value[name], whole);

function changed(before, after) {
  const same = before.vulnerability.held_out === after.vulnerability.held_out;
  const first = new Map(enclosures(before).map(each => [each.example, each]));
  const pairs = same ? enclosures(after).filter(each => first.has(each.example)).map(each => [first.get(each.example), each]) : [];
  const differs = ([old, now]) => old.upper !== now.upper && Math.abs(now.upper - old.upper) > SAME * Math.min(old.upper, now.upper);
  return {
    pairs,
    measures: MEASURES.map(([name, path, form = number]) => ({name, form, before: reach(before, path), after: reach(after, path)})),
    farther: pairs.filter(pair => differs(pair) && pair[1].upper > pair[0].upper).length,
    nearer: pairs.filter(pair => differs(pair) && pair[1].upper < pair[0].upper).length,
    surelyFarther: pairs.filter(([old, now]) => now.lower > old.upper).length,
    surelyNearer: pairs.filter(([old, now]) => now.upper < old.lower).length,
  };
}

function showChange(other, name) {
  const change = changed(other, audit);
  find("#change").hidden = false;
  find("#change-from").textContent = name;
  find("#measures").replaceChildren(...change.measures.map(each => element("tr", {},
    element("td", {}, each.name), element("td", {class: "n"}, each.form(each.before)), element("td", {class: "n"}, each.form(each.after)),
    element("td", {class: "n"}, difference(each)))));
  find("#change-words").textContent = change.pairs.length
    ? `Of ${change.pairs.length} examples that both audits attacked, ${change.farther} are farther from a flip than before (provably for ${change.surelyFarther}) and ${change.nearer} nearer (provably for ${change.surelyNearer}).`
    : "The two audits have no example in common.";
  find("#change-chart").replaceChildren(changeChart(change.pairs));
}

// A change of a share is in points, which are no per cent of it.
function difference({before, after, form}) {
  if (before === null || after === null) return "–";
  const sign = after > before ? "+" : "", change = after - before;
  return form === share ? `${sign}${number(100 * change, 3)} points` : sign + number(change, 3);
}

function changeChart(pairs) {
  const flips = pairs.filter(([old, now]) => Number.isFinite(old.upper) && Number.isFinite(now.upper));
  const most = Math.max(1e-12, ...flips.flatMap(([old, now]) => [old.upper, now.upper])) * 1.05;
  const chart = shape("svg", {viewBox: "0 0 420 350", class: "chart", role: "img"}, shape("title", {}, "Distance to a flip of every example, there and here"));
  const x = axis(0, most, 52, 405), y = axis(0, most, 300, 12);
  for (const value of ticks(0, most)) {
    chart.append(stroke(x(value), 12, x(value), 300, "grid"), label(x(value), 316, number(value, 3), "tick", "middle"));
    chart.append(stroke(52, y(value), 405, y(value), "grid"), label(46, y(value) + 4, number(value, 3), "tick", "end"));
  }
  chart.append(stroke(52, 300, 405, 12, "diagonal"), label(228, 338, "distance there", "axis", "middle"), label(60, 24, "distance here", "axis"));
  for (const [old, now] of flips) {
    const words = `example ${now.example}: ${number(old.upper)} there, ${number(now.upper)} here`;
    chart.append(shape("circle", {cx: x(old.upper), cy: y(now.upper), r: 4, class: now.upper < old.upper ? "point worse" : "point"}, shape("title", {}, words)));
  }
  return chart;
}

async function takeFile(file) {
  const problem = find("#change-problem");
  find("#other-name").textContent = file.name;
  try {
    showChange(JSON.parse(await file.text()), file.name);
    problem.hidden = true;
  } catch {
    find("#change").hidden = true;
    problem.hidden = false;
    problem.textContent = `${file.name} is not the JSON of an audit; brittle audit --json FILE writes it.`;
  }
}

function startCompare() {
  const drop = find("#drop");
  find("#other").addEventListener("change", event => { if (event.target.files[0]) takeFile(event.target.files[0]); });
  for (const name of ["dragover", "dragleave", "drop"]) drop.addEventListener(name, event => {
    event.preventDefault();
    drop.classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) takeFile(event.dataTransfer.files[0]);
  });
  if (content.other) showChange(content.other.audit, content.other.title);
}
