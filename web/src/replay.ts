// Replay: a recorded time span, fetched once and shown here; the machine itself continues.

import { Table } from "./plots";

// The initial ground and its changes over time. A change with cell NONE concerns the load only.
interface Soil { base: Float32Array; t: Float64Array; heights: Float32Array; load: Float32Array; dug: Float32Array; cells: Uint32Array }
const NONE = 2 ** 32 - 1;

export class Replay {
  t = 0;
  playing = true;
  private last = performance.now();

  private constructor(readonly table: Table, private readonly rows: Float32Array, private readonly width: number, private readonly soil: Soil) {
    this.t = table.t[0] ?? 0;
  }

  // Unpack the data of cockpit/scene_poses.py.
  static of(data: ArrayBuffer, poses: number): Replay | null {
    const [n, width, m, cells] = new Uint32Array(data, 0, 4) as unknown as [number, number, number, number];
    if (n < 2) return null;
    let at = 16;
    const next = <T>(kind: { new (b: ArrayBuffer, at: number, n: number): T; BYTES_PER_ELEMENT: number }, count: number): T => {
      const made = new kind(data, at, count);
      at += count * kind.BYTES_PER_ELEMENT;
      return made;
    };
    const t = next(Float64Array, n), when = next(Float64Array, m), rows = next(Float32Array, n * width), base = next(Float32Array, cells);
    const soil = { base, t: when, heights: next(Float32Array, m), load: next(Float32Array, m), dug: next(Float32Array, m), cells: next(Uint32Array, m) };
    const columns = Array.from({ length: width - poses }, (_, k) => Float32Array.from({ length: n }, (_, i) => rows[i * width + poses + k]!));
    return new Replay({ t, columns }, rows, width, soil);
  }

  get begin(): number { return this.table.t[0]!; }
  get end(): number { return this.table.t[this.table.t.length - 1]!; }

  // The changes of the ground up to a time since the last call; all of it if time went back.
  ground(): { whole: boolean; load: number; dug: number; heights: Float32Array; cells: Uint32Array } | null {
    const { base, t, heights, load, dug, cells } = this.soil;
    if (!base.length) return null;
    const whole = this.laid < 0 || (this.laid > 0 && t[this.laid - 1]! > this.t);
    const from = whole ? 0 : this.laid;
    let to = from;
    while (to < t.length && t[to]! <= this.t) to++;
    this.laid = to;
    if (!whole && to === from) return null;
    const changed = Array.from({ length: to - from }, (_, k) => from + k).filter((k) => cells[k] !== NONE);
    const first = whole ? [...base.keys()].filter((k) => base[k] !== 0) : [];
    return {
      whole, load: load[to - 1] ?? 0, dug: dug[to - 1] ?? 0,
      heights: Float32Array.from([...first.map((k) => base[k]!), ...changed.map((k) => heights[k]!)]),
      cells: Uint32Array.from([...first, ...changed.map((k) => cells[k]!)]),
    };
  }
  private laid = -1; // number of shown changes of the ground; -1: the initial ground is not shown yet

  // Advance the replay by seconds of real time; returns whether the picture has changed.
  step(speed: number): boolean {
    const now = performance.now(), dt = (now - this.last) / 1000, moved = this.moved || this.playing;
    this.last = now;
    this.moved = false;
    if (this.playing) this.t += dt * speed;
    if (this.t >= this.end) { this.t = this.end; this.playing = false; }
    return moved;
  }
  private moved = true; // the user moved to another time

  seek(t: number): void { this.playing = false; this.t = t; this.moved = true; }

  toggle(): void {
    if (!this.playing && this.t >= this.end) this.t = this.begin;
    this.moved = true;
    this.playing = !this.playing;
    this.last = performance.now();
  }

  row(): Float32Array {
    const { t } = this.table;
    let lo = 0, hi = t.length - 1;
    while (hi - lo > 1) { const m = (lo + hi) >> 1; if (t[m]! <= this.t) lo = m; else hi = m; }
    const k = this.t >= t[hi]! ? hi : lo;
    return this.rows.subarray(k * this.width, (k + 1) * this.width);
  }
}
