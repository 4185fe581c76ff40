/* status.js - the fourth tab: what the daemon is doing, asked every two seconds while it is looked
 * at. */
import {get, getText, pause, served} from "./api.js";
import {h, live, problemBox, remark, table, terms} from "./dom.js";
import {brief, bytes, time} from "./numbers.js";
import {spark} from "./plot.js";
import {grouped, has} from "./text.js";

const PERIOD_MS = 2000, KEPT = 60;
const KNOWN =
    ["state", "uptime_ms", "versions", "requests", "connections", "memory", "lab", "devices"];

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

/* What a newer daemon tells besides, by its own names. */
function restOf(status) {
  const rows = Object.entries(status).filter(([name]) => !KNOWN.includes(name)).map(([
    name, value
  ]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)]);
  return rows.length === 0 ? null : table("status.rest", ["status.name", "compute.value"], rows);
}

/* ---- stages, from the histograms of /metrics ---- */

const BUCKET = /^(\w+_seconds)_bucket\{(.*)\}\s+(\S+)/;

/* {name: [[upper bound in seconds, count up to it], ...]}, all labels but the stage's together. */
function histograms(text) {
  const found = {};
  for (const line of text.split("\n")) {
    const [, name, labels, count] = BUCKET.exec(line) ?? [];
    if (name === undefined)
      continue;
    const stage = /stage="([^"]*)"/.exec(labels)?.[1];
    const bound = /le="([^"]*)"/.exec(labels)[1];
    const buckets = found[stage ?? name.replace(/^dotd_|_duration_seconds$/g, "")] ??= new Map();
    const upper = bound === "+Inf" ? Infinity : Number(bound);
    buckets.set(upper, (buckets.get(upper) ?? 0) + Number(count));
  }
  return found;
}

/* The least bound under which this share of the observations lies. */
function quantile(buckets, share) {
  const sorted = [...buckets].sort(([one], [other]) => one - other);
  const total = sorted.at(-1)[1];
  const bound = sorted.find(([, count]) => count >= share * total)[0];
  return total === 0 ? "–" : bound === Infinity ? "> …" : `≤ ${time(bound * 1e6)}`;
}

function stagesTable(text) {
  const rows = Object.entries(histograms(text))
                   .map(([name,
                     buckets]) => [has(`stage.${name}`) ? h("span", {text: `stage.${name}`}) : name,
                            quantile(buckets, 0.5), quantile(buckets, 0.99)]);
  return rows.length === 0 ?
      null :
      table("status.stages", ["status.stage", "status.half", "status.most"], rows);
}

/* ---- polling ---- */

/* Requests a second between each two polls. */
function rates(history) {
  return history.slice(1).map(
      (one, i) => Math.max(0, (one.requests - history[i].requests) / (one.at_s - history[i].at_s)));
}

function draw(status, history, metrics) {
  const rate = rates(history);
  const {requests, connections} = status;
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
    status.lab ? terms([
      ["status.lab_queued", grouped(status.lab.queued_jobs)],
      ["status.lab_jobs", grouped(status.lab.jobs_total)],
      ["status.lab_refused", grouped(status.lab.rejected_total)]
    ]) :
                 null,
    metrics === null ? null : stagesTable(metrics),
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
    const [status, devices, paths] = await Promise.all(
        [get("v1/status", signal), get("v1/devices", signal), served()]);
    const metrics = paths.includes("/metrics") ? await getText("metrics", signal) : null;
    history.push({at_s: performance.now() / 1000, requests: status.requests.completed_total});
    history.splice(0, history.length - KEPT);
    trouble.replaceChildren();
    out.replaceChildren(...draw({...status, ...devices}, history, metrics));
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
