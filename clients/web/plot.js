/* plot.js - curves on logarithmic axes, drawn by hand. Series differ in colour, dash and mark. */
import {h, svg} from "./dom.js";

const WIDTH = 760, HEIGHT = 420, LEFT = 68, RIGHT = 16, TOP = 16, BOTTOM = 52;
const DASHES = ["", "7 4", "2 4", "10 4 2 4"];
const MARKS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
  "M-4-4h8v8h-8z",
  "M0-5l5 9h-10z",
  "M0-5l5 5l-5 5l-5-5z",
  "M0 5l5-9h-10z",
  "M-5-2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
  "M-6 0l6-3l6 3l-6 3z",
  "M-2-5h4v10h-4z",
  "M-5-5l5 3l5-3l-3 5l3 5l-5-3l-5 3l3-5z",
  "M-6-2h12v4h-12z",
];

/* Whole decades around the values, at least one. */
function decades(values) {
  const logs = values.map(Math.log10);
  const first = Math.floor(Math.min(...logs)), last = Math.ceil(Math.max(...logs));
  return [first, Math.max(last, first + 1)];
}

function scale([first, last], from, to) {
  return (value) => from + (to - from) * (Math.log10(value) - first) / (last - first);
}

function powers([first, last], most) {
  const step = Math.max(1, Math.ceil((last - first) / most));
  const found = [];
  for (let power = first; power <= last; power += step)
    found.push(power);
  return found;
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function powerOfTen(power) {
  const digits = String(Math.abs(power)).replace(/\d/g, (digit) => RAISED[digit]);
  return `10${power < 0 ? "⁻" : ""}${digits}`;
}

function frame(xs, ys, x, y, xKey, yKey) {
  const bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
  return [
    powers(xs, 8).map(
        (power) =>
            [svg("line",
                 {class: "grid", x1: x(10 ** power), x2: x(10 ** power), y1: TOP, y2: bottom}),
                svg("text", {x: x(10 ** power), y: bottom + 20, "text-anchor": "middle"},
                    powerOfTen(power))]),
    powers(ys, 7).map(
        (power) =>
            [svg("line",
                 {class: "grid", x1: LEFT, x2: right, y1: y(10 ** power), y2: y(10 ** power)}),
                svg("text", {x: LEFT - 10, y: y(10 ** power) + 4, "text-anchor": "end"},
                    powerOfTen(power))]),
    svg("line", {class: "axis", x1: LEFT, x2: right, y1: bottom, y2: bottom}),
    svg("line", {class: "axis", x1: LEFT, x2: LEFT, y1: TOP, y2: bottom}),
    svg("text", {x: (LEFT + right) / 2, y: HEIGHT - 8, "text-anchor": "middle", text: xKey}),
    svg("text", {
      x: 0,
      y: 0,
      transform: `translate(16 ${(TOP + bottom) / 2}) rotate(-90)`,
      "text-anchor": "middle",
      text: yKey
    }),
  ].flat(2);
}

function curve(points, i, x, y) {
  const path =
      points.map(([n, value], k) => `${k ? "L" : "M"}${x(n).toFixed(1)} ${y(value).toFixed(1)}`)
          .join("");
  return svg("g", {class: `c${i % 8 + 1}`},
      svg("path", {class: "curve", d: path, "stroke-dasharray": DASHES[i % DASHES.length]}),
      points.map(([n, value]) => svg("path", {
        class: "dot",
        d: MARKS[i % MARKS.length],
        transform: `translate(${x(n)} ${y(value)})`
      })));
}

/* series: [{name, index, points: [[x, y], ...]}], all above zero. index chooses how it looks. */
export function plot({series, xKey, yKey, described}) {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0)
    return h("p", {class: "quiet", text: "plot.empty"});
  const xs = decades(points.map(([n]) => n)), ys = decades(points.map(([, value]) => value));
  const x = scale(xs, LEFT, WIDTH - RIGHT), y = scale(ys, HEIGHT - BOTTOM, TOP);
  return h("div", {class: "stack"},
      svg("svg", {class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", label: described},
          frame(xs, ys, x, y, xKey, yKey), series.map((one) => curve(one.points, one.index, x, y))),
      h("ul", {class: "legend"},
          series.map(({name, index}) => h("li", {},
                         svg("svg", {
                           class: `c${index % 8 + 1}`,
                           width: 34,
                           height: 14,
                           viewBox: "-17 -7 34 14",
                           "aria-hidden": "true"
                         },
                             svg("path", {
                               d: "M-17 0h34",
                               stroke: "currentColor",
                               "stroke-width": 2,
                               "stroke-dasharray": DASHES[index % DASHES.length]
                             }),
                             svg("path", {
                               d: MARKS[index % MARKS.length],
                               fill: "var(--panel)",
                               stroke: "currentColor",
                               "stroke-width": 2
                             })),
                         h("span", {}, name)))));
}

/* Values over time, the newest at the right. */
export function spark(values, room) {
  const most = Math.max(1, ...values);
  const x = (i) => room - values.length + i;
  const path =
      values.map((value, i) => `${i ? "L" : "M"}${x(i)} ${40 - 36 * value / most}`).join("");
  return svg("svg", {
    class: "spark",
    viewBox: `0 0 ${room - 1} 44`,
    preserveAspectRatio: "none",
    "aria-hidden": "true"
  },
      svg("path", {d: path}));
}
