// A bucket with teeth, drawn upright: pin at 0, teeth along x, back towards +y; and its load of earth.

import * as THREE from "three";
import { BLADE, EARTH, outline, Pair, pin, plate, STEEL, YELLOW } from "./parts";

// The distance from pin to teeth across the mouth is 1; the back is a curved sheet between them.
const BACK: Pair[] = [[-0.08, 0.17], [0.06, 0.41], [0.3, 0.61], [0.6, 0.64], [0.82, 0.48], [0.94, 0.22], [0.975, -0.015]];
const DEEP: Pair = [0.52, 0.6]; // deepest point, where filling begins

export interface Bucket { group: THREE.Group; fill(share: number): void }

export function bucket(tip: Pair, ear: Pair, wide: number): Bucket {
  const group = new THREE.Group(), k = Math.hypot(...tip), turn = Math.atan2(tip[1], tip[0]), shell = new THREE.Group();
  shell.rotation.z = turn;
  const curve = new THREE.CatmullRomCurve3(BACK.map(([x, y]) => new THREE.Vector3(k * x, k * y, 0))), path = curve.getPoints(36);
  const sheet = new THREE.Shape(path.map((p) => new THREE.Vector2(p.x, p.y)));
  [...path].reverse().forEach((p, i, all) => {
    const d = all[Math.min(i + 1, all.length - 1)]!.clone().sub(all[Math.max(i - 1, 0)]!).normalize();
    sheet.lineTo(p.x - 0.05 * d.y, p.y + 0.05 * d.x);
  });
  shell.add(plate(sheet, wide, BLADE, 0));
  const cheek = new THREE.Shape(path.map((p) => new THREE.Vector2(p.x, p.y)));
  cheek.lineTo(0.7 * k, -0.06 * k);
  cheek.lineTo(0.08 * k, -0.07 * k);
  for (const z of [-wide / 2, wide / 2]) shell.add(plate(cheek, 0.045, BLADE, 0).translateZ(z));
  const teeth = 5, lip = plate(outline([[0.93 * k, 0.12], [k - 0.1, 0.1], [k - 0.04, -0.03], [k - 0.1, -0.04], [0.95 * k, 0.02]], false), wide + 0.04, STEEL, 0);
  for (let i = 0; i < teeth; i++) {
    const tooth = new THREE.Mesh(new THREE.ConeGeometry(0.075, 0.3, 4), STEEL);
    tooth.position.set(k - 0.06, -0.1, (i / (teeth - 1) - 0.5) * (wide - 0.16));
    tooth.rotation.z = Math.PI + 0.35;
    shell.add(tooth);
  }
  shell.add(lip);
  for (const z of [-0.24, 0.24]) group.add(plate(outline([[-0.14, -0.1], [0.12, -0.12], [ear[0] + 0.34, ear[1] + 0.08], [ear[0] + 0.12, ear[1] + 0.2], [ear[0] - 0.12, ear[1] + 0.08]]), 0.06, YELLOW).translateZ(z));
  group.add(shell, pin(0.08, 0.6, [0, 0, 0]), pin(0.065, 0.56, [...ear, 0]));
  // The earth: the space between back and mouth, and a heap; it grows from the deepest point.
  const heap = new THREE.Shape(path.slice(3, -2).map((p) => new THREE.Vector2(p.x - DEEP[0] * k, p.y - DEEP[1] * k)));
  const [from, to] = [path[path.length - 3]!, path[3]!].map((p) => new THREE.Vector2(p.x - DEEP[0] * k, p.y - DEEP[1] * k)) as [THREE.Vector2, THREE.Vector2];
  heap.bezierCurveTo(from.x - 0.2 * k, from.y - 0.32 * k, to.x + 0.25 * k, to.y - 0.42 * k, to.x, to.y);
  const earth = plate(heap, wide - 0.06, EARTH, 0.03);
  earth.position.set(DEEP[0] * k, DEEP[1] * k - 0.02, 0);
  earth.visible = false;
  shell.add(earth);
  return {
    group,
    fill: (share) => { earth.visible = share > 0.01; earth.scale.set(0.35 + 0.62 * share, 0.12 + 0.88 * share, 1); },
  };
}
