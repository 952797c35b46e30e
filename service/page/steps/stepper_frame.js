// The elements of a step-through, before there is a state to show.
import { make } from "../shared/dom.js";

const FAULTS = { none: "no fault", expire: "a lease that ends", crash: "a crash" };

// Makes them in ELEMENT and returns them by name. Each has the id PREFIX + name. TOOLS: with the controls that change the schedule's
// settings.
export function makeFrame(element, prefix, tools) {
  const ui = {};
  const id = (name) => prefix + name;
  const keep = (name, made) => {
    made.id = id(name);
    return (ui[name] = made);
  };
  const button = (name, attributes, ...children) => keep(name, make("button", { type: "button", ...attributes }, ...children));
  const check = (name, checked, text) => make("label", { class: "compact" }, keep(name, make("input", { type: "checkbox", checked: checked ? "" : null })), ` ${text}`);
  const key = (name) => make("kbd", {}, name);

  keep("stock", make("input", { type: "number", min: "0", max: "1000", value: "1" }));
  keep("actors", make("select", {}, ...["2", "3", "4"].map((count) => make("option", {}, count))));
  const setting = make(
    "div",
    { class: "setting" },
    button("strategy-open", { "aria-haspopup": "dialog" }, "Strategy: ", keep("strategy", make("b"))),
    make("label", { class: "compact" }, "stock ", ui.stock),
    make("label", { class: "compact" }, "orders ", ui.actors),
    make("div", { class: "group" }, button("beside-open", { "aria-haspopup": "dialog" }, "Compare with ", keep("beside", make("b", {}, "…"))), button("beside-end", { hidden: "" }, "Stop comparing")),
  );
  const settings = keep("settings", make("details", { class: "settings-fold", open: "" }, make("summary", {}, "Settings"), setting));
  const steps = make(
    "div",
    { class: "group" },
    button("next", { class: "primary" }, "Next step ", key("Space")),
    button("play", { hidden: "" }, "Play"),
    button("undo", {}, "Undo ", key("u")),
    button("restart", {}, "Start again ", key("r")),
  );
  keep("faults", make("select", {}, ...Object.entries(FAULTS).map(([value, text]) => make("option", { value }, text))));
  const searches = make("div", { class: "group" }, button("find", {}, "Find me an oversell ", key("f")), make("label", { class: "compact" }, "with ", ui.faults));
  const choices = make("div", { class: "group choices" }, check("ask", true, "ask me first"), check("every", false, "every single step"), check("sent", true, "what is sent"), check("whole", false, "whole requests"));
  const task = make(
    "section",
    { class: "card task", "aria-labelledby": id("goal") },
    tools ? settings : null,
    keep("goal", make("h2", { class: "goal" }, "…")),
    keep("why", make("p", { class: "why" })),
    tools ? make("p", { class: "quiet keys-line" }, "You choose whose step is next: ", key("1"), " A, ", key("2"), " B. ", key("Space"), " continues the same order to its end.") : null,
    make("div", { class: "bar-of-tools" }, steps, tools ? searches : null, tools ? choices : null),
    keep("found", make("p", { class: "found", role: "status" })),
  );

  keep("database", make("div"));
  keep("lock", make("div"));
  keep("servers", make("section", { class: "card servers", "aria-label": "What the servers hold" }, ui.database, ui.lock));
  keep("lanes", make("div", { class: "stage", tabindex: "-1" }, ui.servers));
  keep("result", make("section", { class: "result", role: "status", hidden: "" }));

  keep("listing", make("ol", { class: "listing" }));
  keep("language", make("select", {}, make("option", { value: "java" }, "Java (Spring)"), make("option", { value: "python" }, "Python")));
  const code = keep(
    "code",
    make(
      "details",
      { class: "card code" },
      make("summary", {}, "The same flow as you would write it"),
      make("label", { class: "compact" }, "in ", ui.language),
      make("p", { class: "quiet" }, "An illustration. The marks show the next step of each order."),
      ui.listing,
    ),
  );

  keep("told", make("ol", { class: "told", "aria-label": "What happened" }));
  keep("copy-text", make("input", { type: "text", readonly: "", hidden: "", "aria-label": "The address of this state" }));
  const story = make(
    "section",
    { class: "card story", "aria-labelledby": id("story-title") },
    make("div", { class: "heading" }, keep("story-title", make("h2", {}, "What happened")), keep("answer", make("p", { class: "answer", role: "status" }))),
    make("div", { role: "log", "aria-live": "polite", "aria-label": "What happened" }, ui.told),
    keep("told-empty", make("p", { class: "empty" }, "Nothing yet. Choose which order takes its first step.")),
    make(
      "details",
      { class: "curl" },
      make("summary", {}, "Replay or share this schedule"),
      keep("command", make("pre", { tabindex: "0" })),
      button("copy", { class: "small" }, "Copy the address of this state"),
      ui["copy-text"],
      keep("copy-note", make("span", { role: "status" })),
    ),
  );
  element.classList.add("steps");
  element.replaceChildren(task, ui.result, ui.lanes, code, story);
  return ui;
}
