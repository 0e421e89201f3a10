// Meshes of a mechanism known only by joints and inertias: the shapes of view/scene.py.

import * as THREE from "three";
import { Scene, Shape, Vec3 } from "./messages";

const BODIES = [0xf0a830, 0x4f86c6, 0x5fa777, 0xc96f53, 0x8a78b8, 0x4aa3a2, 0xb5894d, 0xc06c9c];
const JOINT = new THREE.MeshStandardMaterial({ color: 0x3a3f45, roughness: 0.45, metalness: 0.5 });
const ROD = new THREE.MeshStandardMaterial({ color: 0xc9ced3, roughness: 0.25, metalness: 0.8 });
const Y = new THREE.Vector3(0, 1, 0);
const vec = (v: Vec3) => new THREE.Vector3(...v);

// Place an object that extends along y from a to b.
function laid(geometry: THREE.BufferGeometry, material: THREE.Material, at: THREE.Vector3, along: THREE.Vector3): THREE.Mesh {
  const mesh = new THREE.Mesh(geometry, material);
  mesh.position.copy(at);
  mesh.quaternion.setFromUnitVectors(Y, along.clone().normalize());
  return mesh;
}

function bar(s: Shape, material: THREE.Material): THREE.Object3D[] {
  const a = vec(s.a!), b = vec(s.b!), along = b.clone().sub(a), length = along.length();
  const ball = (at: THREE.Vector3, r: number) => {
    const mesh = new THREE.Mesh(new THREE.SphereGeometry(r, 20, 14), material);
    mesh.position.copy(at);
    return mesh;
  };
  const tube = laid(new THREE.CylinderGeometry(s.rb!, s.ra!, length, 24), material, a.clone().add(b).multiplyScalar(0.5), along);
  return [tube, ball(a, s.ra!), ball(b, s.rb!)];
}

function box(s: Shape, material: THREE.Material): THREE.Object3D {
  const mesh = new THREE.Mesh(new THREE.BoxGeometry(...(s.half!.map((h) => 2 * h) as Vec3)), material);
  const [x, y, z] = s.axes as [Vec3, Vec3, Vec3]; // rows of a matrix whose columns are the box's axes
  const m = new THREE.Matrix4().set(...x, 0, ...y, 0, ...z, 0, 0, 0, 0, 1);
  mesh.quaternion.setFromRotationMatrix(m);
  mesh.position.copy(vec(s.at!));
  return mesh;
}

function one(s: Shape, material: THREE.Material): THREE.Object3D[] {
  switch (s.kind) {
    case "bar": return bar(s, material);
    case "box": return [box(s, material)];
    case "ball": return [new THREE.Mesh(new THREE.SphereGeometry(s.r!, 24, 16), material)];
    case "disc": return [laid(new THREE.CylinderGeometry(s.r!, s.r!, 2 * s.h!, 32), material, vec(s.at!), vec(s.axis!))];
    case "slide": return [laid(new THREE.CylinderGeometry(1.3 * s.r!, 1.3 * s.r!, 2 * s.h!, 4), material, vec(s.at!), vec(s.axis!))];
    case "rod": return []; // see below
    case "mesh": return [mesh(s)];
  }
}

function bytes(text: string): ArrayBuffer {
  const letters = atob(text), out = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) out[i] = letters.charCodeAt(i);
  return out.buffer;
}

// Triangles of the robot's file, in its colour.
function mesh(s: Shape): THREE.Mesh {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(bytes(s.corners!)), 3));
  geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(bytes(s.faces!)), 1));
  const flat = geometry.toNonIndexed();
  flat.computeVertexNormals();
  const material = new THREE.MeshStandardMaterial({ color: new THREE.Color().setRGB(...s.colour!, THREE.SRGBColorSpace), roughness: 0.6, metalness: 0.15, side: THREE.DoubleSide });
  return new THREE.Mesh(flat, material);
}

export function build(scene: Scene, bodies: THREE.Group[], ground: THREE.Group): (() => void) {
  const moving: (() => void)[] = [];
  for (const s of scene.shapes) {
    const colour = s.body < 0 ? 0x8b9197 : BODIES[s.body % BODIES.length]!;
    const material = s.joint ? JOINT : new THREE.MeshStandardMaterial({ color: colour, roughness: 0.55, metalness: 0.1 });
    const home = s.body < 0 ? ground : bodies[s.body]!;
    for (const mesh of one(s, material)) home.add(mesh);
    if (s.kind === "rod") moving.push(rod(s, bodies, ground));
  }
  return () => moving.forEach((f) => f());
}

// A rod from the parent to a slider, of variable length.
function rod(s: Shape, bodies: THREE.Group[], ground: THREE.Group): () => void {
  const mesh = new THREE.Mesh(new THREE.CylinderGeometry(s.r!, s.r!, 1, 16), ROD), a = new THREE.Vector3(), b = new THREE.Vector3();
  ground.add(mesh);
  return () => {
    a.copy(vec(s.from!));
    if (s.parent! >= 0) a.applyMatrix4(bodies[s.parent!]!.matrix);
    b.setFromMatrixPosition(bodies[s.body]!.matrix);
    stretched(mesh, a, b);
  };
}

// Place a mesh of length 1 along y between two points.
export function stretched(mesh: THREE.Object3D, a: THREE.Vector3, b: THREE.Vector3): void {
  const along = b.clone().sub(a), length = along.length();
  mesh.visible = length > 1e-4;
  mesh.position.copy(a).addScaledVector(along, 0.5);
  mesh.scale.set(1, Math.max(length, 1e-4), 1);
  if (length > 1e-9) mesh.quaternion.setFromUnitVectors(Y, along.divideScalar(length));
}
