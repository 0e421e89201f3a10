// Gamepads and joysticks: their axes, rest and end positions, and a dead zone around rest. All that are connected count.

import { combined, Joysticks } from "./assignment";
import { AXES, Four } from "./hands";
import { Axes, Axis } from "./messages";

export interface Wire { index: number; rest: number; end: number } // `end` is the raw value at +1
export interface Calibration { dead: number; wires: Record<Axis, Wire> }

// Standard gamepads: y increases towards the operator, here away from the operator.
const STANDARD: Calibration = {
  dead: 0.08,
  wires: {
    "left.x": { index: 0, rest: 0, end: 1 }, "left.y": { index: 1, rest: 0, end: -1 },
    "right.x": { index: 2, rest: 0, end: 1 }, "right.y": { index: 3, rest: 0, end: -1 },
  },
};

export function shaped(raw: number, wire: Wire, dead: number): number {
  const x = (raw - wire.rest) / (wire.end - wire.rest || 1), size = Math.abs(x);
  return size <= dead ? 0 : Math.sign(x) * Math.min(1, (size - dead) / (1 - dead));
}

export class Pads {
  changed: () => void = () => {};
  pattern: Axes | null = null; // of the mode
  joysticks: Joysticks | undefined; // of the mode

  constructor() {
    for (const event of ["gamepadconnected", "gamepaddisconnected"]) addEventListener(event, () => this.changed());
  }

  all(): Gamepad[] {
    return (navigator.getGamepads?.() ?? []).filter((p): p is Gamepad => Boolean(p?.connected && p.axes.length >= 1));
  }

  first(): Gamepad | null {
    return this.all()[0] ?? null;
  }

  calibration(pad: Gamepad): Calibration {
    try {
      const found = JSON.parse(localStorage.getItem(`pad ${pad.id}`) ?? "null") as Calibration | null;
      if (found && AXES.every((a) => Number.isFinite(found.wires[a]?.rest))) return found;
    } catch { /* somebody else's data: start anew */ }
    return structuredClone(STANDARD);
  }

  keep(pad: Gamepad, c: Calibration): void {
    localStorage.setItem(`pad ${pad.id}`, JSON.stringify(c));
  }

  forget(pad: Gamepad): void {
    localStorage.removeItem(`pad ${pad.id}`);
  }

  // Calibrated values of one device, in the order of AXES.
  values(pad: Gamepad): number[] {
    const { dead, wires } = this.calibration(pad);
    return AXES.map((a) => shaped(pad.axes[wires[a].index] ?? wires[a].rest, wires[a], dead));
  }

  now(): Four {
    const devices = this.all().map((p) => ({ values: this.values(p), count: p.axes.length, standard: p.mapping === "standard" }));
    return combined(devices, this.pattern, this.joysticks);
  }
}
