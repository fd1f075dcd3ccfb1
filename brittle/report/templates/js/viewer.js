// One example: before, its shortest flip, after, and the nearest of another class.
const STEPS = 60;

function caption(figure, strong, words) {
  find("figcaption", figure).replaceChildren(element("b", {}, strong), words);
}

function view(one, place) {
  place.replaceChildren(find("#viewer").content.cloneNode(true));
  const frames = find(".frames", place), slider = find(".along", place), told = find(".told", place);
  find(".who", place).textContent = who(one);
  const path = paths.get(one.row), picture = places.get(one.row);
  if (picture !== undefined) drawFrames(one, picture, frames);
  const features = find(".features", place);
  features.hidden = picture !== undefined || !examples.moved[one.row].length;
  const slice = path === undefined ? null : sliceOf(one);
  find(".slice", place).replaceChildren(...(slice ? [slice.chart, element("figcaption", {}, `A plane through it. Blue: right. Orange: wrong. ${one.lower > 0 ? "The circle is proved free of orange." : "Nothing is proved of this one."}`)] : []));
  find(".slide", place).hidden = path === undefined;
  const show = () => {
    const t = slider.value / STEPS * examples.paths.reach;
    if (picture !== undefined) { paintMoved(find(".after canvas", frames), picture, t); }
    listFeatures(one, features, t);
    tell(one, path, Number(slider.value), t, told, find(".after", frames));
    slider.setAttribute("aria-valuetext", `moved by ${number(t * one.upper, 3)}`);
    if (slice) find(".moving", slice.chart).setAttribute("cx", slice.place(t));
  };
  if (path === undefined) return;
  slider.value = Math.ceil(STEPS / examples.paths.reach);
  slider.addEventListener("input", show);
  show();
}

function who(one) {
  const kind = audit.vulnerability.held_out ? "Held-out" : "Training";
  if (one.status === "error") return `${kind} example ${one.example}, a ${one.label}: the answer, ${examples.answers[one.row]}, is wrong as it is`;
  if (!Number.isFinite(one.upper)) return `${kind} example ${one.example}, a ${one.label}: no flip was found`;
  const typical = one.row === examples.median ? ", a typical one" : "";
  return `${kind} example ${one.example}${typical}: a change of ${number(one.upper, 3)} turns ${one.label} into ${one.flipped}`;
}

function drawFrames(one, picture, frames) {
  frames.hidden = false;
  paintExample(find(".before canvas", frames), picture);
  paintChange(find(".change canvas", frames), picture);
  paintRival(find(".rival canvas", frames), picture);
  paintMoved(find(".after canvas", frames), picture, 0);
  caption(find(".before", frames), "before", `answer ${examples.answers[one.row]}`);
  caption(find(".change", frames), "the change", "orange: brighter, blue: darker");
  caption(find(".after", frames), "after", "");
  caption(find(".rival", frames), `nearest ${examples.rivals.labels[one.row]}`, `training example ${examples.rivals.rows[one.row]}, ${number(examples.rivals.distances[one.row], 3)} away`);
}

function listFeatures(one, features, t) {
  find(".nearest", features).textContent = examples.rivals ? `nearest ${examples.rivals.labels[one.row]}` : "";
  find("tbody", features).replaceChildren(...examples.moved[one.row].map(each => element("tr", {},
    element("td", {}, content.features ? content.features[each.feature] : `feature ${each.feature}`),
    element("td", {class: "n"}, number(each.before)),
    element("td", {class: "n"}, number(each.before + t * (each.after - each.before))),
    element("td", {class: "n"}, number(each.rival)))));
}

function tell(one, path, step, t, told, after) {
  const {margins, answers, words} = examples.paths, answer = words[answers[path][step]];
  const wrong = answer !== one.label, margin = margins[path][step];
  const decided = Math.abs(margin) > 1e-6 * Math.abs(margins[path][0]) ? margin : 0;
  told.replaceChildren(`Moved by ${number(t * one.upper, 3)}: answer `, element("span", {class: wrong ? "answer wrong" : "answer"}, answer), `, margin ${number(decided, 3)}.`);
  after.classList.toggle("wrong", wrong);
  caption(after, "after", `moved by ${number(t * one.upper, 3)}, answer ${answer}`);
}
