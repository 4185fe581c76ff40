/* reduce.js - the lesson of the tree: one sum in several schemes, step by step, side by side. */
import {postPatiently} from "./api.js";
import {legend, player, reduction, WARP} from "./cells.js";
import {choice, field, h, live, readWhole, remark, table, whole} from "./dom.js";
import {faultsOf, lesson, placeOf, question, said} from "./lesson.js";
import {brief, ranges, readValues, shown} from "./numbers.js";
import {grouped, say} from "./text.js";

const VIEWS = {
  beside: ["stride", "pairs", "serial"],
  blocks: ["blocks"],
  shuffle: ["shuffle"]
};
const LENGTHS = [8, 16, 32, 128, 1024];

function upTo(n) {
  return Array.from({length: n}, (_, i) => i + 1);
}

function runsOf(schemes, operands, signal) {
  return Promise.all(
      schemes.map((scheme) => postPatiently("v1/lab/reduce", {...operands, scheme}, signal)));
}

function stepWords(words, run, step) {
  const threads = step.active.length;
  const values = {
    threads: ranges(step.active),
    count: threads,
    all: run.block,
    block: step.block + 1,
    blocks: run.blocks,
    warps: step.active_warps.length,
    all_warps: step.warps,
    conflicts: step.bank_conflicts,
  };
  say(words, `step.${step.what}`, values);
}

/* One scheme: its name, the picture, and what happens in words. */
function schemePicture(run) {
  const picture = reduction(run);
  const words = live({class: "remark"});
  const element = h("section", {class: "picture panel"}, h("h3", {text: `scheme.${run.scheme}`}),
      picture.element, words);
  return {element, last: picture.last, show: (i) => stepWords(words, run, picture.show(i))};
}

function countsTable(runs) {
  const count = (run, name) => grouped(run.counts[name]);
  return table("reduce.counts",
      [
        "reduce.scheme", "reduce.sum", "reduce.steps", "reduce.barriers", "reduce.atomics",
        "reduce.idle_warps", "reduce.conflicts", "reduce.kernel"
      ],
      runs.map(
          (run) => [h("span", {text: `scheme.${run.scheme}`}), shown(run.value),
              count(run, "steps"), count(run, "barriers"), count(run, "atomics"),
              count(run, "idle_warps"), count(run, "bank_conflicts"), h("code", {}, run.kernel)]),
      {id: "counts"});
}

/* How often a warp worked, over all steps of adding. */
function warpTurns(run) {
  return run.steps.filter((step) => step.what === "add")
      .reduce((sum, step) => sum + step.active_warps.length, 0);
}

async function whyStride(signal) {
  const operands = {a: upTo(1024), b: upTo(1024).map(() => 1), block: 1024};
  const [stride, pairs, serial] = await runsOf(VIEWS.beside, operands, signal);
  return [
    said("reduce.answer.steps", {
      steps: stride.counts.steps,
      serial: serial.counts.steps,
      barriers: stride.counts.barriers
    }),
    said("reduce.answer.warps", {stride: warpTurns(stride), pairs: warpTurns(pairs)}),
    said("reduce.answer.banks",
        {stride: stride.counts.bank_conflicts, pairs: pairs.counts.bank_conflicts}),
  ];
}

export function openReduce(panel) {
  const a = h("textarea", {class: "short", spellcheck: "false"});
  const b = h("textarea", {class: "short", spellcheck: "false"});
  const length = choice([["", "reduce.own"], ...LENGTHS.map((n) => [n, null, String(n)])]);
  const block = whole("", 1, 1024);
  const dtype = choice([["float32", null, "float32"], ["float64", null, "float64"]]);
  const view = choice(
      [["beside", "reduce.beside"], ["blocks", "scheme.blocks"], ["shuffle", "scheme.shuffle"]]);
  const picture = h("div", {class: "stack wide", id: "reduce-picture"});
  const fillIn = () => {
    const n = Number(length.value);
    a.value = upTo(n).join(" ");
    b.value = upTo(n).map(() => 1).join(" ");
  };
  length.addEventListener("change", () => length.value && (fillIn(), go()));
  view.addEventListener("change", () => go());
  for (const text of [a, b])
    text.addEventListener("input", () => {
      length.value = "";
    });
  length.value = "8";
  fillIn();

  async function run(signal) {
    const operands = {a: readValues(a.value), b: readValues(b.value), dtype: dtype.value};
    if (readWhole(block) !== undefined)
      operands.block = readWhole(block);
    const runs = await runsOf(VIEWS[view.value], operands, signal);
    const pictures = runs.map(schemePicture);
    const control = player(Math.max(...pictures.map((each) => each.last)),
        (i) => pictures.forEach((each) => each.show(i)));
    picture.replaceChildren(control.element,
        h("div", {class: "pictures"}, pictures.map((each) => each.element)),
        legend(["written", "cells.written"], ["read", "cells.read"], ["active", "cells.active"]),
        h("p", {class: "remark", text: ["cells.warp", {size: WARP}]}), countsTable(runs),
        said("reduce.exact", {exact: brief(runs[0].exact, 17)}),
        ...runs.flatMap((each) => faultsOf(each.faults)), placeOf(runs[0]));
    control.go(0);
  }

  const go = lesson(panel, {
    title: "reduce.title",
    lead: "reduce.lead",
    picture,
    run,
    is_wide: true,
    extra: [h("div", {class: "halves"}, field("reduce.a", a), field("reduce.b", b))],
    controls: [
      field("reduce.length", length), field("reduce.block", block), field("option.dtype", dtype),
      field("reduce.view", view)
    ],
    questions: [question("reduce.question", whyStride), remark("reduce.try")],
  });
}
