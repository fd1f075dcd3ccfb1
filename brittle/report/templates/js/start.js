// Everything that answers to a hand.
function startPage() {
  const root = document.documentElement;
  find("#theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });
  for (const button of findAll("button.copy")) button.addEventListener("click", async () => {
    const text = find("code", button.parentElement).textContent;
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch { getSelection().selectAllChildren(find("code", button.parentElement)); }
  });
  window.addEventListener("beforeprint", () => findAll("details").forEach(each => { each.open = true; }));
}

startPage();
startTerms();
startAttacker();
const first = examples.median ?? 0;
view(known[first], find("#median"));
startTable();
startSaves();
startCompare();
startChoice();
