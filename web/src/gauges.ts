// Gauges: numbers with a bar, such as payload, pressures and engine speed; with a warning above a limit.

import { by, make } from "./dom";
import { HALF } from "./earth";
import { Welcome } from "./messages";

export class Gauges {
  private readonly rows: { at: number; scale: number; low: number; high: number; warn: number | null; unit: string; title: string; text: HTMLElement; fill: HTMLElement; row: HTMLElement }[] = [];

  constructor(into: HTMLElement, w: Welcome, offset: number) {
    for (const g of w.gauges) {
      const at = w.names.indexOf(g.column);
      if (at < 0) continue;
      const row = make("div", "gauge"), bar = make("i", "bar"), fill = make("i"), text = make("b", "mono");
      bar.append(fill);
      row.append(make("span", "", g.title), bar, text);
      row.title = `${g.title}, ${g.unit}`;
      into.append(row);
      this.rows.push({ at: offset + at, scale: g.scale, low: g.low, high: g.high, warn: g.warn, unit: g.unit, title: g.title, text, fill, row });
    }
    into.hidden = !this.rows.length;
  }

  show(values: ArrayLike<number>, away = false): void {
    const loud: string[] = away ? [`Here nothing can be dug: the ground ends ${HALF} m from where it started.`] : [];
    for (const g of this.rows) {
      const x = (values[g.at] ?? 0) * g.scale, over = g.warn !== null && x >= g.warn;
      g.text.textContent = `${Math.abs(x) < 10 && g.unit !== "%" ? x.toFixed(2) : Math.round(x)} ${g.unit}`;
      g.fill.style.width = `${100 * Math.min(1, Math.max(0, (x - g.low) / (g.high - g.low)))}%`;
      g.row.classList.toggle("over", over);
      if (over && ["tipping", "slipping"].includes(g.title)) loud.push(x >= 100 ? `It is ${g.title}.` : `It is about to ${g.title === "tipping" ? "tip over" : "slip"}.`);
    }
    by("warning").hidden = !loud.length;
    if (loud.length) by("warning").textContent = loud.join(" ");
  }
}
