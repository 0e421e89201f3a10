// Parts of excavators: plates, pins and cylinders, in the colours of construction machines.

import * as THREE from "three";
import { Vec3 } from "./messages";

export type Pair = [number, number];
const paint = (color: number, roughness = 0.5, metalness = 0.15) => new THREE.MeshStandardMaterial({ color, roughness, metalness });
export const YELLOW = paint(0xf3b11f, 0.42, 0.08), DARK = paint(0x2d3034, 0.6, 0.3), RUBBER = paint(0x33363a, 0.85, 0.1), EARTH = paint(0x6d5136, 1, 0);
export const STEEL = paint(0x8f969d, 0.4, 0.65), CHROME = paint(0xe4e8ec, 0.15, 0.95), BLADE = paint(0x6b6f74, 0.45, 0.6);
export const SEAT = paint(0x3b4048, 0.9, 0), LAMP = new THREE.MeshStandardMaterial({ color: 0xfff6d8, emissive: 0xfff0b8, emissiveIntensity: 0.7 });
export const GLASS = new THREE.MeshPhysicalMaterial({ color: 0xa9d3e6, transparent: true, opacity: 0.1, roughness: 0.05, metalness: 0, side: THREE.DoubleSide, depthWrite: false, envMapIntensity: 0 });

export function box(size: Vec3, at: Vec3, material: THREE.Material): THREE.Mesh {
  const mesh = new THREE.Mesh(new THREE.BoxGeometry(...size), material);
  mesh.position.set(...at);
  return mesh;
}

export function pin(r: number, length: number, at: Vec3, material = STEEL): THREE.Mesh {
  const mesh = new THREE.Mesh(new THREE.CylinderGeometry(r, r, length, 28), material);
  mesh.rotation.x = Math.PI / 2;
  mesh.position.set(...at);
  return mesh;
}

// A plate with an outline in x, y, extruded in z.
export function plate(shape: THREE.Shape, thick: number, material: THREE.Material, bevel = 0.025): THREE.Mesh {
  const geometry = new THREE.ExtrudeGeometry(shape, {
    depth: thick - 2 * bevel, bevelEnabled: bevel > 0, bevelSize: bevel, bevelThickness: bevel, bevelSegments: 2, curveSegments: 20,
  });
  geometry.translate(0, 0, -thick / 2 + bevel);
  return new THREE.Mesh(geometry, material);
}

export function outline(points: Pair[], round = true): THREE.Shape {
  const shape = new THREE.Shape();
  if (!round) { points.forEach(([x, y], i) => (i ? shape.lineTo(x, y) : shape.moveTo(x, y))); return shape; }
  const curve = new THREE.CatmullRomCurve3(points.map(([x, y]) => new THREE.Vector3(x, y, 0)), true, "catmullrom", 0.35);
  shape.setFromPoints(curve.getPoints(points.length * 10).map((p) => new THREE.Vector2(p.x, p.y)));
  return shape;
}

// A bar with round ends from a to b in x, y.
export function bar(a: Pair, b: Pair, r: number, thick: number, material: THREE.Material = YELLOW): THREE.Mesh {
  const turn = Math.atan2(b[1] - a[1], b[0] - a[0]), shape = new THREE.Shape();
  shape.absarc(a[0], a[1], r, turn + Math.PI / 2, turn + 1.5 * Math.PI, false);
  shape.absarc(b[0], b[1], r, turn - Math.PI / 2, turn + Math.PI / 2, false);
  return plate(shape, thick, material, 0.015);
}

// Rotate a part drawn upright in x, y into the plane of the arm, the x, z plane of a machine whose z is up.
export function standing(...parts: THREE.Object3D[]): THREE.Group {
  const g = new THREE.Group();
  g.rotation.x = Math.PI / 2;
  g.add(...parts);
  return g;
}

// Machine-specific drawing beyond the poses of the bodies. fill: shows a fraction of the bucket's capacity.
export interface Look { update(): void; eye: Vec3; ahead: Vec3; heart: Vec3; reach: number; fill(share: number): void }
