/* operand.js - one operand of a dot product: text, a file of raw elements, or a .npy file.
 *
 * Text keeps its digits: the server rounds them once. The elements of a file are sent as they are,
 * unless the other operand is text: then they are written as numbers.
 */
import {Problem} from "./api.js";
import {readNumbers} from "./numbers.js";

const SIZES = {
  float16: 2,
  bfloat16: 2,
  float32: 4,
  float64: 8,
  int8: 1,
  uint8: 1,
  int32: 4,
  int64: 8,
  complex64: 8,
  complex128: 16,
};
export const DTYPES = Object.keys(SIZES);

/* NumPy's codes of the same types. */
const CODES = {
  f2: "float16",
  f4: "float32",
  f8: "float64",
  i1: "int8",
  u1: "uint8",
  i4: "int32",
  i8: "int64",
  c8: "complex64",
  c16: "complex128",
};

function halfOf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent === 31)
    return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}

function brainOf(bits) {
  return new Float32Array(Uint32Array.of(bits << 16).buffer)[0];
}

const READERS = {
  float16: (view, at, little) => halfOf(view.getUint16(at, little)),
  bfloat16: (view, at, little) => brainOf(view.getUint16(at, little)),
  float32: (view, at, little) => view.getFloat32(at, little),
  float64: (view, at, little) => view.getFloat64(at, little),
  int8: (view, at) => view.getInt8(at),
  uint8: (view, at) => view.getUint8(at),
  int32: (view, at, little) => view.getInt32(at, little),
  int64: (view, at, little) => view.getBigInt64(at, little),
};

const sayNumber = (value) => (Object.is(value, -0) ? "-0" : String(value));

/* Elements as nested JSON lists of the shape. */
function nest(texts, shape) {
  let rows = texts;
  for (const count of shape.slice(1).reverse()) {
    const outer = [];
    for (let i = 0; i < rows.length; i += count)
      outer.push(`[${rows.slice(i, i + count).join(",")}]`);
    rows = outer;
  }
  return `[${rows.join(",")}]`;
}

function fileText({bytes, dtype, little, shape}) {
  const view = new DataView(bytes), size = SIZES[dtype], texts = [];
  const part = dtype === "complex64" ? "float32" : dtype === "complex128" ? "float64" : dtype;
  const step = part === dtype ? size : size / 2;
  const at = (place) => sayNumber(READERS[part](view, place, little));
  for (let place = 0; place + size <= view.byteLength; place += size)
    texts.push(part === dtype ? at(place) : `[${at(place)},${at(place + step)}]`);
  return nest(texts, shape);
}

/* The parts of a .npy file: format 1, 2 or 3, a dictionary of Python, then the elements. */
function readNpy(name, buffer) {
  const view = new DataView(buffer);
  const long = view.getUint8(6) > 1;
  const first = long ? 12 : 10;
  const size = long ? view.getUint32(8, true) : view.getUint16(8, true);
  const head = new TextDecoder().decode(new Uint8Array(buffer, first, size));
  const code = /'descr':\s*'([<>|=]?)(\w+)'/.exec(head);
  const shape = /'shape':\s*\(([\d,\s]*)\)/.exec(head);
  const columns = /'fortran_order':\s*True/.test(head);
  if (code === null || shape === null || !(code[2] in CODES))
    throw new Problem("problem.npy", {name, type: code?.[2] ?? "?"});
  const dimensions = shape[1].split(",").filter((text) => text.trim() !== "").map(Number);
  if (columns && dimensions.length > 1)
    throw new Problem("problem.columns", {name});
  const dtype = CODES[code[2]];
  return {
    name,
    dtype,
    little: code[1] !== ">",
    shape: dimensions.length ? dimensions : [1],
    bytes: buffer.slice(first + size),
    skip: first + size,
    npy: true,
  };
}

function isNpy(buffer) {
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
  const start = new Uint8Array(buffer, 0, Math.min(10, buffer.byteLength));
  return start.length === 10 && magic.every((byte, i) => start[i] === byte);
}

/* Numbers in text have no zero bytes and no control characters but blanks. */
function isText(buffer) {
  return new Uint8Array(buffer, 0, Math.min(4096, buffer.byteLength))
      .every((byte) => byte >= 0x20 || (byte >= 9 && byte <= 13));
}

/* What a file holds: {text}, or {name, bytes, ...} whose dtype is undefined when it must be
 * chosen. */
export async function readFile(file) {
  const buffer = await file.arrayBuffer();
  if (isNpy(buffer))
    return readNpy(file.name, buffer);
  if (isText(buffer))
    return {text: new TextDecoder().decode(buffer)};
  return {name: file.name, bytes: buffer, little: true, skip: 0, npy: false};
}

/* A file whose type is known: by itself, or chosen. */
export function withDtype(operand, dtype) {
  if (operand.npy)
    return operand;
  const count = operand.bytes.byteLength / SIZES[dtype];
  if (!Number.isInteger(count))
    throw new Problem("problem.whole", {name: operand.name, dtype, size: SIZES[dtype]});
  return {...operand, dtype, shape: [count]};
}

/* JSON as it came, or numbers in lines. */
function textOf(text) {
  const trimmed = text.trim();
  if (!trimmed.startsWith("["))
    return `[${readNumbers(trimmed).join(",")}]`;
  return trimmed;
}

export function jsonOf(operand) {
  return operand.text !== undefined ? textOf(operand.text) : fileText(operand);
}

/* Bytes of both operands and the query that describes them; null when JSON must carry them. */
export function rawOf(a, b) {
  if (a.text !== undefined || b.text !== undefined)
    return null;
  if (a.dtype !== b.dtype || a.little !== b.little)
    return a.dtype === b.dtype ? null : refuseMix(a, b);
  const code = Object.keys(CODES).find((key) => CODES[key] === a.dtype);
  const query = {dtype: a.little ? a.dtype : `>${code}`};
  if (a.shape.length > 1 || b.shape.length > 1)
    Object.assign(query, {shape_a: a.shape.join(), shape_b: b.shape.join()});
  else if (a.shape[0] !== b.shape[0])
    throw new Problem("problem.lengths", {a: a.shape[0], b: b.shape[0]});
  return {body: new Blob([a.bytes, b.bytes]), query};
}

function refuseMix(a, b) {
  throw new Problem("problem.types", {a: a.dtype, b: b.dtype});
}

/* How a shell writes the elements of a file. */
export function catOf(operand) {
  const name = quoted(operand.name);
  return operand.skip ? `tail -c +${operand.skip + 1} ${name}` : `cat ${name}`;
}

export function quoted(words) {
  return /^[\w./:=-]+$/.test(words) ? words : `'${words.replaceAll("'", "'\\''")}'`;
}
