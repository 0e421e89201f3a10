import * as THREE from "three";

const TRACE = 1500; // points

// Trace of the bucket: a line of limited length.
export class Trace {
  private readonly points = new Float32Array(3 * TRACE);
  private readonly geometry = new THREE.BufferGeometry();
  private count = 0;
  private readonly last = new THREE.Vector3(1e9, 0, 0);

  constructor(into: THREE.Group) {
    this.geometry.setAttribute("position", new THREE.BufferAttribute(this.points, 3).setUsage(THREE.DynamicDrawUsage));
    this.geometry.setDrawRange(0, 0);
    const line = new THREE.Line(this.geometry, new THREE.LineBasicMaterial({ color: 0xd4380d, transparent: true, opacity: 0.95, fog: false }));
    line.frustumCulled = false;
    into.add(line);
  }

  add(p: THREE.Vector3, least: number): void {
    if (p.distanceTo(this.last) < least) return;
    this.last.copy(p);
    if (this.count === TRACE) this.points.copyWithin(0, 3), this.count--;
    this.points.set([p.x, p.y, p.z], 3 * this.count++);
    this.geometry.setDrawRange(0, this.count);
    this.geometry.attributes.position!.needsUpdate = true;
  }

  clear(): void { this.count = 0; this.geometry.setDrawRange(0, 0); this.last.x = 1e9; }
}
