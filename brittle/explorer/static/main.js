// Tabs, keys, the state in the address, and what is saved.

import { ask, newest } from "./api.js";
import { byId, complain, h, say } from "./dom.js";
import { download, saved } from "./draw.js";
import { csv, tikz } from "./export.js";
import { Papers } from "./papers.js";
import { Plane } from "./plane.js";
import { Walk } from "./walk.js";

const TABS = ["plane", "papers", "walk"];
const KEYS = {
  "1 2 3": "laboratory, papers, audit",
  "click": "adds a point; drag moves it",
  "Tab": "goes from point to point; the arrow keys move it, with Shift in large steps",
  "X": "changes the label of the chosen point", "Delete": "removes it",
  "T": "trains, or plays the flow again", "K": "jumps to the KKT point", "G": "to the largest margin of any network", "H": "hardens: trains for the radius",
  ", .": "one frame back, one frame on",
  "B F N M": "balls, flips, neurons, multipliers",
  "U": "one direction for all; [ and ] change its size",
  "P": "lecture mode: ← and → go from scene to scene",
};

class Explorer {
  async start() {
    this.about = await ask("about");
    this.given = read(location.hash);
    this.tabs = {
      plane: new Plane(byId("plane"), this.about, () => this.keep()),
      papers: new Papers(byId("papers"), this.about, () => this.keep()),
      walk: new Walk(byId("walk"), this.about, () => this.keep()),
    };
    if (!this.about.walk) byId("tab-walk").hidden = true;
    for (const name of TABS) byId(`tab-${name}`).addEventListener("click", () => this.show(name));
    this.bind();
    document.body.classList.toggle("lecture", this.given.lecture === true);
    byId("lecture").setAttribute("aria-pressed", this.given.lecture === true);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.tabs[this.now].redraw());
    addEventListener("resize", newest(async () => this.tabs[this.now].redraw()));
    addEventListener("hashchange", () => { if (location.hash.slice(1) !== this.written) location.reload(); });
    await this.show(TABS.includes(this.given.tab) ? this.given.tab : "plane");
    document.documentElement.dataset.ready = "yes";
  }

  async show(name) {
    this.now = name;
    for (const each of TABS) {
      byId(each).hidden = each !== name;
      byId(`tab-${each}`).setAttribute("aria-selected", each === name);
    }
    byId("python").disabled = !this.tabs[name].python;
    await this.tabs[name].open(this.given[name] ?? {}).catch(complain);
    this.keep();
  }

  state() {
    const found = { tab: this.now, lecture: document.body.classList.contains("lecture") || undefined };
    for (const name of TABS) {
      const kept = this.tabs[name].state();
      if (kept) found[name] = kept;
    }
    return found;
  }

  keep() {
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => {
      this.written = write(this.state());
      history.replaceState(null, "", `#${this.written}`);
    }, 200);
  }

  bind() {
    const save = async (kind) => {
      const { svg, name } = this.tabs[this.now].picture();
      const file = await saved(svg, kind, name).catch(complain);
      if (file) say(`saved ${file.name}, ${Math.ceil(file.size / 1024)} kB`);
    };
    byId("save-png").addEventListener("click", () => save("png"));
    byId("save-svg").addEventListener("click", () => save("svg"));
    const keepText = (text, kind, ending) => {
      const file = download(new Blob([text], { type: kind }), `${this.tabs[this.now].picture().name}.${ending}`);
      say(`saved ${file.name}, ${Math.ceil(file.size / 1024)} kB`);
    };
    byId("save-tikz").addEventListener("click", () => keepText(tikz(this.tabs[this.now].picture().svg), "application/x-tex", "tex"));
    byId("save-csv").addEventListener("click", () => keepText(csv(...this.tabs[this.now].table()), "text/csv", "csv"));
    byId("python").addEventListener("click", async () => {
      const lines = await this.tabs[this.now].python().catch(complain);
      if (lines) dialog("The same in Python", h("pre", {}, lines), lines);
    });
    byId("link").addEventListener("click", async () => {
      this.written = write(this.state());
      history.replaceState(null, "", `#${this.written}`);
      const text = `brittle explore --state '${this.written}'`;
      await copied(location.href, "the link is copied; it works while this explorer runs", () =>
        dialog("A link to this state", h("div", {}, h("p", {}, "While this explorer runs:"), h("pre", {}, location.href),
          h("p", {}, "At any time:"), h("pre", {}, text)), location.href));
    });
    byId("lecture").addEventListener("click", () => this.lecture());
    byId("help").addEventListener("click", () => this.help());
    addEventListener("keydown", (event) => this.key(event));
  }

  help() {
    dialog("Keys", h("div", { class: "keys" }, Object.entries(KEYS).flatMap(([key, words]) => [
      h("span", {}, key.split(" ").flatMap((one) => [h("kbd", {}, one), " "])), h("span", {}, words)])));
  }

  lecture() {
    const on = document.body.classList.toggle("lecture");
    byId("lecture").setAttribute("aria-pressed", on);
    this.tabs[this.now].lecture?.(on);
    this.tabs[this.now].redraw();
    this.keep();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("dialog").open) return;
    if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    const key = event.key.toLowerCase();
    const own = { "?": () => this.help(), p: () => this.lecture(), 1: () => this.show("plane"), 2: () => this.show("papers"), 3: () => this.about.walk && this.show("walk") };
    const done = own[key] ? (own[key](), true) : this.tabs[this.now].key?.(key, event);
    if (done) event.preventDefault();
  }
}

function dialog(title, body, text) {
  byId("dialog-title").textContent = title;
  byId("dialog-body").replaceChildren(body);
  const copy = byId("dialog-copy");
  copy.hidden = !text;
  copy.onclick = () => copied(text, "copied");
  byId("dialog").showModal();
}

async function copied(text, words, otherwise) {
  try {
    await navigator.clipboard.writeText(text);
    say(words);
  } catch {
    (otherwise ?? (() => say("the browser did not allow it: mark the text and copy it")))();
  }
}

// The state as JSON in the letters that an address may hold.
function write(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function read(hash) {
  try {
    const text = atob(hash.slice(1).replaceAll("-", "+").replaceAll("_", "/"));
    const found = JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

const explorer = new Explorer();
explorer.start().catch(complain);
window.explorer = explorer; // for the curious, and for tests
