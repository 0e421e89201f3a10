// A slider for each lever, for machines without sticks: torques or desired positions. Those with a neutral spring back.

import { Lever } from "./messages";
import { make } from "./dom";

export class Sliders {
  readonly values: number[];
  private readonly inputs: HTMLInputElement[] = [];
  private readonly shown: HTMLElement[] = [];

  constructor(into: HTMLElement, private readonly levers: Lever[], private readonly first: number[]) {
    this.values = [...first];
    into.replaceChildren(...levers.map((lever, i) => {
      const row = make("label", "slider"), input = make("input"), number = make("output");
      Object.assign(input, { type: "range", min: String(lever.low), max: String(lever.high), step: "any", value: String(first[i]) });
      input.dataset.lever = lever.name;
      input.oninput = () => this.set(i, Number(input.value));
      if (lever.neutral !== null) {
        const back = () => { this.set(i, lever.neutral!); input.value = String(lever.neutral); };
        input.onpointerup = input.onpointercancel = input.onkeyup = back;
      }
      input.ondblclick = () => { input.value = String(first[i]); this.set(i, first[i]!); };
      row.append(make("span", "name", lever.label), input, number);
      this.inputs.push(input); this.shown.push(number);
      this.set(i, first[i]!);
      return row;
    }));
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
    const { unit } = this.levers[i]!;
    this.shown[i]!.textContent = unit === "rad" ? `${((x * 180) / Math.PI).toFixed(1)}°` : `${Number(x.toPrecision(3))} ${unit}`;
  }
}
