/* audit.js - what a reader with other eyes would miss: run in the page, gives lists of findings. */
({
  /* Texts whose contrast with what lies behind them is below WCAG AA. */
  contrast() {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const parse = (color) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return {r, g, b, a: a / 255};
    };
    const over = (top, below) => ({
      r: top.r * top.a + below.r * (1 - top.a),
      g: top.g * top.a + below.g * (1 - top.a),
      b: top.b * top.a + below.b * (1 - top.a),
      a: 1,
    });
    const behind = (element) => {
      if (element === null)
        return {r: 255, g: 255, b: 255, a: 1};
      const own = parse(getComputedStyle(element).backgroundColor);
      return own.a === 1 ? own : over(own, behind(element.parentElement));
    };
    const light = ({r, g, b}) => {
      const [x, y, z] = [
        r, g, b
      ].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const found = new Map();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const element = node.parentElement;
      if (node.data.trim() === "" || !element.checkVisibility({visibilityProperty: true}))
        continue;
      const style = getComputedStyle(element), back = behind(element);
      const front = over(
          parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color), back);
      const [more, less] = [light(front), light(back)].sort((a, b) => b - a);
      const ratio = (more + 0.05) / (less + 0.05);
      const px = parseFloat(style.fontSize);
      const isLarge = px >= 24 || (px >= 18.66 && style.fontWeight >= 700);
      if (ratio < (isLarge ? 3 : 4.5))
        found.set(
            `${element.tagName}.${element.getAttribute("class")}: ${node.data.trim().slice(0, 30)}`,
            ratio.toFixed(2));
    }
    return [...found];
  },
  /* What sticks out of the page at the side, but for what can be scrolled by itself. */
  overflow() {
    const room = document.documentElement.clientWidth;
    const isOut = (element) => element.checkVisibility() &&
        element.closest(".scroll, .skip, .file, .listing") === null &&
        element.getBoundingClientRect().right > room + 1;
    const name = (element) => `${element.tagName}.${element.getAttribute("class")}`;
    return [...document.querySelectorAll("body *")].filter(isOut).map(name);
  },
  /* Keys of texts/ that stand on the page instead of their words. */
  keys() {
    return [...document.body.innerText.matchAll(/\b[a-z]+\.[a-z_]+\.?[a-z_]*\b/g)]
        .map(([word]) => word)
        .filter((word) => document.querySelector(
                              `[data-text="${word}"], [data-label="${word}"]`) !== null);
  },
})
