/* status.js - the fourth tab: what the daemon is doing, asked every two seconds while it is looked
 * at. */
import {get, pause} from "./api.js";
import {h, live, problemBox, remark, table, terms} from "./dom.js";
import {brief, bytes, time} from "./numbers.js";
import {spark} from "./plot.js";
import {grouped, has} from "./text.js";

const PERIOD_MS = 2000, KEPT = 60;
const KNOWN = [
  "state", "uptime_ms", "worker", "versions", "requests", "connections", "memory", "stages", "lab",
  "devices"
];

function figure(key, value) {
  return h("div", {class: "figure"}, h("b", {}, value), h("span", {text: key}));
}

function uptime(ms) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const s = Math.floor(ms / 1000);
  const [unit, size] = units.find(([, least]) => s >= least) ?? units.at(-1);
  return `${grouped(Math.floor(s / size))} ${unit}`;
}

function devicesTable(devices) {
  const count = (device, name) => grouped(device[name] ?? 0);
  return table("status.devices",
      [
        "option.device", "status.name", "status.queued", "status.queued_bytes", "status.jobs",
        "status.batches", "status.refused"
      ],
      devices.map((device) => [device.id, device.name, count(device, "queued_jobs"),
                      bytes(device.queued_bytes ?? 0), count(device, "jobs_total"),
                      count(device, "batches_total"), count(device, "rejected_total")]),
      {id: "devices"});
}

function memoryBars(memory) {
  return h("div", {class: "stack"},
      [
        ["status.operands", memory.used_bytes, memory.budget_bytes],
        ["status.pinned", memory.pinned_used_bytes, memory.pinned_bytes]
      ].filter(([, , most]) => most > 0)
          .map(([key, used, most]) => h("div", {},
                   h("p", {}, h("span", {text: key}), `: ${bytes(used)} / ${bytes(most)}`),
                   h("progress", {value: used, max: most, label: key}))));
}

/* What is told only now and then, as of devices that failed, by the names of the API. */
function restOf(status) {
  const rows = Object.entries(status).filter(([name]) => !KNOWN.includes(name)).map(([
    name, value
  ]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  return rows.length === 0 ? null : table("status.rest", ["status.name", "compute.value"], rows);
}

/* A quantile in whole microseconds, as fine as the daemon's buckets. */
function within(stage, name) {
  if (stage.count === 0)
    return "–";
  return stage[name] < 1 ? "< 1 µs" : time(stage[name]);
}

function stagesTable(stages) {
  const row = ([
    name, stage
  ]) => [h("span", {text: `stage.${name}`}), within(stage, "p50_us"), within(stage, "p99_us")];
  return table("status.stages", ["status.stage", "status.half", "status.most"],
      Object.entries(stages).map(row), {id: "latency"});
}

/* ---- polling ---- */

/* Requests a second between each two polls. */
function rates(history) {
  return history.slice(1).map(
      (one, i) => Math.max(0, (one.requests - history[i].requests) / (one.at_s - history[i].at_s)));
}

function draw(status, history) {
  const rate = rates(history);
  const {requests, connections, worker} = status;
  return [
    h("div", {class: "figures"},
        h("div", {class: "figure"}, h("b", {
          text: has(`status.${status.state}`) ? `status.${status.state}` : "status.unknown"
        }),
            h("span", {text: "status.state"})),
        figure("status.rate", rate.length ? brief(rate.at(-1), 3) : "–"),
        figure("status.in_flight", grouped(requests.in_flight)),
        figure("status.connections", grouped(connections.open)),
        figure("status.completed", grouped(requests.completed_total)),
        figure("status.uptime", uptime(status.uptime_ms))),
    h("section", {class: "panel stack"}, h("h3", {text: "status.rate"}), spark(rate, KEPT),
        remark("status.rate_remark", {seconds: KEPT * PERIOD_MS / 1000})),
    h("section", {class: "stack"}, devicesTable(status.devices)),
    h("section", {class: "stack"}, h("h3", {text: "status.memory"}), memoryBars(status.memory)),
    terms([
      ["status.answers_2xx", grouped(requests.answers_2xx_total)],
      ["status.answers_4xx", grouped(requests.answers_4xx_total)],
      ["status.answers_5xx", grouped(requests.answers_5xx_total)],
      ["status.accepted", grouped(connections.accepted_total)]
    ]),
    terms([
      ["status.generation", grouped(worker.generation)],
      ["status.lost", grouped(worker.restarts_total)],
      ["status.last_reason", worker.last_reason ?? "–"]
    ]),
    status.lab ? terms([
      ["status.lab_queued", grouped(status.lab.queued_jobs)],
      ["status.lab_jobs", grouped(status.lab.jobs_total)],
      ["status.lab_refused", grouped(status.lab.rejected_total)]
    ]) :
                 null,
    stagesTable(status.stages),
    restOf(status),
    terms([[
      "status.versions",
      Object.entries(status.versions).map(([name, version]) => `${name} ${version}`).join(", ")
    ]]),
  ].filter((part) => part !== null);
}

export function openStatus(panel) {
  const out = h("div", {class: "stack wide", id: "status-out"}), trouble = live();
  const history = [];
  let polling = null;

  async function poll(signal) {
    const [status, devices] = await Promise.all(
        [get("v1/status", signal), get("v1/devices", signal)]);
    history.push({at_s: performance.now() / 1000, requests: status.requests.completed_total});
    history.splice(0, history.length - KEPT);
    trouble.replaceChildren();
    out.replaceChildren(...draw({...status, ...devices}, history));
  }
  async function keepPolling(signal) {
    while (!signal.aborted) {
      try {
        await poll(signal);
      } catch (problem) {
        if (!signal.aborted && trouble.childElementCount === 0)
          trouble.replaceChildren(problemBox(problem));
      }
      await pause(PERIOD_MS, signal).catch(() => {});
    }
  }
  function follow(isShown) {
    polling?.abort();
    polling = null;
    if (!isShown || document.hidden)
      return;
    polling = new AbortController();
    keepPolling(polling.signal);
  }
  panel.append(h("div", {class: "stack wide"},
      h("div", {class: "stack"}, h("h2", {text: "status.title"}),
          h("p", {class: "lead", text: "status.lead"})),
      trouble, out));
  document.addEventListener("visibilitychange", () => follow(!panel.hidden));
  return follow;
}
