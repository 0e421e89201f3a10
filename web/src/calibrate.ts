// Calibration of a gamepad: rest, then four pushes. Each push identifies an axis, its direction and its range. Of two
// joysticks each is calibrated by itself: sideways, forward, and the third axis if there is one.

import { AXES } from "./hands";
import { Axis } from "./messages";
import { Calibration, Pads } from "./pads";
import { by, make } from "./dom";

const PUSHES: [Axis, string][] = [
  ["left.x", "Push the left stick all the way to the right"],
  ["left.y", "Push the left stick all the way forward"],
  ["right.x", "Push the right stick all the way to the right"],
  ["right.y", "Push the right stick all the way forward"],
];
const JOYSTICK_PUSHES: [Axis, string][] = [
  ["left.x", "Push the joystick all the way to the right"],
  ["left.y", "Push the joystick all the way forward"],
  ["right.x", "Twist the joystick to the right, or move its third axis to the end"],
];
const FAR = 0.35; // minimum axis travel of a push

export function calibrating(pads: Pads): void {
  const dialog = by<HTMLDialogElement>("pad-dialog"), body = by("pad-body");
  let timer = 0, chosen = 0;
  const close = () => { clearInterval(timer); dialog.close(); };
  by("pad-close").onclick = close;
  dialog.onclose = () => clearInterval(timer);
  dialog.showModal();

  const overview = (): void => {
    const all = pads.all(), pad = all[chosen] ?? all[0];
    body.replaceChildren();
    if (!pad) {
      body.append(make("p", "", "Plug in a gamepad or joystick and press one of its buttons."));
      timer = window.setInterval(() => { if (pads.first()) { clearInterval(timer); overview(); } }, 300);
      return;
    }
    const c = pads.calibration(pad), bars = AXES.map((a) => make("meter", a));
    if (all.length > 1) {
      const select = make("select");
      all.forEach((p, i) => select.append(Object.assign(make("option", "", `${i + 1}: ${p.id}`), { value: String(i), selected: p === pad })));
      select.onchange = () => { chosen = Number(select.value); clearInterval(timer); overview(); };
      body.append(select);
    } else body.append(make("p", "name", pad.id));
    bars.forEach((bar, i) => {
      Object.assign(bar, { min: -1, max: 1, value: 0 });
      const row = make("label", "row", AXES[i]!.replace(".", " "));
      row.append(bar);
      body.append(row);
    });
    const dead = make("input");
    Object.assign(dead, { type: "range", min: "0", max: "0.4", step: "0.01", value: String(c.dead) });
    const label = make("label", "row", "dead zone");
    label.append(dead);
    dead.oninput = () => { c.dead = Number(dead.value); pads.keep(pad, c); };
    const start = make("button", "", "Calibrate"), forget = make("button", "", "Back to standard");
    const pushes = all.length > 1 && pad.mapping !== "standard" ? JOYSTICK_PUSHES.slice(0, pad.axes.length) : PUSHES;
    start.onclick = () => { clearInterval(timer); steps(pad.index, c, pushes); };
    forget.onclick = () => { pads.forget(pad); clearInterval(timer); overview(); };
    const row = make("div", "buttons");
    row.append(start, forget);
    body.append(label, row);
    timer = window.setInterval(() => {
      const fresh = navigator.getGamepads()[pad.index], now = fresh ? pads.values(fresh) : [];
      bars.forEach((b, i) => ((b as HTMLMeterElement).value = now[i] ?? 0));
    }, 50);
  };

  const steps = (index: number, old: Calibration, pushes: [Axis, string][]): void => {
    const now = (): readonly number[] => navigator.getGamepads()[index]?.axes ?? [];
    const c = structuredClone(old);
    const ask = (k: number, rest: readonly number[]): void => {
      if (k === pushes.length) {
        const pad = navigator.getGamepads()[index];
        if (pad) pads.keep(pad, c);
        overview();
        return;
      }
      const [axis, text] = pushes[k]!;
      const hint = make("p", "dim", `${k + 1} of ${pushes.length}`);
      body.replaceChildren(make("p", "push", text), hint);
      let best = -1, end = 0;
      timer = window.setInterval(() => {
        const axes = now();
        axes.forEach((x, i) => {
          const moved = Math.abs(x - rest[i]!);
          if (moved > FAR && (best < 0 || (i === best && moved > Math.abs(end - rest[i]!)))) { best = i; end = x; }
        });
        if (best >= 0) hint.textContent = "Good. Let it go now.";
        if (best >= 0 && Math.abs(axes[best]! - rest[best]!) < FAR / 2) {
          clearInterval(timer);
          c.wires[axis] = { index: best, rest: rest[best]!, end };
          ask(k + 1, rest);
        }
      }, 30);
    };
    body.replaceChildren(make("p", "push", "Let go of all sticks"));
    setTimeout(() => ask(0, [...now()]), 1000);
  };
  overview();
}
