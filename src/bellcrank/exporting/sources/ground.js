// Ground of a page without a server: ground/field.py and ground/digger.py in JavaScript, line by line, so that the hole is
// the same as in the cockpit (a test compares them). Heights on a grid, which the edge of a bucket cuts. The bucket
// carries soil, pushes it ahead and pours it out. Volume is conserved: soil missing from the heights is in the bucket.

import { felt } from "./contact.js";

export const CELL = 0.2, CELLS = 104, ROW = CELLS + 1, HALF = (CELL * CELLS) / 2; // m
const STILL = 2e-3, JUMP = 1.5; // m between two updates: less counts as no motion, more as a jump
const HEAP = 0.02; // m above the level, from which soil counts as poured
const SWEEPS = 6, RESTED = 1e-3; // slump rounds per update; m of excess step at which soil rests
const AHEAD = 0.4; // m in front of the edge, where excess soil is heaped up
const OVER = 0.12, SPREAD = 0.42; // m above the ground, within which a bucket keeps its load; m, width of the heap of a poured load
const POURS = 1.3; // fraction of the capacity per second
const LEAST_CHANGE = 1e-4; // m; smaller changes are not sent
const SOON = 0.2; // s; from updates that are further apart, no velocity of the edge is computed
const MEMORY = 40000; // changes that are stored
const HEADER = 24, NO_CELL = 2 ** 32 - 1;

const bounded = (x, low, high) => Math.min(Math.max(x, low), high);
// Round to the nearest integer, halves to the even one.
const whole = (x) => { const r = Math.round(x); return r - x === 0.5 && r % 2 ? r - 1 : r; };
const cell = (x) => bounded(whole((x + HALF) / CELL), 0, CELLS);
const between = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);

export class Ground {
  // contact: description of the bucket from welcome.json; soil: one of the named soils.
  constructor(contact, soil) { Object.assign(this, { contact, tool: contact.tool, level: contact.level, soil }); this.heal(); }

  // Restore the initial ground.
  heal() {
    this.heights = new Float64Array(ROW * ROW); this.told = new Float64Array(ROW * ROW); this.base = new Float64Array(ROW * ROW);
    this.load = this.dug = this.t = 0;
    this.last = this.loose = this.seen = null;
    this.log = []; this.anew = true; this.said = "";
  }

  become(soil) { this.soil = soil; this.loose = [0, ROW, 0, ROW]; }

  // m3, change of the total volume of soil: zero except for rounding.
  get balance() { return this.heights.reduce((a, b) => a + b, 0) * CELL * CELL + this.load; }

  // Update the ground and return the parameters of the machine by name. X: 3x4 pose matrix of the bucket's body, by rows.
  look(t, X) {
    const turned = (v) => [0, 4, 8].map((k) => X[k] * v[0] + X[k + 1] * v[1] + X[k + 2] * v[2]), at = [X[3], X[7], X[11]];
    const tip = turned(this.contact.tip).map((x, k) => x + at[k]), dt = this.seen ? t - this.seen.t : 0;
    const velocity = dt > 0 && dt < SOON ? tip.map((x, k) => (x - this.seen.tip[k]) / dt) : [0, 0, 0];
    this.seen = { t, tip };
    this.work(t, tip, turned(this.tool.across), turned(this.tool.mouth)[2], at.map((x, k) => x + 0.7 * (tip[k] - x)));
    return felt(this, turned, at, tip, velocity);
  }

  // Dig with the middle of the edge at `tip`; mouth: how far the bucket faces upwards, -1 to 1; at: place where a load falls.
  work(t, tip, across, mouth, at) {
    const now = [tip[0], tip[1], tip[2] - this.level], dt = bounded(t - this.t, 0, 0.1), last = this.last;
    this.t = t;
    const way = last ? between(now, last) : Infinity;
    if (way > JUMP) this.last = now;
    else if (way > STILL) {
      const steps = Math.ceil(way / (CELL / 2)), gone = now.map((x, k) => x - last[k]);
      let cut = false;
      for (let k = 1; k <= steps; k++) cut = this.cut(last.map((x, i) => x + gone[i] * (k / steps)), across, gone) || cut;
      if (cut) this.disturbed(now.map((x, k) => (x + last[k]) / 2), way / 2 + this.tool.width / 2 + 3 * CELL);
      this.last = now;
    }
    this.spill(now, mouth, at, dt);
    this.slump();
  }

  // Cut at `p` and return whether there was any soil. Soil that does not fit into the bucket is heaped up ahead.
  cut(p, across, way) {
    const n = 2 * Math.ceil(this.tool.width / CELL), cells = new Set(), h = this.heights;
    for (let k = 0; k <= n; k++) {
      const s = (k / n - 0.5) * this.tool.width, x = p[0] + s * across[0], y = p[1] + s * across[1];
      if (Math.abs(x) <= HALF && Math.abs(y) <= HALF) cells.add(cell(y) * ROW + cell(x));
    }
    let volume = 0;
    for (const k of cells) volume += Math.max(h[k] - p[2], 0) * CELL * CELL;
    if (volume <= 0) return false;
    const taken = Math.min(volume, Math.max(this.tool.capacity - this.load, 0)), ahead = volume > taken ? pushed(p, way) : null;
    for (const k of cells) h[k] -= (ahead ? 1 : taken / volume) * Math.max(h[k] - p[2], 0);
    this.load += taken;
    this.dug += taken;
    if (ahead) this.heap(ahead, AHEAD, volume - taken);
    return true;
  }

  // Add a heap of soil around a place.
  heap(at, wide, volume) {
    const [j0, j1, i0, i1] = window(at, 2.5 * wide), shares = [];
    let all = 0;
    for (let j = j0; j < j1; j++) for (let i = i0; i < i1; i++) {
      const dx = i * CELL - HALF - at[0], dy = j * CELL - HALF - at[1], s = Math.exp(-(dx * dx + dy * dy) / (2 * wide * wide)) + 1e-300;
      shares.push([j * ROW + i, s]);
      all += s;
    }
    for (const [k, s] of shares) this.heights[k] += s * (volume / all / (CELL * CELL));
    this.disturbed(at, 2.5 * wide + 3 * CELL);
  }

  spill(tip, mouth, at, dt) {
    if (this.load <= 0) return;
    const x = bounded((mouth + 0.2) / 0.65, 0, 1), below = Math.min(this.heights[cell(tip[1]) * ROW + cell(tip[0])], 0);
    const holds = this.tool.capacity * (tip[2] < below + OVER ? 1 : x * x * (3 - 2 * x));
    const lost = Math.min(this.load - holds, POURS * this.tool.capacity * dt);
    if (lost <= 0) return;
    this.load -= lost;
    this.heap(at, SPREAD, lost);
  }

  // Mark the surroundings of a place as loose: soil may slump there.
  disturbed(at, r) {
    const b = window(at, r), a = this.loose ?? b;
    this.loose = [Math.min(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.max(a[3], b[3])];
  }

  // Let soil that is too steep slump from cell to cell.
  slump() {
    if (!this.loose) return;
    const [a, b, c, d] = this.loose;
    let ran = null;
    for (let k = 0; k < SWEEPS; k++) {
      ran = [ROW, -1, ROW, -1];
      this.flow(a, b - 1, c, d, ROW, ran);
      this.flow(a, b, c, d - 1, 1, ran);
      if (ran[1] < 0) { this.loose = null; return; }
    }
    // Continue only around the soil that still moves.
    this.loose = [Math.max(ran[0] - 3, 0), Math.min(ran[1] + 3, ROW), Math.max(ran[2] - 3, 0), Math.min(ran[3] + 3, ROW)];
  }

  // All flows in one direction follow from the heights before; so the old height of the second cell is kept for the next pair.
  flow(a, b, c, d, next, ran) {
    const h = this.heights, [repose, wall] = this.soil.slopes, along = next === 1;
    for (let p = along ? a : c; p < (along ? b : d); p++) {
      let k = along ? p * ROW + c : a * ROW + p, old = h[k];
      for (let q = along ? c : a; q < (along ? d : b); q++, k += next) {
        const high = h[k + next], step = high - old, most = (Math.max(high, old) > HEAP ? repose : wall) * CELL;
        const flow = 0.25 * (step - bounded(step, -most, most));
        old = high;
        if (!flow) continue;
        h[k] += flow; h[k + next] -= flow;
        if (Math.abs(flow) <= 0.25 * RESTED) continue;
        const j = along ? p : q + 1, i = along ? q + 1 : p;
        ran[0] = Math.min(ran[0], j); ran[1] = Math.max(ran[1], j); ran[2] = Math.min(ran[2], i); ran[3] = Math.max(ran[3], i);
      }
    }
  }

  // Height relative to the level, interpolated bilinearly on the grid.
  height(x, y) {
    const [u, v] = [x, y].map((c) => bounded((c + HALF) / CELL, 0, CELLS - 1e-9)), i = Math.floor(u), j = Math.floor(v), a = u - i, b = v - j;
    const h = this.heights, k = j * ROW + i;
    return (1 - b) * ((1 - a) * h[k] + a * h[k + 1]) + b * ((1 - a) * h[k + ROW] + a * h[k + ROW + 1]);
  }

  // Changes since the last call, as a message (messages.py); null if there are none.
  news() {
    const cells = [], said = `${this.load} ${this.dug}`;
    for (let k = 0; k < this.heights.length; k++) if (Math.abs(this.heights[k] - this.told[k]) > LEAST_CHANGE) cells.push(k);
    if (!cells.length && !this.anew && said === this.said) return null;
    const heights = cells.map((k) => (this.told[k] = this.heights[k]));
    this.log.push({ t: this.t, load: this.load, dug: this.dug, cells, heights });
    if (this.log.length > MEMORY) laid(this.base, this.log.shift());
    const anew = this.anew;
    this.anew = false; this.said = said;
    const data = new ArrayBuffer(HEADER + 6 * cells.length), head = new DataView(data);
    head.setUint8(0, 2); head.setUint8(1, anew ? 1 : 0); head.setUint32(4, cells.length, true);
    head.setFloat64(8, this.t, true); head.setFloat32(16, this.load, true); head.setFloat32(20, this.dug, true);
    cells.forEach((k, n) => { head.setFloat32(HEADER + 4 * n, heights[n], true); head.setUint16(HEADER + 4 * cells.length + 2 * n, k, true); });
    return data;
  }

  // Heights at `begin`, and the changes up to `end`: time, height, load, dug and cell, as scene_poses.py packs them.
  between(begin, end) {
    const base = this.base.slice();
    let first = null;
    const later = [];
    for (const patch of this.log) {
      if (patch.t <= begin) { laid(base, patch); first = { ...patch, t: begin, cells: [], heights: [] }; } else if (patch.t <= end) later.push(patch);
    }
    const changes = (first ? [first, ...later] : later).flatMap((p) => (p.cells.length ? p.cells.map((k, n) => [p.t, p.heights[n], p.load, p.dug, k]) : [[p.t, 0, p.load, p.dug, NO_CELL]]));
    return { base, changes };
  }

  // Score of a job, 0 to 100; half of the volume moved outside it or beyond is subtracted (ground/field.py).
  score({ low, high, depth, fill }) {
    const area = CELL * CELL, inside = (more, x, y) => x >= low[0] - more - 1e-9 && x <= high[0] + more + 1e-9 && y >= low[1] - more - 1e-9 && y <= high[1] + more + 1e-9;
    let wanted = fill, done = 0, wrong = 0;
    if (depth) wanted = 0;
    this.heights.forEach((h, k) => {
      const x = (k % ROW) * CELL - HALF, y = Math.floor(k / ROW) * CELL - HALF;
      if (inside(0, x, y)) {
        if (depth) { wanted += depth * area; done += bounded(-h, 0, depth) * area; wrong += Math.max(-h - depth, 0) * area; } else done += Math.max(h, 0) * area;
      } else if (inside(1, x, y)) wrong += Math.max(depth ? -h : h, 0) * area;
    });
    return 100 * bounded(((depth ? done : Math.min(done, fill)) - 0.5 * wrong) / wanted, 0, 1);
  }
}

// Place that soil is pushed to; null if the edge moves straight up or down.
function pushed(p, way) {
  const far = Math.hypot(way[0], way[1]);
  return far < 0.3 * Math.hypot(...way) ? null : p.map((x, k) => x + way[k] * ((1.5 * AHEAD) / far));
}

// First and last row and column around a place, at least one; the last ones are exclusive.
function window(at, r) { return [cell(at[1] - r), cell(at[1] + r) + 1, cell(at[0] - r), cell(at[0] + r) + 1]; }

function laid(heights, { cells, heights: values }) { cells.forEach((k, n) => { heights[k] = values[n]; }); }
