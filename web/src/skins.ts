// Skins of flexible bodies other than beams: points that move with elastic coordinates, and faces or lines between them.

import * as THREE from "three";
import { Skin } from "./messages";

const GREY = 0xa6aeb6, SIDES = 3; // number of sides of a line, a thin bar

interface Drawn { mesh: THREE.Mesh; skin: Skin; places: THREE.BufferAttribute; at: THREE.Vector3[] }

export class Skins {
  readonly meshes: THREE.Mesh[];
  private readonly drawn: Drawn[];

  constructor(skins: Skin[], private readonly bodies: THREE.Group[]) {
    this.drawn = skins.map(made);
    this.meshes = this.drawn.map((x) => x.mesh);
  }

  // n: number of coordinates; scale: magnification of the deformation.
  update(n: Float64Array, scale: number): void {
    const shift = new THREE.Vector3();
    for (const { skin, places, at, mesh } of this.drawn) {
      skin.points.forEach((p, i) => {
        const x = at[i]!.set(...p);
        skin.q.forEach((j, k) => x.addScaledVector(shift.set(...skin.shift[i]![k]!), scale * n[j]!));
        x.applyMatrix4(this.bodies[skin.body]!.matrix);
      });
      if (skin.cells[0]!.length === 3) at.forEach((x, i) => places.setXYZ(i, x.x, x.y, x.z));
      else skin.cells.forEach(([a, b], k) => bar(places, 2 * SIDES * k, at[a!]!, at[b!]!, skin.thick));
      places.needsUpdate = true;
      mesh.geometry.computeVertexNormals();
    }
  }
}

// Corners of a thin bar from a to b; `first` is the index of the first one.
function bar(places: THREE.BufferAttribute, first: number, a: THREE.Vector3, b: THREE.Vector3, r: number): void {
  const along = b.clone().sub(a).normalize(), side = Math.abs(along.x) < 0.8 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
  const u = side.cross(along).normalize().multiplyScalar(r), w = along.cross(u), p = new THREE.Vector3();
  [a, b].forEach((end, e) => {
    for (let k = 0; k < SIDES; k++) {
      const angle = (2 * Math.PI * k) / SIDES;
      p.copy(end).addScaledVector(u, Math.cos(angle)).addScaledVector(w, Math.sin(angle));
      places.setXYZ(first + e * SIDES + k, p.x, p.y, p.z);
    }
  });
}

function made(skin: Skin): Drawn {
  const faces = skin.cells[0]!.length === 3, index: number[] = [];
  skin.cells.forEach((cell, c) => {
    if (faces) { index.push(...cell); return; }
    for (let k = 0; k < SIDES; k++) {
      const a = 2 * SIDES * c + k, b = 2 * SIDES * c + (k + 1) % SIDES;
      index.push(a, b, b + SIDES, a, b + SIDES, a + SIDES);
    }
  });
  const count = faces ? skin.points.length : 2 * SIDES * skin.cells.length;
  const geometry = new THREE.BufferGeometry(), places = new THREE.BufferAttribute(new Float32Array(3 * count), 3);
  geometry.setAttribute("position", places).setIndex(index);
  const mesh = new THREE.Mesh(geometry, new THREE.MeshStandardMaterial({ color: GREY, flatShading: true, roughness: 0.6, metalness: 0.1, side: THREE.DoubleSide }));
  mesh.frustumCulled = false; // the bounding volume changes with the vertices
  return { mesh, skin, places, at: skin.points.map(() => new THREE.Vector3()) };
}
