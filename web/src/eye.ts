// The camera. A position chosen by the user is kept when panels open, close or change their size; a seat
// that is chosen again returns to its default position. The camera stays above the ground.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { Look } from "./parts";

export type Seat = "Cab" | "Orbit" | "Side";
export interface Covered { left: number; right: number; top: number; below: number } // pixels covered by panels
interface Place { position: THREE.Vector3; target: THREE.Vector3 }
const FROM = { Side: new THREE.Vector3(0, 0.06, 1).normalize(), Orbit: new THREE.Vector3(0.72, 0.42, 1).normalize() };

export class Eye {
  readonly camera = new THREE.PerspectiveCamera(42, 1, 0.05, 400);
  readonly seats: Seat[];
  seat: Seat = "Orbit";
  readonly orbit: OrbitControls;
  private readonly own = new Map<Seat, Place>(); // positions chosen by the user
  private covered: Covered = { left: 0, right: 0, top: 0, below: 0 };
  private moved = true;

  // floor: m, height of the ground; null: no ground.
  constructor(private readonly canvas: HTMLCanvasElement, private readonly home: THREE.Vector3, private readonly size: number, private readonly floor: number | null, private readonly look: Look | null) {
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = true;
    this.orbit.maxPolarAngle = 0.56 * Math.PI;
    this.orbit.minDistance = 0.3 * size;
    this.orbit.maxDistance = 9 * size;
    this.orbit.addEventListener("change", () => (this.moved = true));
    this.orbit.addEventListener("start", () => this.keep());
    this.seats = look ? ["Cab", "Orbit", "Side"] : ["Orbit", "Side"];
    this.sit("Orbit");
  }

  sit(seat: Seat): void {
    if (seat === this.seat) this.own.delete(seat);
    this.seat = seat;
    this.orbit.enabled = seat !== "Cab";
    this.camera.near = seat === "Cab" ? 0.05 : 0.02 * this.size;
    this.fit();
    const own = this.own.get(seat);
    if (own) { this.camera.position.copy(own.position); this.orbit.target.copy(own.target); }
  }

  // The window or the covered part has changed, so the centre moves.
  cover(covered: Covered): void { this.covered = covered; this.fit(); }

  fit(): void {
    const { clientWidth: x, clientHeight: y } = this.canvas, { left, right, top, below } = this.covered, cab = this.seat === "Cab";
    if (!x || !y) return;
    this.moved = true;
    this.camera.aspect = x / y;
    this.camera.fov = !cab ? 42 : x < y ? 80 : 62; // a narrow window needs a larger vertical angle
    this.camera.setViewOffset(x, y, (right - (cab ? 0 : left)) / 2, (below - (cab ? 0 : top)) / 2, x, y); // a hint must not shift the view from the cab
    this.camera.updateProjectionMatrix();
    if (this.seat === "Cab" || this.own.has(this.seat)) return;
    this.orbit.target.copy(this.home);
    this.camera.position.copy(this.home).addScaledVector(FROM[this.seat], this.distance());
  }

  // Position from which the whole machine is visible in the part that panels leave free.
  private distance(): number {
    const { clientWidth: x, clientHeight: y } = this.canvas, { left, right, top, below } = this.covered;
    const wide = Math.max(0.4 * x, x - left - right), high = Math.max(0.4 * y, y - top - below);
    return (1.12 * this.size * y) / Math.tan((this.camera.fov * Math.PI) / 360) / Math.min(high, wide);
  }

  private keep(): void {
    const own = { position: this.camera.position, target: this.orbit.target };
    this.own.set(this.seat, { position: own.position.clone(), target: own.target.clone() });
  }

  // A floating machine is followed, and the default position moves with it.
  follow(at: THREE.Vector3): void {
    const move = at.clone().sub(this.home);
    if (move.lengthSq() === 0) return;
    this.home.add(move);
    this.orbit.target.add(move);
    this.camera.position.add(move);
    this.moved = true;
  }

  // Update before a picture; returns whether the camera has moved. cab: pose of the cab.
  placed(cab: THREE.Matrix4): boolean {
    if (this.seat === "Cab" && this.look) {
      this.camera.position.set(...this.look.eye).applyMatrix4(cab);
      this.camera.up.set(0, 1, 0);
      this.camera.lookAt(new THREE.Vector3(...this.look.ahead).applyMatrix4(cab));
    } else {
      this.orbit.update();
      if (this.floor !== null) this.above(this.floor);
      if (this.own.has(this.seat)) this.keep();
    }
    const moved = this.moved;
    this.moved = false;
    return moved;
  }

  private above(floor: number): void {
    this.orbit.target.y = Math.max(this.orbit.target.y, floor);
    const least = floor + 0.06 * this.size;
    if (this.camera.position.y >= least) return;
    this.camera.position.y = least;
    this.camera.lookAt(this.orbit.target);
  }
}
