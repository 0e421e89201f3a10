// The paper's excavator, in the sizes of the mechanism: the cab turns about z; boom, stick and bucket lie along x with
// y up. Cylinders are drawn as on the real machine, although the paper's model has hydraulic motors in their place.

import * as THREE from "three";
import { bucket } from "./bucket";
import { Vec3 } from "./messages";
import { box, CHROME, DARK, LAMP, Look, outline, Pair, pin, plate, YELLOW } from "./parts";
import { stretched } from "./shapes";
import { house, tracks } from "./undercarriage";

const ARM = -0.16; // m, plane of boom, stick and bucket in the cab's y
const TIP: Pair = [1.35, -0.05], EAR: Pair = [-0.02, 0.42], WIDE = 1.0; // m

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

export function build(bodies: THREE.Group[], fixed: THREE.Group, ground: number): Look {
  const [cab, b, s, k] = bodies as [THREE.Group, THREE.Group, THREE.Group, THREE.Group], shovel = bucket(TIP, EAR, WIDE);
  const under = tracks(1.55, 2.24, 0.56, -ground);
  under.position.z = ground;
  fixed.add(under);
  cab.add(house(-2.5, 1.85, ARM, [1.4, 1.0], [1.8, 0.3]));
  b.add(boom());
  s.add(stick());
  k.add(shovel.group);
  const cylinders = [
    ...[-0.4, 0.4].map((y) => new Cylinder(cab, [1.8, ARM + y, 0.3], b, [2.05, 0.5, -0.75 * y], 0.1, 1.35, fixed)),
    new Cylinder(b, [2.5, 1.28, 0], s, [-0.5, 0.34, 0], 0.1, 1.75, fixed),
    new Cylinder(s, [0.25, 0.44, 0], k, [...EAR, 0], 0.075, 0.95, fixed),
  ];
  return {
    update: () => cylinders.forEach((c) => c.update()),
    eye: [1.02, 0.86, 1.62], ahead: [6.2, -0.05, -0.35], heart: [2.6, 0, 0.9], reach: 4.5,
    fill: shovel.fill,
  };
}
