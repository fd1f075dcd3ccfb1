// What a word means stands beside it, when it is pointed at, tapped or reached by the keyboard.
function beside(button, meaning) {
  const at = button.getBoundingClientRect(), box = meaning.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, window.innerWidth - box.width - 8));
  const below = at.bottom + 6 + box.height < window.innerHeight;
  meaning.style.left = left + "px";
  meaning.style.top = (below ? at.bottom + 6 : Math.max(8, at.top - box.height - 6)) + "px";
}

function startTerms() {
  for (const button of findAll("button.term")) {
    const meaning = document.getElementById(button.getAttribute("popovertarget"));
    const show = () => { meaning.showPopover(); beside(button, meaning); };
    button.addEventListener("pointerenter", event => { if (event.pointerType === "mouse") show(); });
    button.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") meaning.hidePopover(); });
    button.addEventListener("click", event => { event.preventDefault(); show(); });
    button.addEventListener("blur", () => meaning.hidePopover());
  }
}
