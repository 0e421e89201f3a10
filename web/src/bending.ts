// Flexible bodies (view/scene.py): sections that move with elastic coordinates, coloured by stress, deformation magnified.

import * as THREE from "three";
import { Bent, Scene, Slice } from "./messages";
import { Skins } from "./skins";

const LEAST = 1e6; // Pa: smaller stresses have no colour
const NONE = new THREE.Color(0xb4bac0), PUSH = new THREE.Color(0x1f5fd0), PULL = new THREE.Color(0xd22a2a);

interface Drawn { mesh: THREE.Mesh; slices: Slice[]; positions: THREE.BufferAttribute; colours: THREE.BufferAttribute }

export class Bending {
  private largest = LEAST; // Pa, largest stress so far
  private scale: number; // magnification; 0: beams are not drawn
  private readonly n: Float64Array;
  private readonly drawn: Drawn[];
  private readonly nodes: Map<number, Bent>;
  private readonly skins: Skins;

  // own: the machine draws its flexible bodies itself.
  constructor(private readonly scene: Scene, private readonly bodies: THREE.Group[], root: THREE.Group, private readonly own: boolean) {
    this.scale = own ? 0 : 1;
    this.n = new Float64Array(scene.bent.length);
    this.nodes = new Map(scene.nodes.map((x) => [x.body, x]));
    this.drawn = scene.beams.map(({ slices }) => made(slices));
    this.skins = new Skins(scene.skins, bodies);
    root.add(...this.drawn.map((x) => x.mesh), ...this.skins.meshes);
    this.show(this.scale);
  }

  // The largest stress so far as text; empty while beams are not drawn.
  get said(): string { return this.scale > 0 && this.drawn.length ? `±${(this.largest / 1e6).toFixed(0)} MPa` : ""; }

  show(scale: number): void {
    this.scale = scale;
    for (const mesh of [...this.drawn.map((x) => x.mesh), ...this.skins.meshes]) mesh.visible = scale > 0;
    if (this.own) for (const s of this.scene.beams.flatMap((x) => x.slices)) for (const part of this.bodies[s.body]?.children ?? []) part.visible = scale === 0;
  }

  // values: the elastic coordinates begin at `at`. Bodies on a node move with the magnified deformation.
  place(values: Float32Array, at: number): void {
    this.scene.bent.forEach((i, k) => { this.n[k] = values[at + i]!; });
    if (this.scale <= 0 || this.scale === 1) return;
    const was = this.bodies.map((g) => g.matrix.clone());
    this.bodies.forEach((g, i) => {
      const parent = this.scene.parents[i]!, node = this.nodes.get(i);
      const moved = parent < 0 ? new THREE.Matrix4() : this.bodies[parent]!.matrix;
      const within = node ? this.pose(node) : parent < 0 ? was[i]! : was[parent]!.clone().invert().multiply(was[i]!);
      g.matrix.multiplyMatrices(moved, within);
    });
  }

  // Pose in the body frame: a point with axes, translated and rotated by the elastic coordinates.
  private pose(s: Bent): THREE.Matrix4 {
    const p = new THREE.Vector3(...s.point), b = new THREE.Vector3();
    s.q.forEach((i, k) => {
      const x = Math.max(this.scale, 1) * this.n[i]!;
      p.addScaledVector(new THREE.Vector3(...s.shift[k]!), x);
      b.addScaledVector(new THREE.Vector3(...s.turn[k]!), x / 2);
    });
    const [x, y, z] = s.axes, axes = new THREE.Matrix4().set(...x, 0, ...y, 0, ...z, 0, 0, 0, 0, 1);
    const turn = new THREE.Matrix4().makeRotationFromQuaternion(new THREE.Quaternion(b.x, b.y, b.z, 1).normalize());
    return turn.multiply(axes).setPosition(p);
  }

  update(): void {
    if (this.scale <= 0) return;
    this.skins.update(this.n, Math.max(this.scale, 1));
    const point = new THREE.Vector3(), colour = new THREE.Color();
    const stress = this.drawn.map(({ slices }) => slices.map((s) => s.stress && s.corners.map((_, c) => s.q.reduce((sum, i, k) => sum + s.stress![k]![c]! * this.n[i]!, 0))));
    for (const x of stress.flat(2)) if (x !== null && Math.abs(x) > this.largest) this.largest = Math.abs(x);
    this.drawn.forEach(({ slices, positions, colours }, b) => {
      let at = 0;
      slices.forEach((s, r) => {
        const pose = this.pose(s), home = s.body < 0 ? null : this.bodies[s.body]!.matrix;
        if (home) pose.premultiply(home);
        s.corners.forEach(([y, z], c) => {
          point.set(0, y, z).applyMatrix4(pose);
          const part = (stress[b]![r]?.[c] ?? 0) / this.largest;
          colour.copy(NONE).lerp(part < 0 ? PUSH : PULL, Math.min(1, Math.abs(part)));
          positions.setXYZ(at, point.x, point.y, point.z);
          colours.setXYZ(at++, colour.r, colour.g, colour.b);
        });
      });
      positions.needsUpdate = colours.needsUpdate = true;
    });
  }
}

function made(slices: Slice[]): Drawn {
  const sides = slices[0]!.corners.length, count = slices.length * sides, faces: number[] = [], last = count - sides;
  for (let r = 0; r + 1 < slices.length; r++) {
    for (let k = 0; k < sides; k++) {
      const a = r * sides + k, b = r * sides + (k + 1) % sides;
      faces.push(a, b, b + sides, a, b + sides, a + sides);
    }
  }
  for (let k = 1; k + 1 < sides; k++) faces.push(0, k + 1, k, last, last + k, last + k + 1);
  const geometry = new THREE.BufferGeometry(), numbers = () => new THREE.BufferAttribute(new Float32Array(3 * count), 3);
  const positions = numbers(), colours = numbers();
  geometry.setAttribute("position", positions).setAttribute("color", colours).setIndex(faces);
  const mesh = new THREE.Mesh(geometry, new THREE.MeshStandardMaterial({ vertexColors: true, flatShading: true, roughness: 0.6, metalness: 0.1 }));
  mesh.frustumCulled = false; // the bounding volume changes with the vertices
  return { mesh, slices, positions, colours };
}
