// Two sticks on the screen: they can be moved by touch, show the input of keys and gamepads, and label the keys.

import { Axes, Axis } from "./messages";
import { Four } from "./hands";
import { make } from "./dom";

export type Labels = Record<string, [string, string, string]>; // by lever: its name, and its effect below and above zero
type Side = "up" | "down" | "left" | "right";
// By axis and direction.
export const KEYS: Record<string, string> = {
  "left.x -1": "A", "left.x 1": "D", "left.y 1": "W", "left.y -1": "S", "right.x -1": "←", "right.x 1": "→", "right.y 1": "↑", "right.y -1": "↓",
};

export class Stick {
  private readonly knob = make("div", "knob");
  private readonly words = {} as Record<Side, HTMLElement>;
  private readonly pad = make("div", "pad");

  constructor(into: HTMLElement, private readonly side: "left" | "right", fingers: Four) {
    this.pad.append(make("div", "cross"), this.knob);
    const x = `${side}.x` as Axis, y = `${side}.y` as Axis;
    for (const [at, key] of [["up", `${y} 1`], ["down", `${y} -1`], ["left", `${x} -1`], ["right", `${x} 1`]] as [Side, string][]) {
      const place = make("span", `word ${at}`);
      this.words[at] = make("span", "what");
      place.append(make("kbd", "", KEYS[key]), this.words[at]);
      this.pad.append(place);
    }
    into.replaceChildren(this.pad);
    const move = (e: PointerEvent) => {
      const box = this.pad.getBoundingClientRect(), r = 0.3 * box.width;
      let dx = (e.clientX - box.left - box.width / 2) / r, dy = (box.top + box.height / 2 - e.clientY) / r;
      const size = Math.hypot(dx, dy);
      if (size > 1) { dx /= size; dy /= size; }
      fingers[x] = dx; fingers[y] = dy;
    };
    this.pad.onpointerdown = (e) => { this.pad.setPointerCapture(e.pointerId); this.pad.classList.add("held"); move(e); };
    this.pad.onpointermove = (e) => { if (this.pad.hasPointerCapture(e.pointerId)) move(e); };
    this.pad.onpointerup = this.pad.onpointercancel = () => { fingers[x] = fingers[y] = 0; this.pad.classList.remove("held"); };
  }

  label(axes: Axes, words: Labels): void {
    const say = (axis: Axis, plus: HTMLElement, minus: HTMLElement) => {
      const [lever, sign] = axes[axis], [name, below, above] = words[lever] ?? [lever, "-", "+"];
      plus.textContent = `${name} ${sign > 0 ? above : below}`;
      minus.textContent = `${name} ${sign > 0 ? below : above}`;
    };
    say(`${this.side}.x` as Axis, this.words.right, this.words.left);
    say(`${this.side}.y` as Axis, this.words.up, this.words.down);
  }

  show(now: Four, live: boolean): void {
    const x = now[`${this.side}.x` as Axis], y = now[`${this.side}.y` as Axis];
    this.knob.style.transform = `translate(${(26 * x).toFixed(1)}cqw, ${(-26 * y).toFixed(1)}cqw)`;
    this.knob.classList.toggle("live", live && (x !== 0 || y !== 0));
  }
}
