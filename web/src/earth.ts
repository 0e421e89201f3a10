// The ground around an excavator: heights on a grid, which the teeth cut and the bucket's load is poured on. Only drawn:
// the model's soil is level again behind the teeth, and earth in the bucket has no weight in it.

import * as THREE from "three";
import { EARTH, Tool } from "./parts";

export const HALF = 10.4; // m, of the square that can be dug
const CELL = 0.2, N = Math.round((2 * HALF) / CELL), ROW = N + 1; // TILE divides N
const TILE = 8, TILES = N / TILE; // cells: a tile that is still level is two triangles
const WALL = 1.8, REPOSE = 0.7; // slopes of what was cut and of what was poured
const CLODS = 70, FALL = 9.81;
const BROWN = new THREE.Color(0.5, 0.385, 0.27);

export class Earth {
  readonly objects: THREE.Object3D[];
  load = 0; // m3 in the bucket
  dug = 0; // m3 cut since the beginning
  private readonly heights = new Float32Array(ROW * ROW);
  private readonly stain = new Float32Array(ROW * ROW); // how far it ever was from level: turned earth stays brown
  private readonly geometry = new THREE.BufferGeometry();
  private readonly last = new THREE.Vector3(1e9, 0, 0);
  private readonly clods = new THREE.InstancedMesh(new THREE.DodecahedronGeometry(0.07), EARTH, CLODS);
  private readonly falling: { p: THREE.Vector3; v: number }[] = [];
  private readonly rough = new Uint8Array(TILES * TILES);
  private touched: [number, number, number, number] | null = null; // columns and rows to draw anew

  constructor(private readonly level: number, soil: THREE.MeshStandardMaterial, private readonly tool: Tool) {
    const n = ROW * ROW, place = new Float32Array(3 * n), uv = new Float32Array(2 * n);
    for (let j = 0; j < ROW; j++) for (let i = 0; i < ROW; i++) {
      const k = j * ROW + i, x = i * CELL - HALF, z = j * CELL - HALF;
      place.set([x, level, z], 3 * k);
      uv.set([x, -z], 2 * k);
    }
    const set = (name: string, a: Float32Array, size: number) => this.geometry.setAttribute(name, new THREE.BufferAttribute(a, size));
    set("position", place, 3); set("uv", uv, 2); set("normal", new Float32Array(3 * n), 3); set("color", new Float32Array(3 * n), 3);
    const patch = soil.clone();
    patch.vertexColors = true;
    const mesh = new THREE.Mesh(this.geometry, patch);
    mesh.frustumCulled = this.clods.frustumCulled = false;
    mesh.receiveShadow = true;
    this.clods.count = 0;
    this.objects = [mesh, this.clods];
    this.heal();
  }

  heal(): void {
    this.heights.fill(0);
    this.stain.fill(0);
    this.load = this.dug = 0;
    this.last.x = 1e9;
    this.falling.length = 0;
    this.touched = [0, N, 0, N];
    this.rough.fill(0);
    this.tile();
    this.tool.fill(0);
  }

  // The height of the ground there, against the level.
  at(x: number, z: number): number {
    const i = Math.round((x + HALF) / CELL), j = Math.round((z + HALF) / CELL);
    return i < 0 || j < 0 || i > N || j > N ? 0 : this.heights[j * ROW + i]!;
  }

  // The edge of the bucket moved to `tip`; across: along the edge; mouth: out of the bucket; middle: where its load is.
  work(tip: THREE.Vector3, across: THREE.Vector3, mouth: THREE.Vector3, middle: THREE.Vector3, dt: number): void {
    const way = tip.distanceTo(this.last), { width, capacity } = this.tool;
    const from = way < 1.5 ? this.last.clone() : tip.clone(), steps = Math.max(1, Math.ceil(way < 1.5 ? way / 0.1 : 1)), edges = Math.ceil(width / 0.11);
    let cut = 0;
    for (let s = 1; s <= steps; s++) for (let e = 0; e <= edges; e++) {
      const p = from.clone().lerp(tip, s / steps).addScaledVector(across, (e / edges - 0.5) * width);
      cut += this.cut(p.x, p.y - this.level, p.z);
    }
    this.last.copy(tip);
    this.dug += cut;
    this.load += cut;
    const inside = tip.y - this.level < this.at(tip.x, tip.z) + 0.12;
    if (this.load > capacity && inside) {
      // It is full: the rest goes to both sides, as before a plough.
      for (const side of [-1, 1]) this.pour(tip.clone().addScaledVector(across, side * (width / 2 + 0.35)), (this.load - capacity) / 2, 0.22);
      this.load = capacity;
    }
    const holds = inside ? capacity : capacity * THREE.MathUtils.smoothstep(mouth.y, -0.2, 0.45);
    if (this.load > holds) {
      const lost = Math.min(this.load - holds, 1.3 * capacity * dt);
      this.load -= lost;
      this.pour(middle, lost, 0.42);
      if (lost > 0.001 && Math.random() < 0.7) this.falling.push({ p: middle.clone().addScaledVector(across, (Math.random() - 0.5) * width), v: 0 });
      if (this.falling.length > CLODS) this.falling.shift();
    }
    this.tool.fill(Math.min(1, this.load / capacity));
  }

  private cut(x: number, depth: number, z: number): number {
    if (depth > 0.9) return 0;
    let volume = 0;
    const r = 0.36;
    this.around(x, z, r, (k, d) => {
      const most = depth + Math.max(0, d - 0.1) * WALL, over = this.heights[k]! - most;
      if (over > 0) { this.heights[k] = most; volume += over * CELL * CELL; }
    });
    if (volume) this.touch(x, z, r);
    return volume;
  }

  private pour(at: THREE.Vector3, volume: number, spread: number): void {
    let sum = 0;
    const share = (d: number) => Math.exp((-d * d) / (2 * spread * spread)), r = 2.5 * spread;
    this.around(at.x, at.z, r, (_k, d) => { sum += share(d); });
    if (sum) this.around(at.x, at.z, r, (k, d) => { this.heights[k]! += (volume * share(d)) / sum / CELL / CELL; });
    this.slide(at, r + 0.6);
    this.touch(at.x, at.z, r + 0.6 + CELL);
  }

  // A heap that is too steep runs down, one neighbour at a time.
  private slide(at: THREE.Vector3, r: number): void {
    const h = this.heights, most = REPOSE * CELL;
    this.around(at.x, at.z, r, (k) => {
      if (h[k]! < 0.02 || k < ROW || k >= N * ROW) return;
      for (const next of [k + 1, k - 1, k + ROW, k - ROW]) {
        const over = h[k]! - h[next]! - most;
        if (over > 0) { h[k]! -= 0.25 * over; h[next]! += 0.25 * over; }
      }
    });
  }

  private around(x: number, z: number, r: number, each: (k: number, d: number) => void): void {
    const [i0, i1] = span(x, r), [j0, j1] = span(z, r);
    for (let j = j0; j <= j1; j++) for (let i = i0; i <= i1; i++) {
      const d = Math.hypot(i * CELL - HALF - x, j * CELL - HALF - z);
      if (d <= r) each(j * ROW + i, d);
    }
  }

  // What is there has to be drawn anew.
  private touch(x: number, z: number, r: number): void {
    const [i0, i1] = span(x, r), [j0, j1] = span(z, r), t = this.touched;
    this.touched = t ? [Math.min(t[0], i0), Math.max(t[1], i1), Math.min(t[2], j0), Math.max(t[3], j1)] : [i0, i1, j0, j1];
    const tile = (i: number) => Math.max(0, Math.min(TILES - 1, Math.floor(i / TILE)));
    let more = false;
    for (let b = tile(j0 - 1); b <= tile(j1 + 1); b++) for (let a = tile(i0 - 1); a <= tile(i1 + 1); a++) {
      if (!this.rough[b * TILES + a]) { this.rough[b * TILES + a] = 1; more = true; }
    }
    if (more) this.tile();
  }

  // The triangles: all of rough tiles, two of each that is level.
  private tile(): void {
    const index: number[] = [], square = (k: number, n: number) => index.push(k, k + n * ROW, k + n, k + n, k + n * ROW, k + n * ROW + n);
    for (let b = 0; b < TILES; b++) for (let a = 0; a < TILES; a++) {
      const k = b * TILE * ROW + a * TILE;
      if (!this.rough[b * TILES + a]) square(k, TILE);
      else for (let j = 0; j < TILE; j++) for (let i = 0; i < TILE; i++) square(k + j * ROW + i, 1);
    }
    this.geometry.setIndex(index);
  }

  // Before a picture: what changed gets its place, slope and colour.
  draw(dt: number): void {
    this.fall(dt);
    if (!this.touched) return;
    const [i0, i1, j0, j1] = this.touched, h = this.heights, up = new THREE.Vector3(), colour = new THREE.Color();
    const [place, normal, tint] = ["position", "normal", "color"].map((name) => this.geometry.attributes[name]!) as [THREE.BufferAttribute, THREE.BufferAttribute, THREE.BufferAttribute];
    for (let j = Math.max(0, j0 - 1); j <= Math.min(N, j1 + 1); j++) for (let i = Math.max(0, i0 - 1); i <= Math.min(N, i1 + 1); i++) {
      const k = j * ROW + i, left = i ? k - 1 : k, right = i < N ? k + 1 : k, back = j ? k - ROW : k, front = j < N ? k + ROW : k;
      up.set(h[left]! - h[right]!, 2 * CELL, h[back]! - h[front]!).normalize();
      place.setY(k, this.level + h[k]!);
      normal.setXYZ(k, up.x, up.y, up.z);
      this.stain[k] = Math.max(this.stain[k]!, Math.abs(h[k]!));
      colour.setRGB(1, 1, 1).lerp(BROWN, Math.min(1, this.stain[k]! / 0.1));
      tint.setXYZ(k, colour.r, colour.g, colour.b);
    }
    place.needsUpdate = normal.needsUpdate = tint.needsUpdate = true;
    this.touched = null;
  }

  private fall(dt: number): void {
    const place = new THREE.Matrix4();
    for (let k = this.falling.length - 1; k >= 0; k--) {
      const f = this.falling[k]!;
      f.v += FALL * dt;
      f.p.y -= f.v * dt;
      if (f.p.y < this.level + this.at(f.p.x, f.p.z)) this.falling.splice(k, 1);
    }
    this.clods.count = this.falling.length;
    this.falling.forEach((f, k) => this.clods.setMatrixAt(k, place.makeTranslation(f.p)));
    this.clods.instanceMatrix.needsUpdate = true;
  }
}

// Rows or columns of the grid within r of c.
function span(c: number, r: number): [number, number] {
  return [Math.max(0, Math.ceil((c - r + HALF) / CELL)), Math.min(N, Math.floor((c + r + HALF) / CELL))];
}
