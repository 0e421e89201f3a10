// Live plots: the last seconds, drawn a dozen times a second; in a replay the whole run, with a line at the present time.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { History } from "./history";
import { Welcome } from "./messages";
import { css, dark, make } from "./dom";

// On white, and on black.
const COLOURS = ["#e8590c #ff8f50", "#1971c2 #6cb4ff", "#2f9e44 #69db7c", "#9c36b5 #e08cf5", "#b36a00 #ffc24d", "#0c8599 #3bc9db", "#c2255c #ff8fb4", "#5f3dc4 #b197fc", "#5c940d #a9e34b", "#495057 #ced4da"];
export const SPAN = 12; // s
const LEAST = 0.02; // minimum range of the y axis, in the displayed unit

export interface Table { t: Float64Array; columns: Float32Array[] }

export class Plots {
  private readonly plots: { u: uPlot; columns: number[]; scale: number; el: HTMLElement }[] = [];
  private cursor: number | null = null;
  zoom: [number, number] | null = null; // s, zoomed time span; a double click ends it
  private newest: [Table, [number, number]] | null = null;

  constructor(private readonly into: HTMLElement, w: Welcome) {
    into.replaceChildren();
    for (const p of w.plots) {
      const found = p.columns.map((name) => w.names.indexOf(name)), el = make("section", "plot");
      const columns = found.filter((k) => k >= 0), names = p.columns.filter((_, i) => found[i]! >= 0);
      if (!columns.length) continue;
      const head = make("h3", "", p.title), legend = make("div", "legend"), items: HTMLElement[] = [], labels = names.map((n) => short(n, names));
      head.append(make("span", "unit", p.unit));
      names.slice(0, 10).forEach((name, i) => {
        const item = make("button", "", short(name, names));
        item.type = "button";
        item.title = "shown or not";
        item.onclick = () => { item.classList.toggle("off"); u.setSeries(i + 1, { show: !item.classList.contains("off") }); };
        items.push(item);
        item.style.setProperty("--c", `light-dark(${COLOURS[i % COLOURS.length]!.replace(" ", ", ")})`);
        legend.append(item);
      });
      el.append(head, legend);
      into.append(el);
      const u = new uPlot({
        width: 280, height: 112, pxAlign: false, legend: { show: false }, cursor: { show: true, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
        scales: { x: { time: false }, y: { range: (_u, lo, hi) => (hi - lo > 1e-9 ? [lo - 0.06 * (hi - lo), hi + 0.06 * (hi - lo)] : [lo - 1, hi + 1]) } },
        axes: [
          { size: 22, font: "10px system-ui", stroke: () => css("--dim"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false }, values: (_u, v) => v.map((x) => `${x} s`) },
          { size: 42, font: "10px system-ui", stroke: () => css("--dim"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false }, space: 26 },
        ],
        series: [{}, ...columns.map((_, i) => ({ stroke: () => COLOURS[i % COLOURS.length]!.split(" ")[dark()]!, width: 1.6, points: { show: false } }))],
        hooks: {
          draw: [(self) => this.mark(self)],
          // The legend shows the values at the cursor; a selection zooms all plots.
          setCursor: [(self) => items.forEach((item, i) => {
            const k = self.cursor.idx, y = k == null ? null : (self.data[i + 1]![k] as number | undefined);
            item.textContent = y == null || (self.cursor.left ?? -1) < 0 ? labels[i]! : `${labels[i]!} ${Number(y.toPrecision(4))}`;
          })],
          setSelect: [(self) => { if (self.select.width > 4) this.zoom = [self.posToVal(self.select.left, "x"), self.posToVal(self.select.left + self.select.width, "x")]; this.shown(); }],
        },
      }, [[], ...columns.map(() => [])], el);
      el.ondblclick = () => { this.zoom = null; this.shown(); };
      this.plots.push({ u, columns, scale: p.scale, el });
    }
    new ResizeObserver(() => this.plots.forEach(({ u, el }) => u.setSize({ width: el.clientWidth - 4, height: 112 }))).observe(into);
  }

  live(h: History): void {
    this.cursor = null;
    const last = h.t[h.end - 1] ?? 0;
    let from = h.start;
    while (from < h.end && h.t[from]! < last - SPAN) from++;
    this.draw({ t: h.t.subarray(from, h.end), columns: h.columns.map((c) => c.subarray(from, h.end)) }, [Math.max(0, last - SPAN), Math.max(SPAN, last)]);
  }

  replay(table: Table, t: number, fresh: boolean): void {
    this.cursor = t;
    const n = table.t.length;
    if (fresh && n) this.draw(table, [table.t[0]!, Math.max(table.t[n - 1]!, table.t[0]! + 1e-3)]);
    else this.plots.forEach(({ u }) => u.redraw(false));
  }

  private shown(): void { if (this.newest) this.draw(...this.newest); }

  private draw(table: Table, range: [number, number]): void {
    this.newest = [table, range];
    if (this.zoom) range = this.zoom;
    const bounds = this.into.getBoundingClientRect();
    for (const { u, columns, scale, el } of this.plots) {
      const box = el.getBoundingClientRect();
      if (!box.width || box.bottom < bounds.top || box.top > bounds.bottom) continue; // not visible
      u.setData([table.t, ...columns.map((k) => (scale === 1 ? table.columns[k]! : table.columns[k]!.map((x) => x * scale)))] as uPlot.AlignedData, false);
      u.batch(() => { u.setScale("x", { min: range[0], max: range[1] }); });
      this.fit(u);
    }
  }

  // The y axis follows the shown values.
  private fit(u: uPlot): void {
    let lo = Infinity, hi = -Infinity;
    for (const c of u.data.slice(1)) for (const x of c as Iterable<number>) { if (x < lo) lo = x; if (x > hi) hi = x; }
    const room = Math.max(0, (LEAST - (hi - lo)) / 2); // tiny noise is not magnified
    if (lo <= hi) u.setScale("y", { min: lo - room, max: hi + room });
  }

  private mark(u: uPlot): void {
    if (this.cursor === null) return;
    const x = u.valToPos(this.cursor, "x", true), { ctx } = u;
    ctx.save();
    ctx.strokeStyle = css("--ink"); ctx.lineWidth = devicePixelRatio;
    ctx.beginPath(); ctx.moveTo(x, u.bbox.top); ctx.lineTo(x, u.bbox.top + u.bbox.height); ctx.stroke();
    ctx.restore();
  }
}

// "boom.q" is shortened to "boom" if all names end in ".q".
function short(name: string, all: string[]): string {
  const tail = name.slice(name.lastIndexOf("."));
  return all.every((n) => n.endsWith(tail)) && name.includes(".") ? name.slice(0, -tail.length) : name;
}
