/* cells.js - pictures of shared memory: a cell for each element, 32 of them a warp.
 *
 * A short array is a tree that grows a level with every step, a long one a grid of warps. A cell's
 * state shows in its colour and in its edge; a thread that works, in a dot.
 */
import {h, svg} from "./dom.js";
import {brief} from "./numbers.js";
import {label, t} from "./text.js";

export const WARP = 32;

/* state: words of read, written, wrong, right, waiting, ended, active. */
export function cell(value, state = "") {
  return h("div", {class: `cell ${state}`}, value);
}

export function legend(...rows) {
  return h("ul", {class: "legend key"},
      rows.map(
          ([state, key]) => h("li", {}, h("span", {class: `cell ${state}`, "aria-hidden": "true"}),
              h("span", {text: key}))));
}

/* A row of cells with numbers. */
export function level(values, stateOf = () => "") {
  return h("div", {class: "level"}, values.map((value, i) => cell(brief(value), stateOf(i))));
}

/* Rows of cells one under the other, wide enough for the longest number in them. */
export function levels(columns, ...rows) {
  const tree = h("div", {class: "tree"}, rows);
  const longest = Math.max(
      ...[...tree.querySelectorAll(".cell")].map((one) => one.textContent.length));
  tree.style.setProperty("--columns", columns);
  tree.style.setProperty("--digits", Math.max(3, longest));
  return tree;
}

/* count cells without numbers, a warp a line. stateOf(i): as of cell(). activeOf(w): whether a warp
 * works, where that is to be seen. */
export function warps(count, stateOf, activeOf) {
  const lines = [];
  for (let first = 0; first < count; first += WARP) {
    const line = h("div", {class: "warp"});
    if (activeOf !== undefined)
      line.append(h("b", {}, activeOf(first / WARP) ? "▸" : ""));
    line.classList.toggle("marked", activeOf !== undefined);
    for (let i = first; i < Math.min(count, first + WARP); i++)
      line.append(cell("", stateOf(i)));
    lines.push(line);
  }
  return h("div", {class: "warps"}, lines);
}

/* ---- a reduction, step by step ---- */

/* A step as sets, made once. */
function setsOf(step) {
  return step.sets ??= {
    active: new Set(step.active),
    read: new Set(step.reads.map(([, index]) => index)),
    written: new Set(step.writes.map(([, index]) => index)),
    warps: new Set(step.active_warps),
  };
}

function stateIn(step, i) {
  const {active, read, written} = setsOf(step);
  const touched = written.has(i) ? "written" : read.has(i) ? "read" : "";
  return active.has(i) ? `${touched} active` : touched;
}

/* From the cells that a thread read to the one it wrote; who writes none keeps the sum itself. */
function linesOf(step, columns) {
  const targets = new Map(step.writes);
  const x = (i) => i + 0.5;
  return svg("svg",
      {viewBox: `0 0 ${columns} 1`, preserveAspectRatio: "none", "aria-hidden": "true"},
      step.reads.map(([thread, index]) => svg("line",
                         {x1: x(index), y1: 0, x2: x(targets.get(thread) ?? thread), y2: 1})));
}

/* The picture of one run of /v1/lab/reduce. .show(i) shows its steps up to the i-th. */
export function reduction(run) {
  const written = run.steps.flatMap(
      (step) => step.shared.map((value, i) => (value === null ? 0 : i + 1)));
  const columns = Math.max(1, ...new Set(written));
  const picture = h("div", {role: "img", class: "picture"});
  const frame = h(
      "div", {class: "scroll", tabindex: 0, role: "region", label: "cells.region"}, picture);

  function showTree(step, at) {
    const block = run.steps.filter((other, i) => other.block === step.block && i <= at);
    const rows = block.flatMap((each) => [each.step > 0 ? linesOf(each, columns) : null,
                                   level(each.shared.slice(0, columns), (i) => stateIn(each, i))]);
    picture.replaceChildren(levels(columns, rows.filter((row) => row !== null)));
  }

  function showGrid(step) {
    picture.replaceChildren(
        warps(columns, (i) => stateIn(step, i), (w) => setsOf(step).warps.has(w)));
  }

  function show(i) {
    const at = Math.min(i, run.steps.length - 1);
    const step = run.steps[at];
    if (columns <= WARP)
      showTree(step, at);
    else
      showGrid(step);
    label(picture, "cells.described", {
      scheme: () => t(`scheme.${run.scheme}`),
      step: at + 1,
      steps: run.steps.length,
      threads: step.active.length,
      cells: setsOf(step).written.size,
    });
    return step;
  }
  return {element: frame, show, last: run.steps.length - 1};
}

/* ---- going through steps ---- */

const BEAT_MS = 900;

/* Back, play, step and a slider over steps 0..last; show(i) is told where it stands. */
export function player(last, show) {
  const slider = h("input", {type: "range", min: 0, max: last, value: 0, label: "player.position"});
  const output = h("output", {});
  const play = h("button", {type: "button", text: "player.play"});
  let timer = null;

  function go(i) {
    slider.value = Math.max(0, Math.min(last, i));
    output.textContent = `${Number(slider.value) + 1} / ${last + 1}`;
    show(Number(slider.value));
    if (Number(slider.value) === last)
      stop();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.setAttribute("aria-pressed", "false");
  }
  function toggle() {
    if (timer !== null)
      return stop();
    if (Number(slider.value) === last)
      go(0);
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => (play.isConnected ? go(Number(slider.value) + 1) : stop()), BEAT_MS);
  }
  const move = (by) => () => {
    stop();
    go(Number(slider.value) + by);
  };
  play.addEventListener("click", toggle);
  slider.addEventListener("input", () => {
    stop();
    go(Number(slider.value));
  });
  const element = h("div", {class: "player"},
      h("button", {type: "button", text: "player.back", onclick: move(-1)}), play,
      h("button", {type: "button", text: "player.step", onclick: move(1)}), slider, output);
  return {element, go, stop};
}
