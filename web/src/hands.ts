// Input devices that move the sticks: keys, gamepads, touch. Each gives four axes; the largest value counts.

import { Axis } from "./messages";
import { Pads } from "./pads";

export const AXES: Axis[] = ["left.x", "left.y", "right.x", "right.y"];
export type Four = Record<Axis, number>;
const KEYS: Record<string, [Axis, number]> = {
  KeyA: ["left.x", -1], KeyD: ["left.x", 1], KeyW: ["left.y", 1], KeyS: ["left.y", -1],
  ArrowLeft: ["right.x", -1], ArrowRight: ["right.x", 1], ArrowUp: ["right.y", 1], ArrowDown: ["right.y", -1],
  KeyJ: ["right.x", -1], KeyL: ["right.x", 1], KeyI: ["right.y", 1], KeyK: ["right.y", -1],
};
const RAMP = 8; // 1/s: a key moves the stick within an eighth of a second

export const none = (): Four => ({ "left.x": 0, "left.y": 0, "right.x": 0, "right.y": 0 });

export class Hands {
  readonly fingers = none();
  readonly pads = new Pads();
  private readonly down = new Set<string>();
  private readonly keys = none();
  private last = performance.now();

  constructor() {
    addEventListener("keydown", (e) => {
      if (!(e.code in KEYS) || e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return;
      this.down.add(e.code);
      e.preventDefault();
    });
    addEventListener("keyup", (e) => this.down.delete(e.code));
  }

  // The page lost the focus: release everything.
  drop(): void {
    this.down.clear();
    for (const a of AXES) this.fingers[a] = this.keys[a] = 0;
  }

  now(): Four {
    const time = performance.now(), step = Math.min(0.1, (time - this.last) / 1000) * RAMP, wanted = none(), out = none();
    this.last = time;
    for (const key of this.down) wanted[KEYS[key]![0]] += KEYS[key]![1];
    const pad = this.pads.now();
    for (const a of AXES) {
      const w = Math.max(-1, Math.min(1, wanted[a])), k = this.keys[a];
      this.keys[a] = w === 0 ? 0 : k + Math.max(-step, Math.min(step, w - k));
      out[a] = [this.keys[a], pad[a], this.fingers[a]].reduce((p, x) => (Math.abs(x) > Math.abs(p) ? x : p));
    }
    return out;
  }
}

export function typing(target: EventTarget | null): boolean {
  const e = target as HTMLElement | null;
  return e?.tagName === "SELECT" || (e?.tagName === "INPUT" && (e as HTMLInputElement).type !== "range") || e?.tagName === "TEXTAREA";
}
