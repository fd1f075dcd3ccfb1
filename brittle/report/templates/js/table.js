// The examples as a table: sort, filter, open.
const STATUS = {exact: "exactly", proved: "proved", open: "by attack", error: "wrong as it is"};
const columns = [
  ...(pixels ? [{name: "picture"}] : []),
  {name: "example", of: one => one.example, shown: one => String(one.example), ranked: true},
  {name: "class", of: one => one.label, shown: one => one.label},
  {name: "flips to", of: one => one.flipped ?? "", shown: one => one.flipped ?? "–"},
  {name: "distance", of: one => one.upper, shown: one => number(one.upper), numeric: true},
  {name: "proved", of: one => one.lower, shown: one => one.status === "open" && one.lower === 0 ? "–" : number(one.lower), numeric: true},
  ...(audit.limit ? [{name: "of the limit", of: one => one.share, shown: one => share(one.share, 0), numeric: true}] : []),
  {name: "known", of: one => one.status, shown: one => STATUS[one.status]},
  {name: ""},
];
const PAGE = matchMedia("(max-width: 40rem)").matches ? 8 : 20;
const state = {by: "distance", down: false, all: false, weakest: false};

function chosen() {
  const kind = find("#by-class").value, status = find("#by-status").value, digits = find("#by-number").value.trim();
  const least = [...known].sort((a, b) => a.upper - b.upper).slice(0, 10);
  return (state.weakest ? least : known).filter(one =>
    (!kind || one.label === kind) && (!status || one.status === status) && (!digits || String(one.example).startsWith(digits)));
}

function ordered(rows) {
  const column = columns.find(each => each.name === state.by), way = state.down ? -1 : 1;
  const compare = (a, b) => column.numeric || column.ranked ? a - b || 0 : String(a).localeCompare(String(b), undefined, {numeric: true});
  return [...rows].sort((a, b) => way * compare(column.of(a), column.of(b)) || a.row - b.row);
}

function line(one) {
  const cells = columns.map(column => {
    if (column.name === "picture") return element("td", {}, ...thumbnail(one));
    if (column.name === "") return element("td", {}, opener(one));
    return element("td", {"data-label": column.name, class: column.numeric ? "n" : ""}, column.shown(one));
  });
  return element("tr", {"data-row": one.row}, ...cells);
}

function thumbnail(one) {
  if (!places.has(one.row)) return [];
  const canvas = element("canvas", {role: "img", "aria-label": `example ${one.example}`});
  paintExample(canvas, places.get(one.row));
  return [canvas];
}

function opener(one) {
  const button = element("button", {type: "button", "aria-label": `Open example ${one.example}`}, "Open");
  button.addEventListener("click", () => openExample(one));
  return button;
}

let shownRows = [];

function fillTable() {
  shownRows = ordered(chosen());
  const some = state.all ? shownRows : shownRows.slice(0, PAGE);
  find("#rows tbody").replaceChildren(...some.map(line));
  find("#count").textContent = `${some.length} of ${known.length} examples`;
  find("#more").hidden = some.length === shownRows.length;
  for (const head of findAll("#rows th[data-name]")) {
    if (head.dataset.name === state.by) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

function heading(column) {
  if (!column.of) return element("th", {}, "");
  const button = element("button", {type: "button"}, column.name);
  button.addEventListener("click", () => {
    state.down = state.by === column.name && !state.down;
    state.by = column.name;
    fillTable();
  });
  return element("th", {"data-name": column.name, class: column.numeric ? "n" : ""}, button);
}

function openExample(one) {
  const dialog = find("#opened");
  find(".bar b", dialog).textContent = `Example ${one.example}`;
  dialog.dataset.row = one.row;
  view(one, find(".place", dialog));
  if (!dialog.open) dialog.showModal();
}

function neighbour(step) {
  const at = shownRows.findIndex(one => one.row === Number(find("#opened").dataset.row));
  const next = shownRows[(at + step + shownRows.length) % shownRows.length];
  if (next) openExample(next);
}

function startTable() {
  find("#rows").classList.toggle("pictured", Boolean(pixels));
  find("#rows thead tr").append(...columns.map(heading));
  const option = (value, words = value) => element("option", {value}, words), labels = [...new Set(known.map(one => one.label))];
  find("#by-class").append(...labels.sort((a, b) => a.localeCompare(b, undefined, {numeric: true})).map(each => option(each)));
  find("#by-status").append(...[...new Set(known.map(one => one.status))].sort().map(each => option(each, STATUS[each])));
  for (const id of ["#by-class", "#by-status", "#by-number"]) find(id).addEventListener("input", fillTable);
  find("#weakest").addEventListener("click", event => {
    state.weakest = !state.weakest;
    event.target.setAttribute("aria-pressed", state.weakest);
    fillTable();
  });
  find("#more").addEventListener("click", () => { state.all = true; fillTable(); });
  const dialog = find("#opened");
  find(".close", dialog).addEventListener("click", () => dialog.close());
  find(".previous", dialog).addEventListener("click", () => neighbour(-1));
  find(".next", dialog).addEventListener("click", () => neighbour(1));
  dialog.addEventListener("keydown", event => {
    if (event.target.matches("input")) return;
    if (event.key === "ArrowLeft") neighbour(-1);
    if (event.key === "ArrowRight") neighbour(1);
  });
  fillTable();
}
