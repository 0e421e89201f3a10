// The excavator, by hand. Frames and sizes are the mechanism's: the cab turns about z, boom, stick and bucket are along
// their x with y up. Drawn are cylinders, as on the real machine, though the paper's model has hydraulic motors instead.

import * as THREE from "three";
import { Vec3 } from "./messages";
import { stretched } from "./shapes";

const paint = (color: number, roughness = 0.5, metalness = 0.15) => new THREE.MeshStandardMaterial({ color, roughness, metalness });
const YELLOW = paint(0xf3b11f, 0.42, 0.08), DARK = paint(0x2d3034, 0.6, 0.3), RUBBER = paint(0x33363a, 0.85, 0.1);
const STEEL = paint(0x8f969d, 0.4, 0.65), CHROME = paint(0xe4e8ec, 0.15, 0.95), BLADE = paint(0x6b6f74, 0.45, 0.6);
const SEAT = paint(0x3b4048, 0.9, 0), LAMP = new THREE.MeshStandardMaterial({ color: 0xfff6d8, emissive: 0xfff0b8, emissiveIntensity: 0.7 });
const GLASS = new THREE.MeshPhysicalMaterial({ color: 0xa9d3e6, transparent: true, opacity: 0.1, roughness: 0.05, metalness: 0, side: THREE.DoubleSide, depthWrite: false, envMapIntensity: 0 });
const ARM = -0.16; // m, the plane of boom, stick and bucket in the cab's y
export const EYE: Vec3 = [1.02, 0.98, 1.62], LOOK: Vec3 = [6.2, -0.05, -0.35]; // the operator's, in the cab's frame

function box(size: Vec3, at: Vec3, material: THREE.Material): THREE.Mesh {
  const mesh = new THREE.Mesh(new THREE.BoxGeometry(...size), material);
  mesh.position.set(...at);
  return mesh;
}

function pin(r: number, length: number, at: Vec3, material = STEEL): THREE.Mesh {
  const mesh = new THREE.Mesh(new THREE.CylinderGeometry(r, r, length, 28), material);
  mesh.rotation.x = Math.PI / 2;
  mesh.position.set(...at);
  return mesh;
}

// A plate cut along an outline in x, y and made thick in z.
function plate(shape: THREE.Shape, thick: number, material: THREE.Material, bevel = 0.025): THREE.Mesh {
  const geometry = new THREE.ExtrudeGeometry(shape, {
    depth: thick - 2 * bevel, bevelEnabled: bevel > 0, bevelSize: bevel, bevelThickness: bevel, bevelSegments: 2, curveSegments: 20,
  });
  geometry.translate(0, 0, -thick / 2 + bevel);
  return new THREE.Mesh(geometry, material);
}

function outline(points: [number, number][], round = true): THREE.Shape {
  const shape = new THREE.Shape();
  if (!round) { points.forEach(([x, y], i) => (i ? shape.lineTo(x, y) : shape.moveTo(x, y))); return shape; }
  const curve = new THREE.CatmullRomCurve3(points.map(([x, y]) => new THREE.Vector3(x, y, 0)), true, "catmullrom", 0.35);
  shape.setFromPoints(curve.getPoints(points.length * 10).map((p) => new THREE.Vector2(p.x, p.y)));
  return shape;
}

function tracks(ground: number): THREE.Group {
  const all = new THREE.Group(), h = 0.78, r = h / 2, half = 1.55, z = ground + r;
  for (const side of [-1, 1]) {
    const y = side * 1.12, width = 0.56;
    const oval = new THREE.Shape();
    oval.moveTo(-half, -r); oval.lineTo(half, -r); oval.absarc(half, 0, r, -Math.PI / 2, Math.PI / 2, false);
    oval.lineTo(-half, r); oval.absarc(-half, 0, r, Math.PI / 2, 1.5 * Math.PI, false);
    const hole = new THREE.Path(), q = r - 0.09;
    hole.moveTo(-half, -q); hole.lineTo(half, -q); hole.absarc(half, 0, q, -Math.PI / 2, Math.PI / 2, false);
    hole.lineTo(-half, q); hole.absarc(-half, 0, q, Math.PI / 2, 1.5 * Math.PI, false);
    oval.holes.push(hole);
    const belt = plate(oval, width, RUBBER, 0.01);
    belt.rotation.x = Math.PI / 2;
    belt.position.set(0, y, z);
    all.add(belt);
    // shoes
    const count = 44, length = 4 * half + 2 * Math.PI * r;
    for (let i = 0; i < count; i++) {
      let s = (i / count) * length, x = 0, zz = 0, turn = 0;
      if (s < 2 * half) { x = -half + s; zz = -r; }
      else if ((s -= 2 * half) < Math.PI * r) { const a = -Math.PI / 2 + s / r; x = half + r * Math.cos(a); zz = r * Math.sin(a); turn = -(a + Math.PI / 2); }
      else if ((s -= Math.PI * r) < 2 * half) { x = half - s; zz = r; turn = Math.PI; }
      else { s -= 2 * half; const a = Math.PI / 2 + s / r; x = -half + r * Math.cos(a); zz = r * Math.sin(a); turn = -(a + Math.PI / 2); }
      const shoe = box([0.05, width + 0.02, 0.05], [x, y, z + zz], DARK);
      shoe.rotation.y = turn;
      all.add(shoe);
    }
    for (const [x, R] of [[-half, 0.27], [half, 0.27]] as const) all.add(pin(R, width - 0.1, [x, 0, 0], STEEL).translateY(0));
    all.children.slice(-2).forEach((w, i) => { w.rotation.set(0, 0, 0); w.position.set(i ? half : -half, y, z); });
    for (let k = -2; k <= 2; k++) { const w = pin(0.13, width - 0.12, [0, 0, 0], DARK); w.rotation.set(0, 0, 0); w.position.set(k * 0.55, y, z - 0.2); all.add(w); }
    all.add(box([2.5, 0.3, 0.3], [0, y, z + 0.05], YELLOW));
  }
  all.add(box([1.5, 2.0, 0.34], [0, 0, ground + 0.52], DARK));
  const ring = new THREE.Mesh(new THREE.CylinderGeometry(0.72, 0.78, 0.26, 40), STEEL);
  ring.rotation.x = Math.PI / 2;
  ring.position.set(0, 0, ground + 0.8);
  all.add(ring);
  return all;
}

function house(): THREE.Group {
  const g = new THREE.Group();
  g.add(box([3.5, 2.5, 0.2], [-0.35, 0, 0.03], DARK));
  // engine, counterweight, deck
  g.add(box([1.55, 2.46, 0.86], [-1.1, 0, 0.56], YELLOW), box([1.5, 2.3, 0.06], [-1.1, 0, 1.02], DARK));
  const weight = plate(outline([[-2.35, -1.1], [-2.5, 0], [-2.35, 1.1], [-1.8, 1.25], [-1.8, -1.25]]), 0.95, YELLOW, 0.05);
  weight.position.z = 0.56;
  g.add(weight, box([0.03, 1.7, 0.2], [-2.47, 0, 0.78], DARK));
  for (let k = 0; k < 6; k++) g.add(box([1.1, 0.02, 0.05], [-1.1, -1.24, 0.3 + 0.1 * k], DARK));
  const stack = new THREE.Mesh(new THREE.CylinderGeometry(0.07, 0.07, 0.5, 16), DARK);
  stack.rotation.x = Math.PI / 2;
  stack.position.set(-0.75, -0.75, 1.3);
  g.add(stack);
  g.add(box([1.5, 0.85, 0.55], [0.45, -0.82, 0.4], YELLOW), box([1.4, 0.75, 0.04], [0.45, -0.82, 0.7], DARK));
  // the foot of the boom: two cheeks
  for (const y of [ARM - 0.36, ARM + 0.36]) {
    const cheek = plate(outline([[0.55, 0.1], [1.95, 0.1], [1.75, 0.7], [1.55, 1.17], [1.3, 1.17], [0.9, 0.7]]), 0.1, YELLOW);
    cheek.rotation.x = Math.PI / 2;
    cheek.position.y = y;
    g.add(cheek);
  }
  const foot = pin(0.11, 0.95, [1.4, ARM, 1.0]);
  foot.rotation.set(0, 0, 0);
  g.add(foot, cabin());
  return g;
}

function cabin(): THREE.Group {
  const g = new THREE.Group(), x0 = 0.1, x1 = 1.85, y0 = 0.42, y1 = 1.3, z0 = 0.12, z1 = 2.05, t = 0.055;
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
  // seat, consoles with their sticks, lamps
  g.add(box([0.5, 0.5, 0.14], [0.72, ym, 0.55], SEAT), box([0.12, 0.5, 0.65], [0.45, ym, 0.92], SEAT));
  for (const y of [ym - 0.33, ym + 0.33]) {
    g.add(box([0.5, 0.12, 0.1], [0.95, y, 0.74], SEAT));
    const stick = new THREE.Mesh(new THREE.CylinderGeometry(0.02, 0.025, 0.22, 12), DARK);
    stick.rotation.x = Math.PI / 2;
    stick.position.set(1.12, y, 0.9);
    g.add(stick);
    g.add(box([0.07, 0.14, 0.08], [x1 + 0.04, y, z1 + 0.08], LAMP));
  }
  return g;
}

function boom(): THREE.Group {
  const g = new THREE.Group();
  g.add(plate(outline([
    [-0.2, 0.05], [0.05, 0.24], [1.2, 0.78], [2.2, 1.12], [2.75, 1.08], [4.0, 0.6], [5.2, 0.22], [5.38, 0.0], [5.2, -0.2],
    [4.1, 0.08], [2.9, 0.46], [2.25, 0.5], [1.2, 0.16], [0.15, -0.22], [-0.15, -0.14],
  ]), 0.42, YELLOW));
  g.add(pin(0.2, 0.5, [0, 0, 0], YELLOW), pin(0.1, 0.62, [0, 0, 0]), pin(0.12, 0.62, [5.2, 0, 0]), pin(0.09, 0.66, [2.05, 0.5, 0]));
  for (const z of [-0.13, 0.13]) g.add(box([0.3, 0.34, 0.06], [2.5, 1.18, z], YELLOW));
  g.add(pin(0.07, 0.4, [2.5, 1.28, 0]));
  for (const z of [-0.24, 0.24]) g.add(box([0.12, 0.1, 0.08], [3.6, 0.55, z], LAMP));
  return g;
}

function stick(): THREE.Group {
  const g = new THREE.Group();
  g.add(plate(outline([
    [-0.62, 0.36], [-0.5, 0.46], [-0.15, 0.4], [0.4, 0.34], [1.2, 0.22], [1.86, 0.13], [1.95, 0], [1.86, -0.13], [1.0, -0.2], [0.1, -0.26],
    [-0.16, -0.16], [-0.3, 0.1], [-0.6, 0.22],
  ]), 0.34, YELLOW));
  for (const z of [-0.26, 0.26]) g.add(plate(outline([[-0.15, -0.2], [0.2, -0.22], [0.25, 0.2], [-0.15, 0.25]]), 0.06, YELLOW).translateZ(z));
  g.add(pin(0.1, 0.66, [0, 0, 0]), pin(0.08, 0.44, [-0.5, 0.34, 0]), pin(0.09, 0.5, [1.8, 0, 0]), pin(0.06, 0.44, [0.25, 0.44, 0]));
  for (const z of [-0.12, 0.12]) g.add(box([0.22, 0.24, 0.05], [0.25, 0.38, z], YELLOW));
  return g;
}

function bucket(): THREE.Group {
  const g = new THREE.Group(), wide = 1.0;
  // The back is a bent sheet from the hinge round to the teeth; sides close it.
  const back: [number, number][] = [[-0.1, 0.22], [0.08, 0.55], [0.4, 0.82], [0.8, 0.86], [1.1, 0.64], [1.26, 0.3], [1.3, -0.02]];
  const curve = new THREE.CatmullRomCurve3(back.map(([x, y]) => new THREE.Vector3(x, y, 0))), path = curve.getPoints(36);
  const sheet = new THREE.Shape();
  path.forEach((p, i) => (i ? sheet.lineTo(p.x, p.y) : sheet.moveTo(p.x, p.y)));
  [...path].reverse().forEach((p, i, all) => {
    const q = all[Math.min(i + 1, all.length - 1)]!, o = all[Math.max(i - 1, 0)]!, d = q.clone().sub(o).normalize();
    sheet.lineTo(p.x + d.y * -0.05, p.y + d.x * 0.05);
  });
  g.add(plate(sheet, wide, BLADE, 0));
  const side = new THREE.Shape();
  path.forEach((p, i) => (i ? side.lineTo(p.x, p.y) : side.moveTo(p.x, p.y)));
  side.lineTo(0.95, -0.08); side.lineTo(0.1, -0.1);
  for (const z of [-wide / 2, wide / 2]) g.add(plate(side, 0.045, BLADE, 0).translateZ(z));
  for (let k = 0; k < 5; k++) {
    const tooth = new THREE.Mesh(new THREE.ConeGeometry(0.075, 0.26, 4), STEEL);
    tooth.position.set(1.33, -0.08, -0.42 + 0.21 * k);
    tooth.rotation.z = Math.PI + 0.25;
    g.add(tooth);
  }
  for (const z of [-0.22, 0.22]) g.add(plate(outline([[-0.14, -0.1], [0.12, -0.12], [0.32, 0.5], [0.1, 0.62], [-0.14, 0.5]]), 0.06, YELLOW).translateZ(z));
  g.add(pin(0.08, 0.56, [0, 0, 0]), pin(0.06, 0.52, [-0.02, 0.42, 0]));
  return g;
}

// A hydraulic cylinder between points of two bodies.
class Cylinder {
  private readonly barrel: THREE.Mesh;
  private readonly rod: THREE.Mesh;
  constructor(private a: THREE.Group, private pa: Vec3, private b: THREE.Group, private pb: Vec3, r: number, private share: number, home: THREE.Group) {
    this.barrel = new THREE.Mesh(new THREE.CylinderGeometry(r, r, 1, 24), DARK);
    this.rod = new THREE.Mesh(new THREE.CylinderGeometry(0.55 * r, 0.55 * r, 1, 20), CHROME);
    home.add(this.barrel, this.rod);
  }
  update(): void {
    const a = new THREE.Vector3(...this.pa).applyMatrix4(this.a.matrix), b = new THREE.Vector3(...this.pb).applyMatrix4(this.b.matrix);
    const middle = a.clone().add(b.clone().sub(a).setLength(this.share));
    stretched(this.barrel, a, middle);
    stretched(this.rod, middle, b);
  }
}

export function build(bodies: THREE.Group[], fixed: THREE.Group, ground: number): () => void {
  const [cab, b, s, k] = bodies as [THREE.Group, THREE.Group, THREE.Group, THREE.Group];
  fixed.add(tracks(ground));
  cab.add(house());
  b.add(boom());
  s.add(stick());
  k.add(bucket());
  const cylinders = [
    ...[-0.3, 0.3].map((y) => new Cylinder(cab, [1.85, ARM + y, 0.28], b, [2.05, 0.5, -y], 0.1, 1.35, fixed)),
    new Cylinder(b, [2.5, 1.28, 0], s, [-0.5, 0.34, 0], 0.1, 1.75, fixed),
    new Cylinder(s, [0.25, 0.44, 0], k, [-0.02, 0.42, 0], 0.075, 0.95, fixed),
  ];
  return () => cylinders.forEach((c) => c.update());
}
