/* lesson.js - the shape of a lesson: what it is about, controls, a picture, and questions beside
 * it. */
import {h, live, runner} from "./dom.js";

/* A control question. run(signal) makes the experiment and returns what its outcome says. */
export function question(key, run) {
  const out = live({class: "answer"});
  const ask = runner(out, async (signal) => {
    out.replaceChildren(h("p", {class: "quiet", text: "lesson.running"}));
    out.replaceChildren(...await run(signal));
  });
  return h("section", {class: "question"}, h("h3", {text: key}),
      h("button", {type: "button", text: "lesson.experiment", onclick: () => ask()}), out);
}

export function said(key, values) {
  return h("p", {text: [key, values]});
}

/* title, lead: keys of texts/. run(signal) fills the picture; it runs once when the lesson is
 * opened. A wide picture stands below, over the whole width. */
export function lesson(
    panel, {title, lead, controls, picture, run, questions, extra = [], is_wide = false}) {
  const go = runner(picture, run);
  const form = h("form", {
    class: "row",
    onsubmit: (event) => {
      event.preventDefault();
      go();
    }
  },
      controls, h("button", {class: "main", type: "submit", text: "lesson.run"}));
  panel.append(h("div", {class: "lesson"},
                   h("div", {class: "stack wide"},
                       h("div", {class: "stack"}, h("h2", {text: title}),
                           h("p", {class: "lead", text: lead})),
                       ...extra, form, is_wide ? null : picture),
                   h("aside", {class: "stack wide", label: "lesson.questions"}, questions)),
      is_wide ? picture : "");
  go();
  return go;
}

/* What the emulation found, in its own words; nothing if it found nothing. */
export function faultsOf(faults) {
  if (faults.length === 0)
    return [];
  return [h("div", {class: "stack"}, h("h4", {text: "lesson.faults"}),
      h("ul", {class: "chips", lang: "en"},
          faults.slice(0, 4).map((fault) => h("li", {}, fault.text))))];
}

/* Where an experiment ran. */
export function placeOf(answer) {
  return h("p", {
    class: "remark",
    text: [answer.is_emulated ? "lesson.emulated" : "lesson.device", {device: answer.device_name}]
  });
}
