/* lessons.js - three short lessons: lost additions, the barriers of a shift, a barrier in a
 * branch. */
import {get, postPatiently} from "./api.js";
import {legend, level, levels, WARP, warps} from "./cells.js";
import {field, h, live, readWhole, whole} from "./dom.js";
import {faultsOf, lesson, placeOf, question, said} from "./lesson.js";
import {asNumber, ranges, readValues, shown, time} from "./numbers.js";
import {grouped} from "./text.js";

/* ---- race: one variable for all ---- */

function bar(words, share) {
  const kept = h("i", {});
  kept.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("div", {class: "bar"}, words, h("div", {"aria-hidden": "true"}, kept));
}

function raceBars(race) {
  const runs = race.runs.map((run, i) => bar(h("span", {
    text: ["race.run", {run: i + 1, value: () => grouped(run.value), lost: () => grouped(run.lost)}]
  }),
                                 asNumber(run.value) / race.right));
  const atomic = bar(h("span", {
    text: [
      "race.atomic",
      {value: () => grouped(race.atomic.value), lost: () => grouped(race.atomic.lost)}
    ]
  }),
      asNumber(race.atomic.value) / race.right);
  return h("div", {class: "bars panel", id: "race-bars"}, runs, atomic);
}

async function whyNotOne(signal) {
  const race = await postPatiently("v1/lab/race", {n: 100000, runs: 5}, signal);
  const lost = race.runs.map((run) => run.lost);
  const values = {n: race.right, least: Math.min(...lost), most: Math.max(...lost)};
  return [
    said(values.most > 0 ? "race.answer.lost" : "race.answer.lucky", values),
    said("race.answer.why")
  ];
}

/* What each rung of the ladder asks of one variable, and how long it takes here. */
async function whyNotAlways(signal) {
  const n = 1 << 20, small = 1 << 16;
  const {kernels} = await get(`v1/kernels?n=${n}&block=256`, signal);
  const atomics = (name) => kernels.find((rung) => rung.name === name).takes.atomics;
  const race = await postPatiently("v1/lab/race", {n: 100000, runs: 1}, signal);
  const took = [];
  for (const kernel of ["thread-atomic", "block-atomic"])
    took.push(await postPatiently("v1/lab/measure", {kernel, n: small}, signal));
  return [
    said("race.answer.atomic", {n: race.right, value: () => grouped(race.atomic.value)}),
    said("race.answer.queue",
        {n, threads: atomics("thread-atomic"), blocks: atomics("block-atomic")}),
    said(took[0].is_emulated ? "race.answer.emulated" : "race.answer.times",
        {n: small, thread: () => time(took[0].time_us), block: () => time(took[1].time_us)}),
  ];
}

export function openRace(panel) {
  const n = whole(100000, 1, 1 << 24), runs = whole(5, 1, 20);
  const picture = live({class: "stack wide"});
  let seed = 0;  // every run another order, from the same first one
  lesson(panel, {
    title: "race.title",
    lead: "race.lead",
    picture,
    controls: [field("race.n", n), field("race.runs", runs)],
    questions:
        [question("race.question.one", whyNotOne), question("race.question.atomic", whyNotAlways)],
    async run(signal) {
      const race = await postPatiently(
          "v1/lab/race", {n: readWhole(n), runs: readWhole(runs), seed: ++seed}, signal);
      picture.replaceChildren(raceBars(race), ...faultsOf(race.faults), placeOf(race));
    },
  });
}

/* ---- shift: everybody takes the right neighbour's value ---- */

const LISTING = [
  [0, "right = cell[i + 1];"],
  [1, "__syncthreads();"],
  [0, "cell[i] = right;"],
  [2, "__syncthreads();"],
  [0, "result[n - 1 - i] = cell[n - 1 - i];"],
];

function listingOf(barriers) {
  return h("pre", {class: "listing", tabindex: 0}, LISTING.flatMap(([needs,
    line]) => [needs === 0 ? line : h(needs <= barriers ? "b" : "s", {}, line), "\n"]));
}

function shiftPicture(shift) {
  const wrong = new Set(shift.wrong);
  const state = (i) => (wrong.has(i) ? "wrong" : "right");
  const picture = shift.n <= WARP / 2 ?
      levels(shift.n, h("p", {class: "remark", text: "shift.expected"}), level(shift.expected),
          h("p", {class: "remark", text: "shift.result"}), level(shift.result, state)) :
      warps(shift.n, state);
  const raced = shift.reads.filter((read) => read.raced);
  return h("section", {class: "picture panel"},
      h("h3", {text: [`shift.barriers.${shift.barriers}`]}), listingOf(shift.barriers),
      h("div", {class: "scroll", tabindex: 0, role: "region", label: "cells.region"},
          h("div",
              {role: "img", label: ["shift.described", {wrong: shift.wrong.length, n: shift.n}]},
              picture)),
      said("shift.counts",
          {wrong: shift.wrong.length, n: shift.n, raced: raced.length, reads: shift.reads.length}));
}

function shiftsOf(asked, signal) {
  return Promise.all(
      [0, 1, 2].map((barriers) => postPatiently("v1/lab/shift", {...asked, barriers}, signal)));
}

/* A read that raced and brought what nobody wanted, as an example. */
function exampleOf(shift) {
  const read = shift.reads.find((each) => each.raced && each.value !== each.expected) ??
      shift.reads.find((each) => each.raced);
  return read === undefined ? [] : [said("shift.answer.example", {
    thread: read.thread,
    cell: read.cell,
    value: () => shown(read.value),
    expected: () => shown(read.expected)
  })];
}

async function whatBarriersDo(signal) {
  const shifts = await shiftsOf({n: 128}, signal);
  const [none, one, two] = shifts.map((shift) => shift.wrong.length);
  const raced = shifts.map((shift) => shift.reads.filter((read) => read.raced).length);
  return [
    said("shift.answer.counts",
        {none, one, two, raced_none: raced[0], raced_one: raced[1], raced_two: raced[2]}),
    ...exampleOf(shifts[0]),
    said("shift.answer.why"),
    said("shift.answer.where"),
  ];
}

export function openShift(panel) {
  const values = h("textarea", {class: "short", spellcheck: "false"}), n = whole(128, 1, 1024);
  const picture = live({class: "stack wide"});
  let seed = 0;  // as in the race
  lesson(panel, {
    title: "shift.title",
    lead: "shift.lead",
    picture,
    is_wide: true,
    controls: [field("shift.n", n), field("shift.values", values)],
    questions: [question("shift.question", whatBarriersDo)],
    async run(signal) {
      const own = readValues(values.value);
      const asked = own.length > 0 ? {values: own} : {n: readWhole(n)};
      const shifts = await shiftsOf({...asked, seed: ++seed}, signal);
      picture.replaceChildren(h("div", {class: "pictures"}, shifts.map(shiftPicture)),
          legend(["right", "shift.right"], ["wrong", "shift.wrong"]),
          ...faultsOf(shifts.flatMap((shift) => shift.faults.slice(0, 1))), placeOf(shifts[0]));
    },
  });
}

/* ---- barrier: inside an if ---- */

function barrierPicture(barrier) {
  const waiting = new Set(barrier.waiting), ended = new Set(barrier.ended);
  const state = (i) => (waiting.has(i) ? "waiting active" : ended.has(i) ? "ended" : "right");
  return h("section", {class: "picture panel"}, h("h3", {text: `barrier.${barrier.where}`}),
      h("div",
          {role: "img", label: ["barrier.described", {waiting: waiting.size, ended: ended.size}]},
          warps(barrier.n, state)),
      said(barrier.stopped ? "barrier.stopped" : "barrier.passed",
          {waiting: ranges(barrier.waiting), ended: ranges(barrier.ended)}),
      barrier.report ? h("p", {class: "remark", lang: "en"}, barrier.report) : null);
}

const WHERE = ["branch", "common"];

function barriersOf(n, signal) {
  return Promise.all(WHERE.map((where) => postPatiently("v1/lab/barrier", {n, where}, signal)));
}

async function whyNotInside(signal) {
  const [branch] = await barriersOf(64, signal);
  return [
    said(branch.stopped ? "barrier.answer.stopped" : "barrier.answer.passed",
        {n: branch.n, waiting: branch.waiting.length, missing: branch.n - branch.waiting.length}),
    said("barrier.answer.why"),
  ];
}

export function openBarrier(panel) {
  const n = whole(64, 2, 1024);
  const picture = live({class: "stack wide"});
  lesson(panel, {
    title: "barrier.title",
    lead: "barrier.lead",
    picture,
    controls: [field("barrier.n", n)],
    questions: [question("barrier.question", whyNotInside)],
    async run(signal) {
      const barriers = await barriersOf(readWhole(n), signal);
      picture.replaceChildren(h("div", {class: "pictures"}, barriers.map(barrierPicture)),
          legend(["waiting active", "barrier.key.waiting"], ["ended", "barrier.key.ended"],
              ["right", "barrier.key.passed"]),
          h("p", {class: "remark", text: ["cells.warp", {size: WARP}]}),
          placeOf({is_emulated: true, ...barriers[0]}));
    },
  });
}
