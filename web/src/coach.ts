// Tutorial for new users: seven steps to dig a hole, each with its key, ticked off when done; and the dug volume.

import { Axes, Axis } from "./messages";
import { KEYS, Labels } from "./sticks";
import { by, make } from "./dom";

export interface Site { height: number; share: number; dug: number; closed: number; bearing: number; reach: number; away: boolean }
const ARROWS: Record<string, string> = { "x -1": "←", "x 1": "→", "y 1": "↑", "y -1": "↓" };
const DEPTH = 0.35, OUT = 0.3; // m: depth that fills the bucket; height above the ground
const HIGH = 1.6, LOW = 0.2; // m: extending the arm lowers the teeth by half a metre, and a bucket that opens at the ground digs
const ENOUGH = 0.5, SOME = 0.1, EMPTY = 0.05, TURNED = 0.45; // fractions of the bucket; rad
const AWAY = 1.0; // m: with a retracted arm, an open bucket does not face down
const DUG = 1, LIFTED = 3, SWUNG = 4; // steps

// Instruction, reason and condition of each step by mode. `from`: direction of the arm while digging, and its reach after the turn.
const STEPS: { joint: string; resolved: string; until: string; done: (s: Site, from: { bearing: number; reach: number }) => boolean }[] = [
  { joint: "boom down", resolved: "teeth down", until: "teeth well in", done: (s) => s.height < -DEPTH },
  { joint: "stick in", resolved: "teeth in", until: "until it is half full", done: (s) => s.share > ENOUGH || (s.share > SOME && s.height > OUT) },
  { joint: "bucket curl", resolved: "bucket curl", until: "keep it in", done: (s) => s.closed > 0.85 && s.share > SOME },
  { joint: "boom up", resolved: "teeth up", until: "well out of the hole", done: (s) => s.height > HIGH },
  { joint: "swing left", resolved: "swing left", until: "or right", done: (s, from) => Math.abs(Math.atan2(Math.sin(s.bearing - from.bearing), Math.cos(s.bearing - from.bearing))) > TURNED },
  { joint: "stick out", resolved: "teeth out", until: "reach away", done: (s, from) => s.reach > from.reach + AWAY || s.share < EMPTY },
  { joint: "bucket open", resolved: "bucket open", until: "drop it", done: (s) => s.share < EMPTY },
];

export class Coach {
  private step = 0;
  private readonly from = { bearing: 0, reach: 0 };
  private rows: HTMLElement[] = [];

  constructor(private readonly watch: (() => void) | null) {
    by("coach-close").onclick = () => this.show(false);
    by("coach-again").onclick = () => { this.step = 0; this.mark(); };
    by("coach-watch").hidden = watch === null;
    by("coach-watch").onclick = () => this.watch?.();
    by("help").onclick = () => this.show(by("coach").hidden === true);
    by("help").hidden = false;
    this.show(localStorage.getItem("coach") !== "away");
  }

  show(open: boolean): void {
    by("coach").hidden = !open;
    by("help").setAttribute("aria-pressed", String(open));
    localStorage.setItem("coach", open ? "open" : "away");
  }

  // The keys for a step in this mode and pattern.
  label(axes: Axes, words: Labels, resolved: boolean): void {
    const fingers = matchMedia("(hover: none)").matches;
    const named = (axis: Axis, sign: number) => (fingers ? `${axis.split(".")[0]} ${ARROWS[`${axis.slice(-1)} ${sign}`]}` : KEYS[`${axis} ${sign}`]!);
    const key = (wanted: string): string => {
      for (const axis of Object.keys(axes) as Axis[]) {
        const [lever, sign] = axes[axis], [name, below, above] = words[lever]!;
        if (wanted === `${name} ${above}`) return named(axis, sign);
        if (wanted === `${name} ${below}`) return named(axis, -sign);
      }
      return "";
    };
    this.rows = STEPS.map((s) => {
      const row = make("li"), what = resolved ? s.resolved : s.joint;
      row.append(make("kbd", "", key(what)), make("b", "", what), make("span", "dim", s.until));
      return row;
    });
    by("coach-steps").replaceChildren(...this.rows);
    this.mark();
  }

  see(s: Site, replaying: boolean): void {
    by("site-height").textContent = s.height < 0 ? `${(-s.height).toFixed(2)} m deep` : `${s.height.toFixed(2)} m up`;
    by("site-share").textContent = `${Math.round(100 * Math.min(1, s.share))} %`;
    by("site-fill").style.width = `${Math.min(100, 100 * s.share)}%`;
    by("site-dug").textContent = `${s.dug.toFixed(2)} m³`;
    if (replaying) return;
    if (this.step <= DUG) this.from.bearing = s.bearing;
    if (this.step <= SWUNG) this.from.reach = this.step <= DUG ? s.reach : Math.min(this.from.reach, s.reach);
    // Empty before dumping: the bucket must be filled again.
    if (this.step > DUG && this.step <= SWUNG && s.share < 0.02) { this.step = 0; this.mark(); }
    // Lifted without a load: dig again.
    if (this.step === DUG && s.height > OUT && s.share <= SOME) { this.step = 0; this.mark(); }
    // At the ground the bucket digs instead of dumping its load.
    if (this.step > SWUNG && this.step < STEPS.length && s.height < LOW && s.share > EMPTY) { this.step = LIFTED; this.mark(); }
    if (this.step < STEPS.length && STEPS[this.step]!.done(s, this.from)) { this.step++; this.mark(); }
  }

  private mark(): void {
    this.rows.forEach((row, i) => { row.className = i < this.step ? "done" : i === this.step ? "now" : ""; });
    const ready = this.step === STEPS.length;
    by("coach-title").textContent = ready ? "That is a hole. Well dug!" : "Dig a hole";
    by("coach-again").hidden = !ready;
    by("coach").classList.toggle("ready", ready);
  }
}
