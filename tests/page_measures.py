"""Layout measurements of any page: overlapping boxes, boxes outside the window, clipped words, and contrast."""

from __future__ import annotations

from typing import Any

# Return the visible box of an element: its box without the parts that scrolling containers hide, or null.
_SEEN = """
const seen = (e) => {
  if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return null;
  let { left, top, right, bottom } = e.getBoundingClientRect();
  for (let a = e.parentElement; a; a = a.parentElement) {
    const style = getComputedStyle(a), box = a.getBoundingClientRect();
    if (style.overflowX !== "visible") { left = Math.max(left, box.left); right = Math.min(right, box.right); }
    if (style.overflowY !== "visible") { top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom); }
  }
  return right - left > 0.5 && bottom - top > 0.5 ? { left, top, right, bottom } : null;
};
const named = (e) => {
  const kind = e.className?.trim?.() ? "." + e.className.trim().replaceAll(" ", ".") : "";
  return (e.id ? "#" + e.id : e.tagName.toLowerCase() + kind) + " " + (e.textContent ?? "").trim().slice(0, 24);
};
const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
"""

# Blocks, words and controls must not overlap, and nothing may lie outside the window.
_BOXES = (
    """(selector) => {"""
    + _SEEN
    + """
const slack = 0.75, problems = [];
const over = (a, b) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > slack &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > slack;
const check = (all, what) => {
  const boxes = all.map((e) => [e, seen(e)]).filter(([, box]) => box);
  boxes.forEach(([e, box], i) => {
    if (box.left < -slack || box.top < -slack || box.right > innerWidth + slack || box.bottom > innerHeight + slack)
      problems.push(`${named(e)} leaves the window: ${JSON.stringify(box)}`);
    for (const [f, other] of boxes.slice(i + 1))
      if (!e.contains(f) && !f.contains(e) && over(box, other)) problems.push(`${what} ${named(e)} on ${named(f)}`);
  });
  return boxes.length;
};
const blocks = check([...document.querySelectorAll(selector)], "block");
const leaves = [...document.body.querySelectorAll("*")].filter(
  (e) => !e.closest("dialog, option, script, noscript") && (own(e) || e.matches("input, canvas.histogram, meter")),
);
const words = check(leaves, "word");
for (const e of leaves) {
  const style = getComputedStyle(e);
  if (seen(e) && style.overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1) problems.push(`${named(e)} is cut`);
}
return { problems, blocks, words };
}"""
)

# The lowest contrast (WCAG 2) of every word, over black and over white where the background is transparent.
_CONTRAST = (
    """() => {"""
    + _SEEN
    + """
const canvas = document.createElement("canvas"), c = canvas.getContext("2d", { willReadFrequently: true });
canvas.width = canvas.height = 1;
const known = new Map();
const colour = (text) => {
  if (!known.has(text)) {
    c.clearRect(0, 0, 1, 1); c.fillStyle = text; c.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = c.getImageData(0, 0, 1, 1).data;
    known.set(text, [r, g, b, a / 255]);
  }
  return known.get(text);
};
const on = ([r, g, b, a], under) => [r, g, b].map((x, i) => a * x + (1 - a) * under[i]);
const linear = (x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
const light = (rgb) => rgb.reduce((sum, x, i) => sum + linear(x / 255) * [0.2126, 0.7152, 0.0722][i], 0);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const found = [];
for (const e of document.body.querySelectorAll("*")) {
  if (!own(e) && !e.matches("select")) continue;
  if (e.closest("dialog:not([open]), option, script, noscript, :disabled") || !seen(e)) continue;
  const chain = [];
  for (let a = e; a; a = a.parentElement) chain.unshift(a);
  let least = Infinity;
  for (const backdrop of [[0, 0, 0], [255, 255, 255]]) {
    let under = backdrop, faint = 1;
    for (const a of chain) {
      const style = getComputedStyle(a), [r, g, b, alpha] = colour(style.backgroundColor);
      faint *= Number(style.opacity);
      // The root's colour lies behind everything: what is before the picture is seen on the picture.
      const behind = a === document.body || a === document.documentElement;
      if (!behind || !document.querySelector("canvas#view")) under = on([r, g, b, alpha * faint], under);
    }
    const [r, g, b, alpha] = colour(getComputedStyle(e).color);
    least = Math.min(least, ratio(on([r, g, b, alpha * faint], under), under));
  }
  found.push([named(e), least]);
}
return found;
}"""
)


def boxes(page: Any, selector: str) -> dict[str, Any]:
    """Return the faults and the number of measured elements."""
    found: dict[str, Any] = page.evaluate(_BOXES, selector)
    return found


def contrasts(page: Any) -> list[tuple[str, float]]:
    return [(name, ratio) for name, ratio in page.evaluate(_CONTRAST)]
