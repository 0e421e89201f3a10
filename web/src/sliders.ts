// A slider for each lever, for machines without sticks: torques or desired positions. Sliders with a neutral value return to it.
// Beside a desired position is the actual one, with a mark under the slider.

import { Lever } from "./messages";
import { make } from "./dom";

export class Sliders {
  readonly values: number[];
  private readonly inputs: HTMLInputElement[] = [];
  private readonly targets: HTMLElement[] = [];
  private readonly actual: { at: number; text: HTMLElement; mark: HTMLElement }[] = [];

  // names: names of the numbers in a state, which begin at `offset`.
  constructor(into: HTMLElement, private readonly levers: Lever[], private readonly first: number[], names: string[], offset: number) {
    this.values = [...first];
    into.replaceChildren(...levers.map((lever, i) => {
      const row = make("label", "slider"), input = make("input"), name = make("span", "name", lever.label);
      const target = make("output", "target"), text = make("output", "actual"), mark = make("i", "mark"), track = make("span", "track");
      Object.assign(input, { type: "range", min: String(lever.low), max: String(lever.high), step: "any", value: String(first[i]) });
      input.dataset.lever = lever.name;
      row.title = name.title = lever.label;
      target.title = "target"; text.title = "actual";
      input.oninput = () => this.set(i, Number(input.value));
      if (lever.neutral !== null) {
        const back = () => { this.set(i, lever.neutral!); input.value = String(lever.neutral); };
        input.onpointerup = input.onpointercancel = input.onkeyup = back;
      }
      input.ondblclick = () => { input.value = String(first[i]); this.set(i, first[i]!); };
      const at = lever.neutral === null ? names.indexOf(`${lever.name}.q`) : -1;
      if (at >= 0) track.append(input, mark);
      else track.append(input);
      row.append(name, target, text, track);
      this.inputs.push(input); this.targets.push(target); this.actual.push({ at: at < 0 ? -1 : offset + at, text, mark });
      this.set(i, first[i]!);
      return row;
    }));
  }

  // Show the actual positions.
  show(state: ArrayLike<number>): void {
    this.actual.forEach(({ at, text, mark }, i) => {
      const x = at < 0 ? undefined : state[at];
      if (x === undefined) return;
      const { low, high, unit } = this.levers[i]!;
      text.textContent = read(x, unit);
      mark.style.left = `${100 * Math.min(1, Math.max(0, (x - low) / (high - low)))}%`;
    });
  }

  // Set all sliders.
  take(values: number[]): void {
    values.forEach((x, i) => { this.inputs[i]!.value = String(x); this.set(i, x); });
  }

  reset(): void {
    this.first.forEach((x, i) => { this.inputs[i]!.value = String(x); this.set(i, x); });
  }

  drop(): void {
    this.levers.forEach((lever, i) => {
      if (lever.neutral !== null) { this.inputs[i]!.value = String(lever.neutral); this.set(i, lever.neutral); }
    });
  }

  private set(i: number, x: number): void {
    this.values[i] = x;
    this.targets[i]!.textContent = read(x, this.levers[i]!.unit);
  }
}

function read(x: number, unit: string): string {
  return unit === "rad" ? `${((x * 180) / Math.PI).toFixed(1)}°` : `${Number(x.toPrecision(3))} ${unit}`;
}
