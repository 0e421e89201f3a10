// Two sticks on the screen: they can be moved by fingers, and they show what keys and gamepads do.

import { Axes, Axis } from "./messages";
import { Four } from "./hands";
import { make } from "./dom";

type Words = Record<string, [string, string, string]>;

export class Stick {
  private readonly knob = make("div", "knob");
  private readonly sides: Record<"up" | "down" | "left" | "right", HTMLElement>;
  private readonly pad = make("div", "pad");

  constructor(into: HTMLElement, private readonly side: "left" | "right", fingers: Four, keys: string[]) {
    const word = (cls: string) => make("span", `word ${cls}`);
    this.sides = { up: word("up"), down: word("down"), left: word("west"), right: word("east") };
    this.pad.append(make("div", "cross"), this.knob, ...Object.values(this.sides));
    const hint = make("div", "keys");
    keys.forEach((k) => hint.append(make("kbd", "", k)));
    into.replaceChildren(this.pad, hint);
    const x = `${side}.x` as Axis, y = `${side}.y` as Axis;
    const move = (e: PointerEvent) => {
      const box = this.pad.getBoundingClientRect(), r = 0.36 * box.width;
      let dx = (e.clientX - box.left - box.width / 2) / r, dy = (box.top + box.height / 2 - e.clientY) / r;
      const size = Math.hypot(dx, dy);
      if (size > 1) { dx /= size; dy /= size; }
      fingers[x] = dx; fingers[y] = dy;
    };
    this.pad.onpointerdown = (e) => { this.pad.setPointerCapture(e.pointerId); this.pad.classList.add("held"); move(e); };
    this.pad.onpointermove = (e) => { if (this.pad.hasPointerCapture(e.pointerId)) move(e); };
    this.pad.onpointerup = this.pad.onpointercancel = () => { fingers[x] = fingers[y] = 0; this.pad.classList.remove("held"); };
  }

  label(axes: Axes, words: Words): void {
    const say = (axis: Axis, plus: HTMLElement, minus: HTMLElement) => {
      const [lever, sign] = axes[axis], [name, below, above] = words[lever] ?? [lever, "-", "+"];
      plus.textContent = `${name} ${sign > 0 ? above : below}`;
      minus.textContent = `${name} ${sign > 0 ? below : above}`;
    };
    say(`${this.side}.x` as Axis, this.sides.right, this.sides.left);
    say(`${this.side}.y` as Axis, this.sides.up, this.sides.down);
  }

  show(now: Four, live: boolean): void {
    const x = now[`${this.side}.x` as Axis], y = now[`${this.side}.y` as Axis];
    this.knob.style.transform = `translate(${(36 * x).toFixed(1)}cqw, ${(-36 * y).toFixed(1)}cqw)`;
    this.knob.classList.toggle("live", live && (x !== 0 || y !== 0));
  }
}
