// History: the last seconds of every column, for the plots.

export class History {
  readonly t: Float64Array;
  readonly columns: Float32Array[];
  start = 0;
  end = 0;

  constructor(readonly width: number, private readonly rows = 1200) {
    this.t = new Float64Array(2 * rows);
    this.columns = Array.from({ length: width }, () => new Float32Array(2 * rows));
  }

  add(t: number, values: Float32Array, at: number): void {
    if (this.end > this.start && t <= this.t[this.end - 1]!) {
      if (t === this.t[this.end - 1]) return;
      this.start = this.end = 0; // time decreased: a reset
    }
    if (this.end === this.t.length) {
      for (const c of [this.t, ...this.columns]) c.copyWithin(0, this.end - this.rows, this.end);
      this.start = 0; this.end = this.rows;
    }
    this.t[this.end] = t;
    for (let i = 0; i < this.width; i++) this.columns[i]![this.end] = values[at + i]!;
    this.end++;
    this.start = Math.max(this.start, this.end - this.rows);
  }

  clear(): void { this.start = this.end = 0; }
}
