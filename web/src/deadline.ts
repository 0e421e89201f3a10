// The deadline report: cost of a step, wake-up latency, and missed deadlines.

import { Histogram, Late, Report, Times } from "./messages";
import { by, css, make } from "./dom";

const us = (x: unknown) => (typeof x !== "number" ? "–" : x < 1e-3 ? `${(1e6 * x).toPrecision(3)} µs` : `${(1e3 * x).toPrecision(3)} ms`);

function table(into: HTMLElement, head: string[], rows: string[][]): void {
  into.replaceChildren(...[head, ...rows].map((cells, k) => {
    const row = make("tr");
    row.append(...cells.map((text, i) => make(k && i ? "td" : "th", "", text)));
    return row;
  }));
}

// Newest first.
const fate = ({ time, late, cost, skipped }: Late): string[] => [
  `${time.toFixed(2)} s`, us(late), us(cost), skipped ? `skipped ${skipped}` : "caught up",
];

export function deadline(r: Report, rate: number): void {
  const predicted = typeof r.predicted === "number" ? r.predicted : r.predicted?.mean;
  const row = (name: string, t?: Times) => [name, ...[t?.min, t?.mean, t?.p99, t?.max].map(us)];
  table(by("deadline-table"), ["", "min", "mean", "p99", "max"], [row("step", r.measured), row("wake-up", r.jitter)]);
  const late = [...(r.log ?? [])].reverse();
  by("late").hidden = !late.length;
  table(by("late-table"), ["at", "woke late", "took", "then"], late.map(fate));
  const factor = r.real_time_factor;
  by("facts").replaceChildren(...([
    ["predicted", us(predicted)],
    ["budget", us(1 / rate)],
    ["load", r.measured ? `${(100 * r.measured.mean * rate).toPrecision(2)} %` : "–"],
    ["overruns", String(r.overruns ?? "–")],
    ["skipped", String(r.skipped ?? "–")],
    ["real time", factor == null ? "–" : `${factor.toFixed(3)} ×`],
  ] as const).map(([name, value]) => {
    const fact = make("div", "fact");
    fact.append(make("b", "", value), make("span", "", name));
    return fact;
  }));
  draw(by<HTMLCanvasElement>("histogram-step"), r.histogram ?? r.measured?.histogram, "#f08c00", predicted);
  draw(by<HTMLCanvasElement>("histogram-jitter"), r.jitter?.histogram, "#1971c2");
  by("deadline-notes").replaceChildren(...(r.notes ?? []).map((text) => make("li", "", text)));
}

function draw(canvas: HTMLCanvasElement, h: Histogram | undefined, colour: string, mark?: number): void {
  const x = canvas.clientWidth, y = canvas.clientHeight, scale = Math.min(2, devicePixelRatio);
  if (!x) return;
  canvas.width = x * scale; canvas.height = y * scale;
  const c = canvas.getContext("2d")!;
  c.scale(scale, scale);
  c.font = "10px system-ui"; c.fillStyle = css("--dim");
  if (!h || !h.counts.some((n) => n > 0)) { c.fillText("nothing yet", 4, y / 2); return; }
  // Logarithmic counts, so that rare late periods are visible.
  const first = h.counts.findIndex((n) => n > 0), last = h.counts.length - 1 - [...h.counts].reverse().findIndex((n) => n > 0);
  const from = Math.max(0, first - 1), to = Math.min(h.counts.length - 1, last + 1), n = to - from + 1, wide = x / n;
  const most = Math.log1p(Math.max(...h.counts)), room = y - 14;
  for (let i = from; i <= to; i++) {
    const size = (room * Math.log1p(h.counts[i]!)) / most;
    c.fillStyle = colour;
    c.beginPath(); c.roundRect((i - from) * wide + 1, room - size, Math.max(1, wide - 2), size, [2, 2, 0, 0]); c.fill();
  }
  c.fillStyle = css("--dim");
  const step = Math.max(1, Math.ceil(n / 4));
  for (let i = from; i <= to; i += step) c.fillText(us(h.edges[i]), (i - from) * wide, y - 2);
  if (mark) {
    const k = h.edges.findIndex((e) => e > mark);
    if (k > from && k <= to + 1) { c.strokeStyle = css("--ink"); c.setLineDash([3, 2]); c.beginPath(); c.moveTo((k - from - 0.5) * wide, 0); c.lineTo((k - from - 0.5) * wide, room); c.stroke(); }
  }
}
