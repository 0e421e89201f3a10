// Tracks, house and cabin of an excavator, in axes with z up. The bottom of the house is z = 0, the bearing.

import * as THREE from "three";
import { box, DARK, GLASS, LAMP, outline, Pair, pin, plate, RUBBER, SEAT, standing, STEEL, YELLOW } from "./parts";

// Path around a track of two half circles and two straights: position and angle.
function round(s: number, half: number, r: number): [number, number, number] {
  if (s < 2 * half) return [-half + s, -r, 0];
  if ((s -= 2 * half) < Math.PI * r) { const a = s / r - Math.PI / 2; return [half + r * Math.cos(a), r * Math.sin(a), -s / r]; }
  if ((s -= Math.PI * r) < 2 * half) return [half - s, r, Math.PI];
  s -= 2 * half;
  const a = s / r + Math.PI / 2;
  return [-half + r * Math.cos(a), r * Math.sin(a), Math.PI - s / r];
}

function oval<T extends THREE.Path>(path: T, half: number, r: number): T {
  path.moveTo(-half, -r).lineTo(half, -r).absarc(half, 0, r, -Math.PI / 2, Math.PI / 2, false);
  path.lineTo(-half, r).absarc(-half, 0, r, Math.PI / 2, 1.5 * Math.PI, false);
  return path;
}

// half: half the distance between the wheels. The lowest point is z = 0, the bearing ends at `height`.
export function tracks(half: number, apart: number, width: number, height: number): THREE.Group {
  const all = new THREE.Group(), r = 0.39, shoes = 4 * Math.round((4 * half + 2 * Math.PI * r) / 0.8);
  const shape = oval(new THREE.Shape(), half, r);
  shape.holes.push(oval(new THREE.Path(), half, r - 0.09));
  const belt = plate(shape, width, RUBBER, 0.01).geometry, length = 4 * half + 2 * Math.PI * r;
  const shoe = new THREE.BoxGeometry(0.05, width + 0.02, 0.05), many = new THREE.InstancedMesh(shoe, DARK, 2 * shoes), place = new THREE.Object3D();
  [-1, 1].forEach((side, k) => {
    const y = (side * apart) / 2, loop = new THREE.Mesh(belt, RUBBER);
    loop.rotation.x = Math.PI / 2;
    loop.position.set(0, y, r);
    all.add(loop);
    for (let i = 0; i < shoes; i++) {
      const [x, z, turn] = round((i / shoes) * length, half, r);
      place.position.set(x, y, r + z);
      place.rotation.y = turn;
      place.updateMatrix();
      many.setMatrixAt(k * shoes + i, place.matrix);
    }
    const wheel = (x: number, z: number, R: number, wide: number, material: THREE.MeshStandardMaterial) => all.add(standing(pin(R, wide, [x, z, -y], material)));
    for (const x of [-half, half]) { wheel(x, r, 0.27, width - 0.1, STEEL); wheel(x, r, 0.12, width - 0.02, DARK); }
    const rollers = Math.round(half / 0.28);
    for (let i = 0; i < rollers; i++) wheel(-half + (2 * half * (i + 0.5)) / rollers, r - 0.19, 0.13, width - 0.12, DARK);
    all.add(box([1.6 * half, 0.3, 0.3], [0, y, r + 0.05], YELLOW));
  });
  all.add(many, box([1.5, apart - 0.24, 0.34], [0, 0, r + 0.13], DARK));
  const ring = new THREE.Mesh(new THREE.CylinderGeometry(0.72, 0.78, height - r - 0.35, 40), STEEL);
  ring.rotation.x = Math.PI / 2;
  ring.position.z = (height + r + 0.25) / 2;
  all.add(ring);
  return all;
}

// tail, front: rear end, and front end beside the cabin. arm: y of the boom's plane. foot: the boom's pin in x, z.
export function house(tail: number, front: number, arm: number, foot: Pair, cylinder: Pair): THREE.Group {
  const g = new THREE.Group(), wide = 1.25, engine = tail + 0.65, ends = engine + 1.6, deck = front - 0.1;
  g.add(box([deck - tail - 0.35, 2 * wide, 0.2], [(deck + tail + 0.35) / 2, 0, 0.03], DARK));
  g.add(box([ends - engine, 2 * wide - 0.04, 0.86], [(engine + ends) / 2, 0, 0.56], YELLOW), box([ends - engine - 0.05, 2 * wide - 0.2, 0.06], [(engine + ends) / 2, 0, 1.02], DARK));
  const weight = plate(outline([[tail + 0.15, -1.1], [tail, 0], [tail + 0.15, 1.1], [tail + 0.7, wide], [tail + 0.7, -wide]]), 0.95, YELLOW, 0.05);
  weight.position.z = 0.56;
  g.add(weight, box([0.03, 1.7, 0.2], [tail + 0.03, 0, 0.78], DARK));
  for (let k = 0; k < 6; k++) for (const y of [-wide + 0.01, wide - 0.01]) g.add(box([ends - engine - 0.45, 0.02, 0.05], [(engine + ends) / 2, y, 0.3 + 0.1 * k], DARK));
  const stack = new THREE.Mesh(new THREE.CylinderGeometry(0.07, 0.07, 0.5, 16), DARK);
  stack.rotation.x = Math.PI / 2;
  stack.position.set(ends - 0.45, -0.75, 1.3);
  // Tank and steps on the right of the boom.
  const tank = arm - 0.46 + wide, middle = (arm - 0.46 - wide) / 2;
  g.add(stack, box([deck - ends, tank, 0.55], [(deck + ends) / 2, middle, 0.4], YELLOW), box([deck - ends - 0.1, tank - 0.1, 0.04], [(deck + ends) / 2, middle, 0.7], DARK));
  for (const x of [deck - 0.15, deck - 0.6, ends + 0.2]) g.add(box([0.03, 0.03, 0.5], [x, -wide + 0.08, 0.92], DARK));
  g.add(box([deck - ends - 0.3, 0.03, 0.03], [(deck + ends) / 2, -wide + 0.08, 1.17], DARK));
  // The foot of the boom: two plates that hold its pin and those of its cylinders.
  for (const y of [arm - 0.29, arm + 0.29]) {
    const [x, z] = foot, [cx, cz] = cylinder;
    const cheek = standing(plate(outline([[x - 0.75, 0.1], [cx + 0.1, 0.1], [cx + 0.17, cz], [cx - 0.02, cz + 0.2], [x + 0.2, z + 0.1], [x, z + 0.19], [x - 0.2, z + 0.1]]), 0.09, YELLOW));
    cheek.position.y = y;
    g.add(cheek);
  }
  const held = standing(pin(0.11, 0.9, [...foot, 0]), pin(0.09, 1.0, [...cylinder, 0]));
  held.position.y = arm;
  g.add(held, cabin(front - 1.75, front, arm + 0.56, arm + 1.46));
  return g;
}

function cabin(x0: number, x1: number, y0: number, y1: number): THREE.Group {
  const g = new THREE.Group(), z0 = 0.12, z1 = 2.05, t = 0.055;
  const xm = (x0 + x1) / 2, ym = (y0 + y1) / 2, dx = x1 - x0, dy = y1 - y0;
  g.add(box([dx, dy, 0.08], [xm, ym, z0], DARK), box([dx + 0.06, dy + 0.06, 0.09], [xm, ym, z1], YELLOW));
  g.add(box([dx - 0.25, t, 0.75], [xm - 0.1, y1, z0 + 0.4], YELLOW), box([dx - 0.25, t, 0.75], [xm - 0.1, y0, z0 + 0.4], YELLOW));
  g.add(box([t, dy, 1.0], [x0, ym, z0 + 0.5], YELLOW), box([t, dy, 0.34], [x1, ym, z0 + 0.17], YELLOW));
  for (const y of [y0, y1]) {
    g.add(box([t, t, z1 - z0], [x0, y, (z0 + z1) / 2], DARK), box([t, t, z1 - z0], [x1, y, (z0 + z1) / 2], DARK));
    g.add(box([t * 0.8, t * 0.8, z1 - z0 - 0.7], [xm - 0.25, y, (z0 + z1) / 2 + 0.35], DARK));
    g.add(box([dx, 0.012, z1 - z0 - 0.8], [xm, y, (z0 + z1) / 2 + 0.38], GLASS));
  }
  g.add(box([0.012, dy, z1 - z0 - 0.38], [x1, ym, (z0 + z1) / 2 + 0.17], GLASS), box([0.012, dy, 0.85], [x0, ym, z1 - 0.46], GLASS));
  // Seat, consoles with their sticks, lamps.
  g.add(box([0.5, 0.5, 0.14], [x0 + 0.62, ym, 0.55], SEAT), box([0.12, 0.5, 0.65], [x0 + 0.35, ym, 0.92], SEAT));
  for (const y of [ym - 0.33, ym + 0.33]) {
    g.add(box([0.5, 0.12, 0.1], [x0 + 0.85, y, 0.74], SEAT));
    const stick = new THREE.Mesh(new THREE.CylinderGeometry(0.02, 0.025, 0.22, 12), DARK);
    stick.rotation.x = Math.PI / 2;
    stick.position.set(x0 + 1.02, y, 0.9);
    g.add(stick, box([0.07, 0.14, 0.08], [x1 + 0.04, y, z1 + 0.08], LAMP));
  }
  return g;
}
