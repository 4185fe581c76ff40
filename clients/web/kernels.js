/* kernels.js - the third tab: the ladder of kernels, and how long each takes on this server. */
import {get, postPatiently} from "./api.js";
import {choice, field, h, live, problemBox, remark, runner, table, whole} from "./dom.js";
import {plot} from "./plot.js";
import {brief, time} from "./numbers.js";
import {grouped, has, say} from "./text.js";

/* Half a decade apart. */
const SIZES = Array.from({length: 13}, (_, i) => Math.round(10 ** (2 + i / 2)));
const REFUSED = [413, 422];  // longer than a kernel or the lab takes
const CPU_OWN =
    ["fast", "exact"];  // without a GPU these are the CPU's own, everything else is emulated

/* What a rung is about, in the reader's language; a rung that the texts do not know, in the
 * server's. */
function about(rung, what) {
  const key = `kernel.${rung.name}.${what}`;
  return has(key) ? h("span", {text: key}) : h("span", {lang: "en"}, rung[what]);
}

function orderOf(rung) {
  const key = `kernels.order.${rung.order.replaceAll(" ", "_")}`;
  return has(key) ? h("span", {text: key}) : rung.order;
}

function ladderTable(ladder) {
  const takes = (rung, what) => (rung.takes ? grouped(rung.takes[what]) : "–");
  return table("kernels.ladder",
      [
        "kernels.rung", "kernels.idea", "kernels.order", "kernels.limit", "kernels.blocks",
        "kernels.steps", "kernels.barriers", "kernels.atomics"
      ],
      ladder.kernels.map(
          (rung) => [h("code", {}, rung.name),
              h("span", {}, about(rung, "idea"), h("br"),
                  h("span", {class: "quiet"}, about(rung, "point"))),
              orderOf(rung), rung.max_n ? grouped(rung.max_n) : "–", takes(rung, "blocks"),
              takes(rung, "steps"), takes(rung, "barriers"), takes(rung, "atomics")]),
      {id: "ladder"});
}

function ladderPart() {
  const n = whole(1024, 1, 100000000), block = whole("", 1, 1024);
  const out = live();
  const query = () => new URLSearchParams({n: n.value, ...(block.value && {block: block.value})});
  const show = runner(out, async (signal) => {
    out.replaceChildren(ladderTable(await get(`v1/kernels?${query()}`, signal)));
  });
  for (const input of [n, block])
    input.addEventListener("change", () => show());
  show();
  return h("section", {class: "stack"}, h("h2", {text: "kernels.title"}),
      h("p", {class: "lead", text: "kernels.lead"}),
      h("div", {class: "row"}, field("kernels.n", n), field("reduce.block", block)), out);
}

/* ---- measuring ---- */

/* Points so far, by kernel. */
function pointsOf(measured, names, what) {
  return names
      .map((name, index) => ({
        name,
        index,
        points: measured.filter((one) => one.kernel === name && one[what] > 0)
                    .map((one) => [one.n, one[what]]),
      }))
      .filter((one) => one.points.length > 0);
}

function measuredTable(measured) {
  return table("kernels.measured",
      [
        "kernels.rung", "kernels.n", "kernels.time", "kernels.least", "kernels.rate", "kernels.runs"
      ],
      measured.map((one) => [h("code", {}, one.kernel), grouped(one.n), time(one.time_us),
                       time(one.time_us_min), brief(one.gb_s), grouped(one.runs)]),
      {id: "measured"});
}

/* The longest vector that the lab measures: a kernel's own limit, and that of where it runs. */
function limitsOf(ladder, fixed) {
  const own = new Map(
      ladder.kernels.filter((rung) => rung.max_n).map((rung) => [rung.name, rung.max_n]));
  return (kernel, isCuda) => {
    const place = isCuda         ? fixed.lab_measure :
        CPU_OWN.includes(kernel) ? fixed.lab_measure_cpu :
                                   fixed.lab_measure_emulated;
    return Math.min(own.get(kernel) ?? Infinity, place ?? Infinity);
  };
}

/* All sizes from the shortest, every kernel at each, until its limit; tell(i, all) before each. */
async function measureAll(names, limit, options, signal, each, tell) {
  const done = new Set();
  const all =
      SIZES.filter((n) => n <= options.most).flatMap((n) => names.map((kernel) => ({n, kernel})));
  for (const [i, {n, kernel}] of all.entries()) {
    tell(i, all.length, kernel, n);
    if (done.has(kernel) || n > limit(kernel, options.isCuda))
      continue;
    try {
      each(await postPatiently(
          "v1/lab/measure", {kernel, n, dtype: options.dtype, device: options.device}, signal));
    } catch (problem) {
      if (!REFUSED.includes(problem.status))
        throw problem;
      done.add(kernel);
    }
    signal.throwIfAborted();
  }
  tell(all.length, all.length);
}

function kernelChecks(names) {
  const boxes = names.map((name) => h("input", {type: "checkbox", value: name, checked: true}));
  const element = h("fieldset", {class: "stack"}, h("legend", {text: "kernels.which"}),
      h("div", {class: "checks"},
          boxes.map((box) => h("label", {class: "check"}, box, h("span", {}, box.value)))));
  return {element, chosen: () => boxes.filter((box) => box.checked).map((box) => box.value)};
}

function axisChoice(onchange) {
  const boxes = [["time_us", "kernels.time"], ["gb_s", "kernels.rate"]].map(([
    value, key
  ]) => [h("input", {type: "radio", name: "axis", value, checked: value === "time_us", onchange}),
                                                                                key]);
  const element = h("fieldset", {class: "stack"}, h("legend", {text: "kernels.axis"}),
      h("div", {class: "checks"},
          boxes.map(([box, key]) => h("label", {class: "check"}, box, h("span", {text: key})))));
  return {element, chosen: () => boxes.find(([box]) => box.checked)[0].value};
}

/* Where, how long, which: what a measurement is asked with. */
function measureControls({ladder, devices, limits}, redraw) {
  const names = ladder.kernels.filter((rung) => !rung.lab_only).map((rung) => rung.name);
  const all = [...names, "fast"];
  const device = choice([
    ["auto", "compute.device_auto"], ...devices.map(({id, name}) => [id, null, `${id} · ${name}`])
  ]);
  const dtype = choice([["float32", null, "float32"], ["float64", null, "float64"]]);
  const most = choice(SIZES.map((n) => [n, null, grouped(n)]));
  most.value = String(SIZES.find((n) => n >= 1e6));
  return {
    all,
    most,
    device,
    dtype,
    checks: kernelChecks(all),
    axis: axisChoice(redraw),
    limit: limitsOf(ladder, limits.fixed),
    isCuda:
        () => device.value.startsWith("cuda") || (device.value === "auto" && devices.length > 1),
  };
}

function measurePart(server) {
  const measured = [];
  const picture = h("div", {class: "panel", id: "plot"}), numbers = h("div", {}), trouble = live();
  const progress = h("progress", {max: 1, value: 0, label: "kernels.progress"});
  const told = h("p", {class: "remark", role: "status"});
  const start = h("button", {class: "main", type: "button", text: "kernels.start"});
  const stop = h("button", {type: "button", text: "kernels.stop", disabled: true});
  const controls = measureControls(server, redraw);
  let running = null;

  function redraw() {
    const what = controls.axis.chosen();
    picture.replaceChildren(plot({
      series: pointsOf(measured, controls.all, what),
      xKey: "kernels.n",
      yKey: what === "gb_s" ? "kernels.rate" : "kernels.time_us",
      described: "kernels.plot",
    }));
  }
  function tell(i, count, kernel, n) {
    progress.max = count;
    progress.value = i;
    if (kernel !== undefined)
      say(told, "kernels.now", {kernel, n, done: i, count});
    else
      say(told, "kernels.done", {count: measured.length});
  }
  function setRunning(controller) {
    running = controller;
    start.disabled = controller !== null;
    stop.disabled = controller === null;
  }

  start.addEventListener("click", async () => {
    setRunning(new AbortController());
    measured.length = 0;
    trouble.replaceChildren();
    try {
      const options = {
        most: Number(controls.most.value),
        dtype: controls.dtype.value,
        device: controls.device.value,
        isCuda: controls.isCuda()
      };
      await measureAll(controls.checks.chosen(), controls.limit, options, running.signal, (one) => {
        measured.push(one);
        redraw();
      }, tell);
    } catch (problem) {
      if (running.signal.aborted)
        say(told, "kernels.stopped", {count: measured.length});
      else
        trouble.replaceChildren(problemBox(problem));
    }
    if (measured.length > 0)
      numbers.replaceChildren(
          h("details", {}, h("summary", {text: "kernels.measured"}), measuredTable(measured)),
          remark(measured[0].is_emulated ? "kernels.emulated" : "kernels.on_device",
              {device: measured[0].device_name}));
    setRunning(null);
    (stop.matches(":focus") ? start : document.activeElement).focus();
  });
  stop.addEventListener("click", () => running?.abort());
  redraw();
  return h("section", {class: "stack"}, h("h2", {text: "kernels.measure"}),
      h("p", {class: "lead", text: "kernels.measure_lead"}),
      h("div", {class: "row"}, field("option.device", controls.device),
          field("option.dtype", controls.dtype), field("kernels.most", controls.most)),
      controls.checks.element, controls.axis.element, h("div", {class: "row middle"}, start, stop),
      progress, told, trouble, picture, numbers);
}

export function openKernels(panel) {
  const measure = live();
  const open = runner(measure, async (signal) => {
    const [ladder, {devices}, limits] = await Promise.all(
        ["v1/kernels", "v1/devices", "v1/limits"].map((path) => get(path, signal)));
    measure.replaceWith(measurePart({ladder, devices, limits}));
  });
  panel.append(h("div", {class: "stack wide"}, ladderPart(), measure));
  open();
}
