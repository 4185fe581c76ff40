/* numbers.js - numbers as text, in both directions, without losing a digit of either. */
import {Problem} from "./api.js";
import {grouped} from "./text.js";

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const WORDS = {
  nan: "NaN",
  inf: "Infinity",
  infinity: "Infinity",
  "∞": "Infinity"
};

/* "1e3", "-.5", "+2", "nan", "-inf" as JSON of this daemon; undefined when it is no number. Digits
 * are kept as they came: the server rounds them once. */
function jsonNumber(typed) {
  const token = typed.replaceAll("−", "-");  // a minus as it is printed
  if (NUMBER.test(token)) {
    const [, sign, whole, fraction, exponent] = /^([+-]?)0*(\d*)\.?(\d*)(.*)$/.exec(token);
    return `${sign === "-" ? "-" : ""}${whole || "0"}${fraction ? `.${fraction}` : ""}${exponent}`;
  }
  const word = WORDS[token.replace(/^[+-]/, "").toLowerCase()];
  return word && (token.startsWith("-") && word !== "NaN" ? `-${word}` : word);
}

/* Numbers between blanks, commas, semicolons or line ends, as JSON texts. */
export function readNumbers(text) {
  const tokens = text.split(/[\s,;]+/).filter((token) => token !== "");
  return tokens.map((token, i) => {
    const number = jsonNumber(token);
    if (number === undefined)
      throw new Problem("problem.number", {word: token.slice(0, 40), place: i + 1});
    return number;
  });
}

/* The same for the lab, which takes a list of numbers; not finite ones stay words. */
export function readValues(text) {
  const flat = text.trim().startsWith("[") ? text.replace(/[[\]"]/g, " ") : text;
  return readNumbers(flat).map((number) => (/^-?[\d]/.test(number) ? Number(number) : number));
}

/* A number of an answer: not finite ones come as words, and what has no number as null. */
export function shown(value) {
  return value === null || value === undefined ? "–" : String(value);
}

/* At most so many significant digits: for cells, axes and tables that compare. */
export function brief(value, digits = 4) {
  if (typeof value !== "number")
    return {Infinity: "∞", "-Infinity": "−∞"}[value] ?? shown(value);
  if (value === 0)
    return "0";
  const size = Math.abs(value);
  if (size >= 10 ** (digits + 1) || size < 10 ** -(digits - 1))
    return value.toExponential(Math.max(0, digits - 3)).replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

export function asNumber(value) {
  return typeof value === "number" ? value : Number(value ?? NaN);
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count) {
  let unit = 0;
  for (; count >= 1024 && unit < BYTES.length - 1; unit++)
    count /= 1024;
  return `${grouped(Number(count.toPrecision(3)))} ${BYTES[unit]}`;
}

const TIMES = [[1e6, "s"], [1e3, "ms"], [1, "µs"], [1e-3, "ns"]];

export function time(us) {
  const [scale, unit] = TIMES.find(([least]) => us >= least) ?? TIMES.at(-1);
  return `${grouped(Number((us / scale).toPrecision(3)))} ${unit}`;
}

/* Sign, exponent and fraction of the bits of a float. */
export function fieldsOf(bits, dtype) {
  const width = {float64: 11, float32: 8, bfloat16: 8, float16: 5}[dtype];
  if (width === undefined || typeof bits !== "string")
    return null;
  const size = (bits.length - 2) * 4;
  const text = BigInt(bits).toString(2).padStart(size, "0");
  return {sign: text[0], exponent: text.slice(1, 1 + width), fraction: text.slice(1 + width)};
}

/* "0–3, 8, 10–11" of a rising list. */
export function ranges(list) {
  const found = [];
  for (const value of list) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === value - 1)
      last[1] = value;
    else
      found.push([value, value]);
  }
  const words = found.slice(0, 6).map(
      ([first, end]) => (first === end ? `${first}` : `${first}–${end}`));
  return words.join(", ") + (found.length > 6 ? ", …" : "");
}
