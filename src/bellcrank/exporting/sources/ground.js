// The ground that a page without a server draws: heights on a grid, which the edge of a bucket cuts and a bucket pours
// out again, as the cockpit's own has it. A drawing: the machine does not feel it. Nothing is lost: what the heights lack
// is in the bucket.

const CELL = 0.2, CELLS = 104, ROW = CELLS + 1, HALF = (CELL * CELLS) / 2; // m
const STILL = 2e-3, JUMP = 1.5; // m between two looks: less is no motion, more is no way that was gone
const WALL = 1.8, REPOSE = 0.7, HEAP = 0.02; // slopes of what was cut and of what was poured, m above the level
const OVER = 0.12, SPREAD = 0.42; // m above the ground, within which a bucket loses nothing; m, how wide a load falls
const POURS = 1.3; // of the capacity, a second
const LEAST_CHANGE = 1e-4; // m: smaller changes are not told
const HEADER = 24;

const cell = (x) => Math.min(Math.max(Math.round((x + HALF) / CELL), 0), CELLS);

export class Ground {
  constructor(tool, level) { this.tool = tool; this.level = level; this.heal(); }

  heal() {
    this.heights = new Float64Array(ROW * ROW); this.told = new Float64Array(ROW * ROW);
    this.load = this.dug = this.t = 0; this.last = null; this.whole = true; this.said = "";
  }

  // m3 of earth, as far as it differs from what was there: zero, but for rounding.
  get balance() { return this.heights.reduce((a, b) => a + b, 0) * CELL * CELL + this.load; }

  // The middle of the edge is at `tip` now; mouth: how far the bucket looks up, -1 to 1; at: where a load falls.
  work(t, tip, across, mouth, at) {
    const now = [tip[0], tip[1], tip[2] - this.level], dt = Math.min(Math.max(t - this.t, 0), 0.1), last = this.last;
    this.t = t;
    const way = last ? Math.hypot(...now.map((x, k) => x - last[k])) : Infinity;
    if (way > JUMP) this.last = now;
    else if (way > STILL) {
      const steps = Math.ceil(way / (CELL / 2));
      let cut = false;
      for (let k = 1; k <= steps; k++) cut = this.cut(now.map((x, i) => last[i] + (x - last[i]) * (k / steps)), across) || cut;
      if (cut) this.slump(now.map((x, k) => (x + last[k]) / 2), way / 2 + this.tool.width / 2 + 3 * CELL, 3);
      this.last = now;
    }
    this.spill(now, mouth, at, dt);
  }

  cut(p, across) {
    const room = this.tool.capacity - this.load, half = Math.ceil(this.tool.width / CELL), cells = new Set();
    if (room <= 0) return false;
    for (let k = -half; k <= half; k++) {
      const s = (k / (2 * half)) * this.tool.width, x = p[0] + s * across[0], y = p[1] + s * across[1];
      if (Math.abs(x) <= HALF && Math.abs(y) <= HALF) cells.add(cell(y) * ROW + cell(x));
    }
    let volume = 0;
    for (const k of cells) volume += Math.max(this.heights[k] - p[2], 0) * CELL * CELL;
    if (volume <= 0) return false;
    const share = Math.min(1, room / volume);
    for (const k of cells) this.heights[k] -= share * Math.max(this.heights[k] - p[2], 0);
    this.load += share * volume;
    this.dug += share * volume;
    return true;
  }

  spill(tip, mouth, at, dt) {
    if (this.load <= 0) return;
    const x = Math.min(Math.max((mouth + 0.2) / 0.65, 0), 1), below = Math.min(this.heights[cell(tip[1]) * ROW + cell(tip[0])], 0);
    const holds = this.tool.capacity * (tip[2] < below + OVER ? 1 : x * x * (3 - 2 * x));
    const lost = Math.min(this.load - holds, POURS * this.tool.capacity * dt);
    if (lost <= 0) return;
    this.load -= lost;
    const shares = [];
    let all = 0;
    this.around(at, 2.5 * SPREAD, (k, i, j) => {
      const dx = i * CELL - HALF - at[0], dy = j * CELL - HALF - at[1], s = Math.exp(-(dx * dx + dy * dy) / (2 * SPREAD * SPREAD));
      shares.push([k, s]); all += s;
    });
    for (const [k, s] of shares) this.heights[k] += (s * lost) / all / (CELL * CELL);
    this.slump(at, 2.5 * SPREAD + 3 * CELL, 6);
  }

  // What is too steep runs down, from neighbour to neighbour.
  slump(at, r, times) {
    const h = this.heights, [i0, i1, j0, j1] = this.window(at, r);
    const flows = (n, next) => {
      for (let j = j0; j <= (next === ROW ? j1 - 1 : j1); j++) for (let i = i0; i <= (next === 1 ? i1 - 1 : i1); i++) {
        const a = j * ROW + i, b = a + next, step = h[b] - h[a], most = (Math.max(h[a], h[b]) > HEAP ? REPOSE : WALL) * CELL;
        const flow = 0.25 * (step - Math.min(Math.max(step, -most), most));
        h[a] += flow; h[b] -= flow;
      }
    };
    for (let k = 0; k < times; k++) { flows(k, ROW); flows(k, 1); }
  }

  window(at, r) { return [cell(at[0] - r), cell(at[0] + r), cell(at[1] - r), cell(at[1] + r)]; }

  around(at, r, each) {
    const [i0, i1, j0, j1] = this.window(at, r);
    for (let j = j0; j <= j1; j++) for (let i = i0; i <= i1; i++) each(j * ROW + i, i, j);
  }

  // What has changed since it was last asked, as a message (messages.py); null: nothing.
  news() {
    const changed = [], said = `${this.load} ${this.dug}`;
    for (let k = 0; k < this.heights.length; k++) if (Math.abs(this.heights[k] - this.told[k]) > LEAST_CHANGE) changed.push(k);
    if (!changed.length && !this.whole && said === this.said) return null;
    const data = new ArrayBuffer(HEADER + 6 * changed.length), head = new DataView(data);
    head.setUint8(0, 2); head.setUint8(1, this.whole ? 1 : 0); head.setUint32(4, changed.length, true);
    head.setFloat64(8, this.t, true); head.setFloat32(16, this.load, true); head.setFloat32(20, this.dug, true);
    changed.forEach((k, n) => {
      this.told[k] = this.heights[k];
      head.setFloat32(HEADER + 4 * n, this.heights[k], true);
      head.setUint16(HEADER + 4 * changed.length + 2 * n, k, true);
    });
    this.whole = false; this.said = said;
    return data;
  }
}
