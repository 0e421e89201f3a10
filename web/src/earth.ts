// The ground around an excavator: heights on a grid that the server holds for all pages and that acts on the machine
// (ground/field.py).

import * as THREE from "three";
import { EARTH } from "./parts";

export const HALF = 10.4; // m, half the side of the square that can be dug
const CELL = 0.2, N = Math.round((2 * HALF) / CELL), ROW = N + 1; // TILE divides N
const TILE = 8, TILES = N / TILE; // cells: a level tile is drawn as two triangles
const CLODS = 70, FALL = 9.81;
const BROWN = new THREE.Color(0.5, 0.385, 0.27);

export class Earth {
  readonly objects: THREE.Object3D[];
  readonly heights = new Float32Array(ROW * ROW);
  private readonly stain = new Float32Array(ROW * ROW); // largest deviation from level so far: disturbed earth stays brown
  private readonly geometry = new THREE.BufferGeometry();
  private readonly clods = new THREE.InstancedMesh(new THREE.DodecahedronGeometry(0.07), EARTH, CLODS);
  private readonly falling: { p: THREE.Vector3; v: number }[] = [];
  private readonly rough = new Uint8Array(TILES * TILES);
  private touched: [number, number, number, number] | null = null; // columns and rows to redraw

  constructor(private readonly level: number, soil: THREE.MeshStandardMaterial) {
    const n = ROW * ROW, place = new Float32Array(3 * n), uv = new Float32Array(2 * n);
    for (let j = 0; j < ROW; j++) for (let i = 0; i < ROW; i++) {
      const k = j * ROW + i, x = i * CELL - HALF, y = j * CELL - HALF; // y: the model's, to the left; here that is -z
      place.set([x, level, -y], 3 * k);
      uv.set([x, y], 2 * k);
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
    this.flatten();
  }

  // Make all of the ground level.
  flatten(): void {
    this.heights.fill(0);
    this.stain.fill(0);
    this.falling.length = 0;
    this.touched = [0, N, 0, N];
    this.rough.fill(0);
    this.tile();
  }

  set(cell: number, height: number): void {
    if (this.heights[cell] === height) return;
    this.heights[cell] = height;
    this.touch(cell % ROW, Math.floor(cell / ROW));
  }

  // The height of the ground at a point, above the level.
  at(x: number, z: number): number {
    const i = Math.round((x + HALF) / CELL), j = Math.round((HALF - z) / CELL);
    return i < 0 || j < 0 || i > N || j > N ? 0 : this.heights[j * ROW + i]!;
  }

  // Draw a clod that falls out of a bucket.
  drop(from: THREE.Vector3): void {
    this.falling.push({ p: from.clone(), v: 0 });
    if (this.falling.length > CLODS) this.falling.shift();
  }

  // True if the picture has changed.
  get stale(): boolean { return this.touched !== null || this.falling.length > 0; }

  // Mark cells to redraw.
  private touch(i: number, j: number): void {
    const t = this.touched;
    this.touched = t ? [Math.min(t[0], i), Math.max(t[1], i), Math.min(t[2], j), Math.max(t[3], j)] : [i, i, j, j];
    const tile = (k: number) => Math.max(0, Math.min(TILES - 1, Math.floor(k / TILE)));
    let more = false;
    for (let b = tile(j - 1); b <= tile(j + 1); b++) for (let a = tile(i - 1); a <= tile(i + 1); a++) {
      if (!this.rough[b * TILES + a]) { this.rough[b * TILES + a] = 1; more = true; }
    }
    if (more) this.tile();
  }

  // The triangles: all of uneven tiles, two of each level tile.
  private tile(): void {
    const index: number[] = [], square = (k: number, n: number) => index.push(k, k + n, k + n * ROW, k + n, k + n * ROW + n, k + n * ROW);
    for (let b = 0; b < TILES; b++) for (let a = 0; a < TILES; a++) {
      const k = b * TILE * ROW + a * TILE;
      if (!this.rough[b * TILES + a]) square(k, TILE);
      else for (let j = 0; j < TILE; j++) for (let i = 0; i < TILE; i++) square(k + j * ROW + i, 1);
    }
    this.geometry.setIndex(index);
  }

  // Before a picture: update position, normal and colour of changed vertices.
  draw(dt: number): void {
    this.fall(dt);
    if (!this.touched) return;
    const [i0, i1, j0, j1] = this.touched, h = this.heights, up = new THREE.Vector3(), colour = new THREE.Color();
    const [place, normal, tint] = ["position", "normal", "color"].map((name) => this.geometry.attributes[name]!) as [THREE.BufferAttribute, THREE.BufferAttribute, THREE.BufferAttribute];
    for (let j = Math.max(0, j0 - 1); j <= Math.min(N, j1 + 1); j++) for (let i = Math.max(0, i0 - 1); i <= Math.min(N, i1 + 1); i++) {
      const k = j * ROW + i, left = i ? k - 1 : k, right = i < N ? k + 1 : k, back = j ? k - ROW : k, front = j < N ? k + ROW : k;
      up.set(h[left]! - h[right]!, 2 * CELL, h[front]! - h[back]!).normalize();
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
