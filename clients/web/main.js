/* main.js - the frame: languages, tabs, and which of them the address names. */
import {openCompute} from "./compute.js";
import {mark, tablist} from "./dom.js";
import {openKernels} from "./kernels.js";
import {openStatus} from "./status.js";
import {openTexts} from "./text.js";
import {openTrainer} from "./trainer.js";

/* Each fills its panel when it is first shown. What it returns, if anything, is told whenever the
 * panel is shown or left, with what the address names below the tab: #/trainer/race. The slash
 * keeps addresses apart from ids: the browser would scroll to an element, and take the focus away.
 */
const OPEN = {
  compute: openCompute,
  trainer: openTrainer,
  kernels: openKernels,
  status: openStatus
};
const opened = {};
const list = document.getElementById("tabs");
let shown;

function show(name, below) {
  if (shown !== name)
    opened[shown]?.(false);
  shown = name;
  mark(list, document.getElementById(`tab-${name}`));
  if (!(name in opened))
    opened[name] = OPEN[name](document.getElementById(name)) ?? (() => {});
  opened[name](true, below);
}

function follow() {
  if (location.hash === "#main")  // the link that skips to the content
    return;
  const [, name, below] = location.hash.split("/");
  show(name in OPEN ? name : "compute", below);
}

await openTexts();
tablist(list, (tab) => {
  location.hash = tab.getAttribute("href");
});
addEventListener("hashchange", follow);
follow();
if (shown === undefined)
  show("compute");
