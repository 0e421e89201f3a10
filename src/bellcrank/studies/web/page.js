"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const short = (x) => (x === null ? "none" : typeof x === "number" ? String(Number(x.toPrecision(5))) : x);

function put(svg, tag, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  svg.append(e);
  return e;
}

function options(select, names) {
  for (const n of names) select.append(new Option(n, n));
}

function span(values) {
  const low = Math.min(...values), high = Math.max(...values);
  return high > low ? [low, high] : [low - 1, high + 1];
}

function axes(svg, w, h, [x0, x1], [y0, y1]) {
  const left = 64, right = 14, top = 12, bottom = 30;
  const X = (x) => left + ((x - x0) / (x1 - x0)) * (w - left - right);
  const Y = (y) => h - bottom - ((y - y0) / (y1 - y0)) * (h - top - bottom);
  put(svg, "path", { class: "axis", d: `M${left} ${top}V${h - bottom}H${w - right}` });
  for (const k of [0, 0.5, 1]) {
    const x = x0 + k * (x1 - x0), y = y0 + k * (y1 - y0);
    put(svg, "text", { x: X(x), y: h - 10, "text-anchor": k === 0 ? "start" : k === 1 ? "end" : "middle" }, short(x));
    put(svg, "text", { x: left - 6, y: Y(y) + 4, "text-anchor": "end" }, short(y));
  }
  return [X, Y];
}

function distribution(r) {
  const svg = $("bins");
  svg.replaceChildren();
  if (!r.bins.length) return;
  const [X, Y] = axes(svg, 520, 260, [r.edges[0], r.edges[r.edges.length - 1]], [0, Math.max(...r.bins)]);
  r.bins.forEach((n, i) => put(svg, "rect", { class: "bar", x: X(r.edges[i]), y: Y(n), width: Math.max(1, X(r.edges[i + 1]) - X(r.edges[i]) - 1), height: Y(0) - Y(n) }));
}

function shares(r) {
  const svg = $("shares");
  svg.replaceChildren();
  if (!r.indices.length || r.indices.every((i) => i.s === null)) {
    put(svg, "text", { x: 20, y: 40 }, "these points give no sensitivities, or nothing varies");
    return;
  }
  const row = Math.min(40, 240 / r.indices.length), X = (s) => 170 + 330 * Math.max(-0.1, Math.min(1.1, s));
  put(svg, "path", { class: "axis", d: "M170 4V250M500 4V250" });
  r.indices.forEach((s, k) => {
    const y = 6 + k * row, bar = row * 0.38;
    put(svg, "text", { x: 162, y: y + row / 2, "text-anchor": "end" }, s.name.length > 24 ? s.name.slice(0, 23) + "\u2026" : s.name);
    const one = (v, e, at, kind) => {
      if (v === null) return;
      put(svg, "rect", { class: kind, x: Math.min(X(0), X(v)), y: at, width: Math.abs(X(v) - X(0)), height: bar });
      put(svg, "path", { class: "error", d: `M${X(v - e)} ${at + bar / 2}H${X(v + e)}` });
    };
    one(s.s, s.se, y, "bar");
    one(s.t, s.te, y + bar, "light");
  });
}

const numeric = (values) => values.every((v) => typeof v === "number" || v === null);

function scatter() {
  const svg = $("scatter"), name = $("across").value, result = $("result").value;
  svg.replaceChildren();
  const raw = Object.hasOwn(data.varied, name) ? data.varied[name] : data.numbers[name], levels = [...new Set(raw)];
  const xs = numeric(raw) ? raw : raw.map((v) => levels.indexOf(v)), ys = data.numbers[result];
  const good = xs.map((x, i) => [x, ys[i], i]).filter(([x, y]) => x !== null && y !== null);
  if (!good.length) return;
  const [X, Y] = axes(svg, 520, 380, span(good.map((g) => g[0])), span(good.map((g) => g[1])));
  for (const [x, y, i] of good) {
    const dot = put(svg, "circle", { class: data.stops[i] === "end" ? "dot" : "dot failed", cx: X(x), cy: Y(y), r: 4 });
    dot.addEventListener("click", () => { for (const d of svg.querySelectorAll(".chosen")) d.classList.remove("chosen"); dot.classList.add("chosen"); show(i); });
  }
}

const films = data.replays.map((r) => {
  const raw = atob(r.data), bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  return { ...r, places: new Int16Array(bytes.buffer) };
});
let playing = 0;

function show(i) {
  const run = data.runs[i];
  $("which").textContent = `run ${run}: ${data.stops[i]}`;
  const lines = [...Object.entries(data.varied), ...Object.entries(data.numbers)].map(([n, v]) => `${n} = ${short(v[i])}`);
  if (data.messages[i]) lines.push(data.messages[i]);
  $("run").textContent = lines.join("\n");
  cancelAnimationFrame(playing);
  const film = films.find((f) => f.runs.includes(run));
  const stage = $("stage"), pen = stage.getContext("2d");
  pen.clearRect(0, 0, stage.width, stage.height);
  if (film) play(film, film.runs.indexOf(run), stage, pen);
}

function play(film, k, stage, pen) {
  const [, frames, bodies] = film.shape;
  const at = (f, b) => [0, 1, 2].map((c) => { const v = film.places[((k * frames + f) * bodies + b) * 3 + c]; return v === -32768 ? NaN : film.low + (v + 32500) * film.scale; });
  const flat = ([x, y, z]) => [x * 0.87 - y * 0.5, z + (x * 0.5 + y * 0.87) * 0.3];
  const all = [[0, 0]];
  for (let f = 0; f < frames; f++) for (let b = 0; b < bodies; b++) { const p = flat(at(f, b)); if (!p.some(isNaN)) all.push(p); }
  const [x0, x1] = span(all.map((p) => p[0])), [y0, y1] = span(all.map((p) => p[1]));
  const scale = 0.86 * Math.min(stage.width / (x1 - x0), stage.height / (y1 - y0));
  const place = ([x, y]) => [stage.width / 2 + (x - (x0 + x1) / 2) * scale, stage.height / 2 - (y - (y0 + y1) / 2) * scale];
  const ink = getComputedStyle(document.body).color, began = performance.now();
  const length = Math.max(1500, 1000 * (film.t[film.t.length - 1] || 1));
  const draw = (now) => {
    const f = Math.min(frames - 1, Math.floor((((now - began) % length) / length) * frames));
    pen.clearRect(0, 0, stage.width, stage.height);
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 3;
    for (let b = 0; b < bodies; b++) {
      const p = place(flat(at(f, b))), q = place(film.bones[b] < 0 ? flat([0, 0, 0]) : flat(at(f, film.bones[b])));
      pen.beginPath(); pen.moveTo(...q); pen.lineTo(...p); pen.stroke();
      pen.beginPath(); pen.arc(...p, 5, 0, 7); pen.fill();
    }
    pen.fillText(`${short(film.t[f])} s`, 10, stage.height - 10);
    playing = requestAnimationFrame(draw);
  };
  playing = requestAnimationFrame(draw);
}

function chosen() {
  const r = data.results.find((x) => x.name === $("result").value);
  if (!r) return;
  $("numbers").textContent = r.bins.length ? `mean ${short(r.mean)}, deviation ${short(r.deviation)}, 5 % ${short(r.cuts[0])}, median ${short(r.cuts[1])}, 95 % ${short(r.cuts[2])}${r.missing ? `, ${r.missing} without a number` : ""}` : "no run gave a number";
  distribution(r);
  shares(r);
  scatter();
}

$("title").textContent = `Study of ${data.title}`;
for (const [k, v] of Object.entries(data.facts)) {
  const dt = document.createElement("dt"), dd = document.createElement("dd");
  dt.textContent = k;
  dd.textContent = v;
  $("facts").append(dt, dd);
}
const failed = Object.entries(data.failures).map(([why, n]) => `${n} ${why}`).join(", ");
$("failures").textContent = (failed ? `ended early: ${failed}. ` : "") + (data.left_out ? `${data.left_out} more results are in the files.` : "");
options($("result"), data.results.map((r) => r.name));
options($("across"), [...Object.keys(data.varied), ...data.results.map((r) => r.name)]);
$("result").addEventListener("change", chosen);
$("across").addEventListener("change", scatter);
chosen();
