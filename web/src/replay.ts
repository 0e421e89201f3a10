// Replay: what was recorded, fetched once and shown here; the machine itself goes on.

import { Table } from "./plots";

export class Replay {
  t = 0;
  playing = true;
  private last = performance.now();

  private constructor(readonly table: Table, private readonly rows: Float32Array, private readonly width: number) {
    this.t = table.t[0] ?? 0;
  }

  static async fetched(part: string, poses: number): Promise<Replay | null> {
    const answer = await fetch(`/replay?${part}`);
    if (!answer.ok) throw new Error(await answer.text());
    const data = await answer.arrayBuffer(), [n, width] = new Uint32Array(data, 0, 2) as unknown as [number, number];
    if (n < 2) return null;
    const t = new Float64Array(data, 8, n), rows = new Float32Array(data, 8 + 8 * n, n * width);
    const columns = Array.from({ length: width - poses }, (_, k) => Float32Array.from({ length: n }, (_, i) => rows[i * width + poses + k]!));
    return new Replay({ t, columns }, rows, width);
  }

  get begin(): number { return this.table.t[0]!; }
  get end(): number { return this.table.t[this.table.t.length - 1]!; }

  // Seconds of this clock become seconds of the record.
  step(speed: number): void {
    const now = performance.now(), dt = (now - this.last) / 1000;
    this.last = now;
    if (!this.playing) return;
    this.t += dt * speed;
    if (this.t >= this.end) { this.t = this.end; this.playing = false; }
  }

  toggle(): void {
    if (!this.playing && this.t >= this.end) this.t = this.begin;
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
