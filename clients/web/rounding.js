/* rounding.js - the lesson of rounding: one vector, many orders, and how to compare what comes
 * out. */
import {postPatiently} from "./api.js";
import {choice, field, h, live, readWhole, svg, table, terms, whole} from "./dom.js";
import {lesson, placeOf, question, said} from "./lesson.js";
import {asNumber, brief, readValues, shown} from "./numbers.js";
import {label} from "./text.js";

/* The same numbers for everybody: a generator of Knuth's, from one seed. */
function random(seed) {
  let state = BigInt(seed);
  return () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 11n) / 2 ** 53;
  };
}

/* Of one sign; or of both, so that nearly everything cancels. */
const VECTORS = {
  positive: (n) => {
    const next = random(1);
    return Array.from({length: n}, () => Math.fround(next()));
  },
  cancelling: (n) => {
    const next = random(1);
    const half = Array.from({length: n / 2}, () => Math.fround(next()));
    const rest = half.map((value, i) => (i === 0 ? -value + 2 ** -20 : -value));
    return half.flatMap((value, i) => [value, rest[(i * 7 + 3) % rest.length]]);
  },
};
const LENGTH = 2000;

function ones(values) {
  return values.map(() => 1);
}

function ask(values, dtype, orders, signal) {
  return postPatiently("v1/lab/rounding", {a: values, b: ones(values), dtype, orders}, signal);
}

function howOf(sum) {
  return h("span", {}, h("span", {text: `rounding.how.${sum.how}`}),
      sum.order !== undefined && sum.order !== null ? ` ${sum.order}` : "",
      sum.kernel ? ` · ${sum.kernel}` : "");
}

/* Digits that the exact sum does not have are marked. */
function bitsOf(bits, exact) {
  return h("code", {class: "kept"},
      [...bits].map((digit, i) => (digit === exact[i] ? digit : h("mark", {}, digit))));
}

/* A dot a sum, by how many units in the last place it is beside the exact one. */
function strip(rounding) {
  const exact = asNumber(rounding.exact.value);
  const sides = rounding.sums.map(
      (sum) => asNumber(sum.ulps) * Math.sign(asNumber(sum.value) - exact));
  const most = Math.max(1, ...sides.filter(Number.isFinite).map(Math.abs));
  const row = 24, height = rounding.sums.length * row + 40, middle = 380;
  const x = (side) => middle + 340 * (Number.isFinite(side) ? side : 0) / most;
  const picture = svg("svg", {class: "plot c1", viewBox: `0 0 760 ${height}`, role: "img"},
      svg("line", {class: "zero", x1: middle, x2: middle, y1: 0, y2: height - 28}),
      sides
          .map((side, i) =>
                   [svg("line",
                        {class: "grid", x1: x(0), x2: x(side), y1: i * row + 14, y2: i * row + 14}),
                       svg("circle", {class: "dot", r: 5, cx: x(side), cy: i * row + 14})])
          .flat(),
      svg("text", {x: 40, y: height - 8}, `−${brief(most)}`),
      svg("text", {x: middle, y: height - 8, "text-anchor": "middle", text: "rounding.axis"}),
      svg("text", {x: 720, y: height - 8, "text-anchor": "end"}, `+${brief(most)}`));
  label(picture, "rounding.described", {sums: rounding.sums.length, distinct: rounding.distinct});
  return h("div", {class: "panel"}, picture);
}

function sumsTable(rounding) {
  return table("rounding.sums",
      [
        "rounding.order", "rounding.value", "compute.bits", "rounding.ulps", "rounding.error",
        "compute.bound"
      ],
      rounding.sums.map(
          (sum) => [howOf(sum), shown(sum.value), bitsOf(sum.bits, rounding.exact.bits),
              shown(sum.ulps), brief(sum.error), brief(sum.bound)]),
      {id: "sums"});
}

/* The largest error of all orders, beside the sum and beside the magnitudes. */
function worst(rounding) {
  const error = Math.max(...rounding.sums.map((sum) => asNumber(sum.error)));
  return {
    error,
    ofSum: error / Math.abs(asNumber(rounding.exact.value)),
    ofMagnitudes: error / asNumber(rounding.sum_abs),
    condition: asNumber(rounding.condition),
  };
}

async function whyBitsDiffer(signal) {
  const plain = await ask(VECTORS.positive(LENGTH), "float32", 8, signal);
  const hard = await ask(VECTORS.cancelling(LENGTH), "float32", 8, signal);
  const easy = worst(plain), bad = worst(hard);
  const numbers = (one) => ({
    error: brief(one.error, 2),
    of_sum: brief(one.ofSum, 2),
    of_magnitudes: brief(one.ofMagnitudes, 2),
    condition: brief(one.condition, 2)
  });
  return [
    said(plain.distinct > 1 ? "rounding.answer.differ" : "rounding.answer.same",
        {sums: plain.sums.length, distinct: plain.distinct}),
    said("rounding.answer.positive", numbers(easy)),
    said("rounding.answer.cancelling", numbers(bad)),
    said("rounding.answer.compare"),
  ];
}

export function openRounding(panel) {
  const kind = choice([
    ["positive", "rounding.positive"], ["cancelling", "rounding.cancelling"],
    ["own", "rounding.own"]
  ]);
  const dtype = choice([["float32", null, "float32"], ["float64", null, "float64"]]);
  const orders = whole(8, 1, 32);
  const own = h("textarea", {class: "short", spellcheck: "false"});
  const ownField = field("rounding.numbers", own);
  const picture = live({class: "stack wide"});
  own.value = "1e8 1 -1e8 0.25 3e7 -3e7 0.5";
  ownField.hidden = true;
  kind.addEventListener("change", () => {
    ownField.hidden = kind.value !== "own";
    go();
  });

  async function run(signal) {
    const values = kind.value === "own" ? readValues(own.value) : VECTORS[kind.value](LENGTH);
    const rounding = await ask(values, dtype.value, readWhole(orders), signal);
    picture.replaceChildren(strip(rounding), terms([
      ["rounding.exact", shown(rounding.exact.value)],
      ["rounding.distinct", String(rounding.distinct)],
      ["compute.sum_abs", brief(rounding.sum_abs, 6)],
      ["compute.condition", brief(rounding.condition, 4)],
      ["compute.bound", brief(rounding.bound, 4)]
    ]),
        sumsTable(rounding), placeOf(rounding));
  }

  const go = lesson(panel, {
    title: "rounding.title",
    lead: "rounding.lead",
    picture,
    run,
    extra: [ownField],
    controls: [
      field("rounding.vector", kind), field("option.dtype", dtype), field("rounding.orders", orders)
    ],
    questions: [question("rounding.question", whyBitsDiffer)],
  });
}
