/* text.js - every visible word: texts/LANGUAGE.json, shown again when the language changes.
 *
 * say(), label() and hint() put a text into an element and leave its key there, so that choose()
 * can put the same text in another language. Values fill {placeholders}: a number is written as
 * the language writes numbers, a function is asked when the text is put, anything else stays as it
 * is.
 */
const LANGUAGES = {
  en: "English",
  ru: "Русский",
  uk: "Українська"
};
const REMEMBERED = "dotd-language";
const KINDS = {
  text: (element, words) => {
    element.textContent = words;
  },
  label: (element, words) => element.setAttribute("aria-label", words),
  hint: (element, words) => element.setAttribute("placeholder", words),
};

let texts = {};
let language = "en";
const given = new WeakMap();  // element -> {kind: values}

export function has(key) {
  return key in texts;
}

export function t(key, values = {}) {
  if (!has(key))
    throw new Error(`no text ${key}`);
  return texts[key].replace(/\{(\w+)\}/g, (_, name) => {
    const value = typeof values[name] === "function" ? values[name]() : values[name];
    return typeof value === "number" ? grouped(value) : value;
  });
}

export function grouped(number) {
  return new Intl.NumberFormat(language, {maximumFractionDigits: 20}).format(number);
}

function put(kind, element, key, values) {
  element.dataset[kind] = key;
  if (values !== undefined)
    given.set(element, {...given.get(element), [kind]: values});
  KINDS[kind](element, t(key, values ?? given.get(element)?.[kind]));
}

export const say = (element, key, values = {}) => put("text", element, key, values);
export const label = (element, key, values = {}) => put("label", element, key, values);
export const hint = (element, key, values = {}) => put("hint", element, key, values);

function putAll() {
  for (const kind of Object.keys(KINDS))
    for (const element of document.querySelectorAll(`[data-${kind}]`))
      put(kind, element, element.dataset[kind]);
}

/* A private window may keep nothing; then the choice holds until the page is left. */
function remember(code) {
  try {
    localStorage.setItem(REMEMBERED, code);
  } catch { /* see above */
  }
}

function remembered() {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

async function choose(code) {
  texts = await (await fetch(`console/texts/${code}.json`)).json();
  language = code;
  document.documentElement.lang = code;
  putAll();
  for (const button of document.querySelectorAll("#languages button"))
    button.setAttribute("aria-pressed", String(button.lang === code));
}

/* The language that was chosen last, or English; then buttons for all of them. */
export async function openTexts() {
  const buttons = Object.entries(LANGUAGES).map(([code, name]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.lang = code;
    button.textContent = name;
    button.addEventListener("click", () => {
      remember(code);
      choose(code);
    });
    return button;
  });
  document.getElementById("languages").replaceChildren(...buttons);
  const code = remembered();
  await choose(code in LANGUAGES ? code : "en");
}
