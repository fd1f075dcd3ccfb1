// A point of the curve along κ: what it is, and the command that goes back to it.
function choose(point) {
  findAll("circle.way.chosen").forEach(each => each.classList.remove("chosen"));
  point.classList.add("chosen");
  const {remedy, kappa} = point.dataset, command = find(`[data-remedy="${remedy}"] pre code`).textContent;
  const told = element("p", {}, find("title", point).textContent);
  find("#choice").replaceChildren(told, element("pre", {}, element("code", {}, `${command} --kappa ${kappa}`)));
}

function showCourse(name) {
  for (const course of findAll("svg .course")) course.classList.toggle("shown", course.dataset.course === name);
  for (const button of findAll("button.course")) button.setAttribute("aria-pressed", button.dataset.course === name);
}

function startChoice() {
  for (const button of findAll("button.course")) button.addEventListener("click", () => showCourse(button.dataset.course));
  for (const point of findAll("circle.way[data-kappa]")) {
    point.addEventListener("click", () => choose(point));
    point.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(point); } });
  }
}
