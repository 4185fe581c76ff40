/* dom.js - making elements. Nothing here reads markup: data reaches the page as text only. */
import {hint, label, say, t} from "./text.js";

const SVG = "http://www.w3.org/2000/svg";
const TEXTS = {
  text: say,
  label,
  hint
};

function fill(element, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (name in TEXTS)
      TEXTS[name](element, ...[value].flat());
    else if (name.startsWith("on"))
      element.addEventListener(name.slice(2), value);
    else if (value === true)
      element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null)
      element.setAttribute(name, value);
  }
  element.append(
      ...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/* h("button", {text: "run.start", onclick: run}, ...children). text, label and hint take a key of
 * texts/, or [key, values]; a child is an element, or words that are the same in all languages. */
export function h(tag, options = {}, ...children) {
  return fill(document.createElement(tag), options, children);
}

export function svg(tag, options = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), options, children);
}

let made = 0;

/* A control with its visible label. More children, a remark for instance, come after it. */
export function field(key, control, ...more) {
  control.id ||= `control-${++made}`;
  const remark = more.find((element) => element.classList?.contains("remark"));
  if (remark !== undefined) {
    remark.id ||= `remark-${++made}`;
    control.setAttribute("aria-describedby", remark.id);
  }
  return h("div", {class: "field"}, h("label", { for: control.id, text: key
  }), control, ...more);
}

export function remark(key, values) {
  return h("p", {class: "remark", text: [key, values]});
}

/* options: [value, key of texts/] or [value, null, words]. */
export function choice(options, attributes = {}) {
  return h("select", attributes, options.map(([value, key,
    words]) => key !== null ? h("option", {value, text: key}) : h("option", {value}, words)));
}

export function whole(value, min, max) {
  return h("input", {type: "number", inputmode: "numeric", value, min, max, step: 1});
}

/* What a number field holds, or undefined when it is empty. */
export function readWhole(input) {
  return input.value === "" ? undefined : Number(input.value);
}

/* A region whose new content is read out. */
export function live(attributes = {}) {
  return h("div", {"aria-live": "polite", ...attributes});
}

/* A table with a caption. head: keys of texts/; rows: lists of cells, the first one names its row.
 */
export function table(caption, head, rows, attributes = {}) {
  return h("div", {class: "scroll", tabindex: 0, role: "region", label: caption},
      h("table", attributes, h("caption", {text: caption}),
          h("thead", {}, h("tr", {}, head.map((key) => h("th", {scope: "col", text: key})))),
          h("tbody", {},
              rows.map((row) => h("tr", {},
                           row.map((cell, i) => h(i === 0 ? "th" : "td",
                                       i === 0 ? {scope: "row"} : {}, cell)))))));
}

export function terms(pairs) {
  return h("dl", {},
      pairs.map(([key, ...value]) => h("div", {}, h("dt", {text: key}), h("dd", {}, ...value))));
}

/* A line to copy, with its button. */
export function copyable(words) {
  const said = h("span", {role: "status"});
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(words);
      say(said, "copy.done");
    } catch {  // a page without TLS away from the own machine has no clipboard
      getSelection().selectAllChildren(code);
      say(said, "copy.selected");
    }
  };
  const code = h("code", {class: "line"}, words);
  return h("div", {class: "copyable"},
      h("div", {class: "scroll", tabindex: 0, role: "region", label: "copy.line"}, code),
      h("button", {type: "button", text: "copy.copy", onclick: copy}), said);
}

/* Runs work(signal) while the button is unusable, and shows what it throws as a problem in out. A
 * run that is started anew ends the one before. */
export function runner(out, work) {
  let current;
  return async (...args) => {
    current?.abort();
    const mine = current = new AbortController();
    out.setAttribute("aria-busy", "true");
    try {
      await work(mine.signal, ...args);
    } catch (problem) {
      if (mine.signal.aborted)
        return;
      out.replaceChildren(problemBox(problem));
    } finally {
      if (current === mine)
        out.removeAttribute("aria-busy");
    }
  };
}

/* A problem in words: its kind in the reader's language, the detail as the server wrote it. */
export function problemBox(problem) {
  const kind = problem.key ?? "problem.fault";
  return h("div", {class: "problem", role: "alert"},
      h("p", {}, h("strong", {text: [kind, problem.values]})),
      problem.detail ? h("p", {lang: "en"}, problem.detail) : null,
      problem.limit !== undefined ? h("p", {
        text: [
          "problem.limit", {limit: problem.limit, setting: problem.setting ?? t("problem.fixed")}
        ]
      }) :
                                    null);
}

/* Keys of a tablist: arrows move and choose, Home and End go to its ends. choose(tab) shows its
 * panel. */
export function tablist(list, choose) {
  list.addEventListener("keydown", (event) => {
    const tabs = [...list.querySelectorAll("[role=tab]")];
    const from = tabs.indexOf(document.activeElement);
    const to = {ArrowRight: from + 1,
      ArrowLeft: from - 1,
      Home: 0,
      End: tabs.length - 1}[event.key];
    if (to === undefined || from < 0)
      return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    tab.focus();
    choose(tab);
  });
}

export function mark(list, chosen) {
  for (const tab of list.querySelectorAll("[role=tab]")) {
    const is = tab === chosen;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !is;
  }
}
