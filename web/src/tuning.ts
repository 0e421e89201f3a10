// Parameters that may be changed during a drive: soil, payload, gravity, gains; and the task with its score.

import { by, make } from "./dom";
import { Message, Settings, Welcome } from "./messages";

export class Tuning {
  private readonly inputs = new Map<string, { input: HTMLInputElement; text: HTMLElement; unit: string }>();

  constructor(w: Welcome, private readonly send: (m: Message) => void) {
    const into = by("tunes");
    by("tuning").hidden = !w.tunes.length && !w.soils.length;
    const soil = by<HTMLSelectElement>("soil"), task = by<HTMLSelectElement>("task");
    by("soil-field").hidden = !w.soils.length;
    soil.replaceChildren(...w.soils.map((s) => new Option(s, s)));
    soil.onchange = () => this.send({ type: "soil", name: soil.value });
    task.hidden = !w.tasks.length;
    task.replaceChildren(new Option("no job", ""), ...w.tasks.map((t) => new Option({ trench: "dig a trench", truck: "load a truck" }[t] ?? t, t)));
    task.onchange = () => this.send({ type: "task", name: task.value });
    for (const t of w.tunes) {
      const row = make("label", "field tune", t.label), input = make("input"), text = make("output", "mono");
      Object.assign(input, { type: "range", min: String(t.low), max: String(t.high), step: "any", value: String(t.first) });
      input.dataset.tune = t.name;
      const turned = () => { this.send({ type: "tune", name: t.name, value: Number(input.value) }); this.read(t.name, Number(input.value)); };
      input.oninput = turned;
      input.ondblclick = () => { input.value = String(t.first); turned(); };
      row.title = "double click: as the model says";
      row.append(input, text);
      into.append(row);
      this.inputs.set(t.name, { input, text, unit: t.unit });
    }
  }

  show(s: Settings, driving: boolean): void {
    const soil = by<HTMLSelectElement>("soil"), task = by<HTMLSelectElement>("task");
    soil.value = s.soil;
    task.value = s.task.name;
    soil.disabled = task.disabled = !driving;
    by("score").hidden = !s.task.name;
    by("score-text").textContent = `${s.task.score}`;
    for (const [name, { input }] of this.inputs) {
      input.disabled = !driving;
      if (document.activeElement !== input) input.value = String(s.tuned[name] ?? 0);
      this.read(name, Number(input.value));
    }
  }

  private read(name: string, x: number): void {
    const { text, unit } = this.inputs.get(name)!;
    text.textContent = `${Number(x.toPrecision(3))} ${unit}`;
  }
}
