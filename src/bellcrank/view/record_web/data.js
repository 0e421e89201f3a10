"use strict";
// The record as the page reads it: arrays out of base64, and text for people.

const D = JSON.parse(document.getElementById("record").textContent);
const $ = (id) => document.getElementById(id);

function unpacked(text, Kind) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Kind(bytes.buffer);
}

D.t = unpacked(D.t, Float64Array);
for (const column of D.columns) column.values = unpacked(column.values, Float64Array);
if (D.replay) {
  D.replay.t = unpacked(D.replay.t, Float64Array);
  D.replay.poses = unpacked(D.replay.poses, Float32Array);
  D.replay.bends = unpacked(D.replay.bends, Float32Array);
}
if (D.ground) {
  D.ground.t = unpacked(D.ground.t, Float64Array);
  D.ground.cells = unpacked(D.ground.cells, Uint32Array);
  for (const key of ["first", "heights"]) D.ground[key] = unpacked(D.ground[key], Float32Array);
}
const START = D.t[0], END = D.t[D.t.length - 1];

// The one thing that everything follows: the time that is shown.
const now = { t: START, playing: false, speed: 1, hover: null };

// Index of the last time that is not after t.
function before(times, t) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
}

function number(x, digits = 5) {
  if (!Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return x.toExponential(Math.max(0, digits - 3));
  return String(Number(x.toPrecision(digits)));
}

// Round numbers between two, about so many.
function ticks(from, to, wanted) {
  const rough = (to - from) / Math.max(wanted, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * ([1, 2, 5, 10].find((k) => unit * k >= rough * (1 - 1e-9)) || 10);
  const out = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++) out.push(Number((k * step).toPrecision(12)));
  return out;
}

function made(tag, text, more = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  return Object.assign(node, more);
}

// Canvas pixels for this screen; the context counts in those of the page.
function sized(canvas) {
  const scale = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  canvas.width = Math.max(1, Math.round(w * scale));
  canvas.height = Math.max(1, Math.round(h * scale));
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  return [g, w, h];
}

let ink = {};
function readColours() {
  const css = getComputedStyle(document.documentElement);
  const of = (name) => css.getPropertyValue(`--${name}`).trim();
  ink = Object.fromEntries(["paper", "raised", "rule", "ink", "soft", "critical", "accent"].map((name) => [name, of(name)]));
  ink.lines = Array.from({ length: 10 }, (_, i) => of(`line${i}`));
  ink.bodies = Array.from({ length: 12 }, (_, i) => of(`step${i}`));
  ink.font = getComputedStyle(document.body).fontFamily;
  ink.dark = getComputedStyle(document.documentElement).colorScheme === "dark";
}
