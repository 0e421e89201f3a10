// excavator_linkage, drawn around its pins: joints and frames of the mechanism determine where plates, cylinders, lever and
// link are. Body axes are parallel to the world at the start; `Side` rotates a part drawn upright, from pin to pin, into them.

import * as THREE from "three";
import { bucket } from "./bucket";
import { Scene, Vec3 } from "./messages";
import { bar, box, CHROME, DARK, LAMP, Look, outline, Pair, pin, plate, STEEL, YELLOW } from "./parts";
import { house, tracks } from "./undercarriage";

const BEARING = 1.02, WIDE = 1.2; // m

class Side {
  readonly group = new THREE.Group();
  private readonly turn: number;
  readonly length: number;

  // x of the drawing: from the body's pin to `to`, a point of the body.
  constructor(to: Vec3) {
    this.turn = Math.atan2(to[2], to[0]);
    this.length = Math.hypot(to[0], to[2]);
    this.group.quaternion.setFromRotationMatrix(new THREE.Matrix4().makeBasis(this.direction(1, 0), this.direction(0, 1), new THREE.Vector3(0, -1, 0)));
  }

  direction(x: number, y: number): THREE.Vector3 {
    const c = Math.cos(this.turn), s = Math.sin(this.turn);
    return new THREE.Vector3(c * x - s * y, 0, s * x + c * y);
  }

  // A point of the body in the drawing.
  at(p: Vec3): Pair {
    const c = Math.cos(this.turn), s = Math.sin(this.turn);
    return [c * p[0] + s * p[2], c * p[2] - s * p[0]];
  }
}

const both = (z: number, made: () => THREE.Object3D) => [-z, z].map((at) => made().translateZ(at));

function boom(side: Side, eye: Pair, foot: Pair): THREE.Group {
  const L = side.length, [ex, ey] = eye, [fx, fy] = foot;
  side.group.add(
    plate(outline([
      [-0.22, 0.06], [0.05, 0.28], [0.5 * ex, ey - 0.02], [ex - 0.25, ey + 0.24], [ex + 0.1, ey + 0.2], [fx + 0.1, fy - 0.13], [0.74 * L, 0.45], [L - 0.1, 0.24],
      [L + 0.2, 0], [L - 0.1, -0.22], [0.74 * L, 0.0], [fx, 0.3], [ex - 0.2, ey - 0.34], [0.55 * ex, 0.14], [0.2, -0.26], [-0.15, -0.18],
    ]), 0.46, YELLOW),
    pin(0.22, 0.54, [0, 0, 0], YELLOW), pin(0.11, 0.66, [0, 0, 0]), pin(0.13, 0.7, [L, 0, 0]), pin(0.1, 0.96, [ex, ey, 0]), pin(0.08, 0.46, [fx, fy, 0]),
    ...both(0.16, () => plate(outline([[fx - 0.3, fy - 0.3], [fx - 0.12, fy + 0.06], [fx, fy + 0.14], [fx + 0.12, fy + 0.06], [fx + 0.3, fy - 0.34]]), 0.06, YELLOW)),
    ...both(0.26, () => box([0.14, 0.1, 0.08], [0.66 * L, 0.5, 0], LAMP)),
  );
  return side.group;
}

function stick(side: Side, eye: Pair, foot: Pair, lever: Pair): THREE.Group {
  const L = side.length, [ex, ey] = eye, [fx, fy] = foot;
  side.group.add(
    plate(outline([
      [ex - 0.17, ey], [ex - 0.02, ey + 0.17], [-0.3, 0.5], [fx, fy - 0.16], [fx + 0.6, 0.36], [lever[0], lever[1] + 0.2], [L + 0.02, 0.14], [L + 0.13, 0], [L, -0.14],
      [0.5 * L, -0.2], [0.3, -0.3], [-0.1, -0.28], [-0.34, -0.06], [ex, ey - 0.17],
    ]), 0.36, YELLOW),
    ...both(0.29, () => plate(outline([[-0.24, -0.2], [0.2, -0.24], [0.28, 0.22], [-0.16, 0.3]]), 0.07, YELLOW)),
    pin(0.11, 0.72, [0, 0, 0]), pin(0.09, 0.5, [ex, ey, 0]), pin(0.09, 0.6, [L, 0, 0]), pin(0.07, 0.44, [fx, fy, 0]), pin(0.075, 0.62, [...lever, 0]),
    ...both(0.14, () => plate(outline([[fx - 0.26, fy - 0.24], [fx - 0.1, fy + 0.06], [fx, fy + 0.12], [fx + 0.1, fy + 0.06], [fx + 0.3, fy - 0.26]]), 0.05, YELLOW)),
  );
  return side.group;
}

// Barrel and rod are separate bodies, so the rod slides as in the model.
function barrel(to: Vec3, length: number, r: number, lines: number[]): THREE.Group {
  const side = new Side(to);
  for (const z of lines) {
    const tube = new THREE.Mesh(new THREE.CylinderGeometry(r, r, length - r, 28), DARK), cap = new THREE.Mesh(new THREE.CylinderGeometry(1.12 * r, 1.12 * r, 0.13, 28), STEEL);
    tube.rotation.z = cap.rotation.z = -Math.PI / 2;
    tube.position.set((length + r) / 2, 0, z);
    cap.position.set(length - 0.05, 0, z);
    side.group.add(tube, cap, pin(1.25 * r, 1.5 * r, [0, 0, z], DARK));
  }
  return side.group;
}

function rod(back: Vec3, r: number, lines: number[]): THREE.Group {
  const side = new Side(back); // towards the barrel
  for (const z of lines) {
    const bright = new THREE.Mesh(new THREE.CylinderGeometry(r, r, side.length, 24), CHROME);
    bright.rotation.z = Math.PI / 2;
    bright.position.set(side.length / 2, 0, z);
    side.group.add(bright, pin(2.1 * r, 2.6 * r, [0, 0, z], DARK));
  }
  return side.group;
}

export function build(scene: Scene, bodies: THREE.Group[], fixed: THREE.Group): Look {
  const body = (name: string) => bodies[scene.bodies.indexOf(name)]!;
  // Bodies on a node of a flexible boom are drawn on the boom, at the undeformed position of the node.
  const at = (carrier: number, p: Vec3): Vec3 => {
    const node = scene.nodes.find((x) => x.body === carrier);
    return node ? node.axes.map((row, k) => node.point[k]! + row[0]! * p[0] + row[1]! * p[1] + row[2]! * p[2]) as Vec3 : p;
  };
  const frame = (name: string) => { const f = scene.frames.find((x) => x.name === name)!; return at(f.body, f.point); };
  const joint = (name: string) => { const j = scene.joints.find((x) => x.name === name)!; return at(j.parent, j.point); };
  const flat = (p: Vec3): Pair => [p[0], p[2] - BEARING];
  const base = scene.bodies.includes("carriage") ? body("carriage") : fixed; // a machine that can tip carries its tracks
  base.add(tracks(1.75, 2.38, 0.6, BEARING));
  const upper = house(-2.75, 1.05, 0, flat(joint("boom")), flat(joint("boom_barrel")));
  upper.position.z = BEARING;
  body("cab").add(upper);

  const b = new Side(joint("stick")), s = new Side(joint("bucket")), k = new Side(frame("tip")), l = new Side(frame("bucket_eye.b")), n = new Side(frame("link_bucket.a"));
  body("boom").add(boom(b, b.at(frame("boom_eye.b")), b.at(joint("stick_barrel"))));
  body("stick").add(stick(s, s.at(frame("stick_eye.b")), s.at(joint("bucket_barrel")), s.at(joint("lever"))));
  const shovel = bucket([k.length, 0], k.at(frame("link_bucket.b")), WIDE);
  k.group.add(shovel.group);
  body("bucket").add(k.group);
  l.group.add(...both(0.25, () => bar([0, 0], [l.length, 0], 0.11, 0.07, STEEL)), pin(0.07, 0.66, [l.length, 0, 0]));
  body("lever").add(l.group);
  n.group.add(bar([0, 0], [n.length, 0], 0.1, 0.26, YELLOW), pin(0.12, 0.34, [0, 0, 0], YELLOW), pin(0.12, 0.34, [n.length, 0, 0], YELLOW));
  body("link").add(n.group);

  for (const [name, r, lines] of [["boom", 0.1, [-0.37, 0.37]], ["stick", 0.105, [0]], ["bucket", 0.09, [0]]] as const) {
    const half = frame(`centre of ${name}_rod`), whole = half.map((x) => 2 * x) as Vec3, length = Math.hypot(...whole);
    body(`${name}_barrel`).add(barrel(joint(`${name}_cylinder`), length, r, [...lines]));
    body(`${name}_rod`).add(rod(whole, 0.6 * r, [...lines]));
  }
  return {
    update: () => {},
    eye: [0.2, 1.02, BEARING + 1.6], ahead: [6.4, 0.05, 0.4], heart: [2.4, 0, 2.1], reach: 5.2,
    fill: shovel.fill,
  };
}
