/* compute.js - the first tab: two operands in, everything the server says about their product out.
 */
import {get, post} from "./api.js";
import {choice, copyable, field, h, live, problemBox, remark, runner, table, terms} from "./dom.js";
import {fieldsOf, shown, time} from "./numbers.js";
import {catOf, DTYPES, jsonOf, quoted, rawOf, readFile, withDtype} from "./operand.js";
import {has, say} from "./text.js";

const EXAMPLE = {
  a: "1e16, 1, -1e16",
  b: "1, 1, 1"
};
const STAGES = ["receive", "decode", "queue", "copy_in", "compute", "copy_out"];
const CURL_RAW = "curl --data-binary @- -H 'Content-Type: application/octet-stream'";
const LONGEST_LINE = 8192;  // bytes of a body that a curl line still carries
const MOST_SHOWN = 200;     // results in the table

/* ---- operands ---- */

/* The editor of one operand; .read() is what it holds. */
function editor(name) {
  const text = h("textarea",
      {id: `operand-${name}`, spellcheck: "false", autocapitalize: "off", hint: "compute.hint"});
  const file = h("input", {type: "file", id: `file-${name}`});
  const held = h("p", {class: "remark", id: `held-${name}`});
  const dtype = choice(DTYPES.map((type) => [type, null, type]));
  const dtypeField = field("compute.raw_dtype", dtype);
  const trouble = live();
  const drop = h("div", {class: "drop stack"});
  const back = h(
      "button", {type: "button", class: "small", text: "compute.back_to_text", hidden: true});
  let loaded = null;
  text.value = EXAMPLE[name];
  dtype.value = "float32";

  function showLoaded() {
    text.hidden = loaded !== null;
    back.hidden = loaded === null;
    held.hidden = loaded === null;
    dtypeField.hidden = loaded === null || loaded.npy;
    if (loaded !== null)
      say(held, "compute.held", {
        name: loaded.name,
        bytes: loaded.bytes.byteLength,
        type: () => (loaded.npy ? `${loaded.dtype} (${loaded.shape.join("×")})` : dtype.value),
      });
  }

  async function take(given) {
    trouble.replaceChildren();
    try {
      const read = await readFile(given);
      loaded = read.text === undefined ? read : null;
      if (read.text !== undefined)
        text.value = read.text;
    } catch (problem) {
      trouble.replaceChildren(problemBox(problem));
    }
    showLoaded();
  }

  file.addEventListener("change", () => file.files.length && take(file.files[0]));
  dtype.addEventListener("change", showLoaded);
  back.addEventListener("click", () => {
    loaded = null;
    file.value = "";
    showLoaded();
    text.focus();
  });
  for (const kind of ["dragover", "dragleave", "drop"])
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length)
        take(event.dataTransfer.files[0]);
    });
  drop.append(field(`compute.${name}`, text), held, dtypeField,
      h("div", {class: "row middle"},
          h("label", {class: "file"}, file, h("span", {class: "button", text: "compute.file"})),
          back),
      trouble);
  showLoaded();
  return {
    drop,
    read: () => (loaded === null ? {text: text.value} : withDtype(loaded, dtype.value))
  };
}

/* ---- options ---- */

function optionFields() {
  const types = DTYPES.map((type) => [type, null, type]);
  const select = (key, options) => choice([["", key], ...options]);
  return {
    dtype: select("compute.default_dtype", types),
    result_dtype: select("compute.by_dtype",
        ["float16", "bfloat16", "float32", "float64", "int64", "complex64", "complex128"].map(
            (type) => [type, null, type])),
    accuracy: select("compute.by_server", [["exact", "compute.exact"], ["fast", "compute.fast"]]),
    kernel: select("compute.by_device", []),
    device: select("compute.device_auto", []),
  };
}

/* Devices and kernels are what this server has; without their lists the page works all the same. */
async function fillChoices(fields) {
  const [devices, ladder] = await Promise.allSettled([get("v1/devices"), get("v1/kernels")]);
  if (devices.status === "fulfilled")
    fields.device.append(
        ...devices.value.devices.map(({id, name}) => h("option", {value: id}, `${id} · ${name}`)));
  if (ladder.status === "fulfilled")
    fields.kernel.append(...ladder.value.kernels.filter((rung) => !rung.lab_only)
                             .map(({name}) => h("option", {value: name}, name)));
}

/* ---- the request ---- */

function chosen(fields, diagnostics) {
  const options = Object.entries(fields).map(([name, select]) => [name, select.value]);
  const set = Object.fromEntries(options.filter(([, value]) => value !== ""));
  return diagnostics.checked ? {...set, diagnostics: true} : set;
}

/* {path, body, line}: what is sent, and the shell's line that sends the same. */
function requestOf(a, b, options) {
  const raw = rawOf(a, b);
  const address = `${new URL("v1/dot", location.href)}`;
  if (raw !== null) {
    const query = new URLSearchParams({...raw.query, ...options, dtype: raw.query.dtype});
    const both = `(${catOf(a)}; ${catOf(b)})`;
    const line = `${both} | ${CURL_RAW} ${quoted(`${address}?${query}`)}`;
    return {path: `v1/dot?${query}`, body: raw.body, line};
  }
  const file = [a, b].find((operand) => operand.text === undefined);
  const all = file === undefined ? options : {dtype: file.dtype, ...options};
  const rest = Object.entries(all).map(([name, value]) => `,"${name}":${JSON.stringify(value)}`);
  const body = `{"a":${jsonOf(a)},"b":${jsonOf(b)}${rest.join("")}}`;
  const is_long = body.length > LONGEST_LINE;
  const data = is_long ? "@request.json" : quoted(body);
  return {path: "v1/dot", body, is_long, line: `curl -d ${data} ${address}`};
}

/* ---- the answer ---- */

/* The bits of one number, and of a real one its fields. */
function bitsOf(answer) {
  const parts = fieldsOf(answer.bits, answer.result_dtype);
  const bits = Array.isArray(answer.bits) ? answer.bits.join(", ") : answer.bits;
  return h(
      "div", {}, terms([["compute.bits", h("code", {id: "bits"}, bits)]]), parts === null ? null : [
        h("div", {class: "bits"}, Object.values(parts).map((field) => h("span", {}, field))),
        remark("compute.bits_parts")
      ]);
}

function stagesOf(timing) {
  const total = timing.total || 1;
  const bar = h("div", {class: "stages", "aria-hidden": "true"}, STAGES.map((stage, i) => {
    const piece = h("i", {class: `s${i + 1}`});
    piece.style.flexGrow = timing[stage] / total;
    return piece;
  }));
  return h("div", {class: "stack", id: "stages"}, h("h3", {text: "compute.stages"}), bar,
      h("ul", {class: "legend"},
          STAGES.map((stage, i) => h("li", {},
                         h("span", {class: `swatch s${i + 1}`, "aria-hidden": "true"}),
                         h("span", {text: `stage.${stage}`}), ` ${time(timing[stage])}`)),
          h("li", {}, h("strong", {text: "stage.total"}), ` ${time(timing.total)}`)));
}

function flagsOf(flags) {
  return flags.length === 0 ?
      h("p", {text: "compute.no_flags"}) :
      h("ul", {class: "chips"},
          flags.map(
              (flag) => has(`flag.${flag}`) ? h("li", {text: `flag.${flag}`}) : h("li", {}, flag)));
}

/* All numbers of a nested answer, each with its place: [[place], value]. */
function flat(value, rank, place = []) {
  if (place.length === rank || !Array.isArray(value))
    return [[place, value]];
  return value.flatMap((inner, i) => flat(inner, rank, [...place, i]));
}

function valuesOf(answer) {
  const values = flat(answer.result, answer.shape.length);
  const pick = (field, i) => (
      answer[field] === undefined ? null : flat(answer[field], answer.shape.length)[i][1]);
  const show = (value) => (
      Array.isArray(value) ? `[${value.map(shown).join(", ")}]` : shown(value));
  if (values.length === 1 && answer.shape.length === 0)
    return h("p", {class: "number", id: "result"}, show(answer.result_text ?? answer.result));
  const rows = values.slice(0, MOST_SHOWN)
                   .map(([place, value],
                            i) => [`[${place.join(", ")}]`, show(pick("result_text", i) ?? value),
                            show(pick("bits", i)), show(pick("error_bound", i))]);
  return h("div", {id: "result"},
      table("compute.results", ["compute.place", "compute.value", "compute.bits", "compute.bound"],
          rows),
      values.length > MOST_SHOWN ? remark("compute.more", {count: values.length - MOST_SHOWN}) :
                                   null);
}

function answerOf(answer) {
  const is_single = answer.shape.length === 0;
  const bound = is_single ? shown(answer.error_bound) : "";
  return [
    h("div", {class: "stack"}, h("h2", {text: "compute.answer"}), valuesOf(answer),
        is_single ? bitsOf(answer) : null),
    terms([
      ...(is_single ? [[
        "compute.bound",
        h("span", {id: "bound"},
            answer.error_bound === null ? h("span", {text: "compute.no_bound"}) : bound)
      ]] :
                      []),
      ["compute.flags", flagsOf(answer.flags)],
      ["compute.terms", String(answer.n)],
      ["compute.types", `${answer.dtype} → ${answer.result_dtype}`],
      ["compute.kernel", answer.kernel],
      ["compute.device", answer.device_name],
      ...(answer.sum_abs === undefined || !is_single ?
              [] :
              [
                ["compute.sum_abs", shown(answer.sum_abs)],
                ["compute.condition", shown(answer.condition)]
              ]),
    ]),
    stagesOf(answer.timing_us),
  ];
}

/* The line stays where an answer is refused: it is refused there as well. */
function lineOf(request) {
  const save = () => {
    const link = h(
        "a", {href: URL.createObjectURL(new Blob([request.body])), download: "request.json"});
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return h("div", {class: "stack"}, h("h3", {text: "compute.same_by_curl"}), copyable(request.line),
      request.is_long ?
          h("div", {class: "row middle"},
              h("button", {type: "button", class: "small", text: "compute.save", onclick: save}),
              remark("compute.save_why")) :
          null);
}

export function openCompute(panel) {
  const editors = [editor("a"), editor("b")];
  const fields = optionFields();
  const diagnostics = h("input", {type: "checkbox", id: "diagnostics"});
  const out = live({class: "stack wide", id: "answer"});
  const line = h("div", {id: "curl"});
  const compute = runner(out, async (signal) => {
    line.replaceChildren();
    const [a, b] = editors.map((each) => each.read());
    const request = requestOf(a, b, chosen(fields, diagnostics));
    line.replaceChildren(lineOf(request));
    out.replaceChildren(...answerOf(await post(request.path, request.body, signal)));
  });
  const form = h("form", {
    class: "stack wide",
    onsubmit: (event) => {
      event.preventDefault();
      compute();
    }
  },
      h("div", {class: "stack"}, h("h2", {text: "compute.title"}),
          h("p", {class: "lead", text: "compute.lead"})),
      ...editors.map((each) => each.drop),
      h("fieldset", {class: "stack"}, h("legend", {text: "compute.options"}),
          h("div", {class: "options"},
              Object.entries(fields).map(([name, select]) => field(`option.${name}`, select))),
          h("label", {class: "check"}, diagnostics, h("span", {text: "compute.diagnostics"}))),
      h("div", {}, h("button", {class: "main", type: "submit", text: "compute.run"})));
  panel.append(h("div", {class: "two"}, form, h("div", {class: "stack wide panel"}, out, line)));
  fillChoices(fields);
  compute();
}
