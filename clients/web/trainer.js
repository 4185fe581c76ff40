/* trainer.js - the second tab: five lessons, each with its picture and the questions it answers. */
import {h, mark, tablist} from "./dom.js";
import {openBarrier, openRace, openShift} from "./lessons.js";
import {openReduce} from "./reduce.js";
import {openRounding} from "./rounding.js";

/* The order of the lectures. */
const LESSONS = {
  reduce: openReduce,
  race: openRace,
  shift: openShift,
  barrier: openBarrier,
  rounding: openRounding,
};

export function openTrainer(panel) {
  const names = Object.keys(LESSONS);
  const list = h("div", {class: "tabs inner", role: "tablist", label: "trainer.lessons"},
      names.map((name) => h("a", {
        role: "tab",
        id: `tab-${name}`,
        href: `#/trainer/${name}`,
        "aria-controls": name,
        text: `lesson.${name}`
      })));
  panel.append(list,
      ...names.map(
          (name) => h("div",
              {role: "tabpanel", id: name, "aria-labelledby": `tab-${name}`, hidden: true})));
  tablist(list, (tab) => {
    location.hash = tab.getAttribute("href");
  });
  const opened = new Set();

  function show(name) {
    mark(list, document.getElementById(`tab-${name}`));
    if (!opened.has(name))
      LESSONS[name](document.getElementById(name));
    opened.add(name);
  }
  return (isShown, below) => {
    if (isShown)
      show(below in LESSONS ? below : names[0]);
  };
}
