// A handle at the tool that can be dragged: the server computes the slider positions for it.

import * as THREE from "three";

const EVERY = 66; // ms between two requests

export class Handle {
  readonly ball: THREE.Mesh;
  private readonly ray = new THREE.Raycaster();
  private readonly plane = new THREE.Plane();
  private held = false;
  private last = 0;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly camera: THREE.Camera, size: number, private readonly root: THREE.Object3D, private readonly ask: (p: THREE.Vector3) => void) {
    this.ball = new THREE.Mesh(new THREE.SphereGeometry(0.05 * size, 24, 16), new THREE.MeshBasicMaterial({ color: 0xe8890c, transparent: true, opacity: 0.6, depthTest: false }));
    this.ball.renderOrder = 10;
    root.add(this.ball);
    canvas.addEventListener("pointerdown", (e) => this.down(e), { capture: true });
    canvas.addEventListener("pointermove", (e) => this.move(e), { capture: true });
    for (const what of ["pointerup", "pointercancel"] as const) canvas.addEventListener(what, (e) => this.up(e), { capture: true });
  }

  // Position of the tool in the mechanism's axes.
  follow(p: THREE.Vector3): void { if (!this.held) this.ball.position.copy(p); }

  // Position on the screen, in pixels of the page, for tests.
  spot(): { x: number; y: number } {
    const p = this.ball.getWorldPosition(new THREE.Vector3()).project(this.camera), box = this.canvas.getBoundingClientRect();
    return { x: box.left + (0.5 + 0.5 * p.x) * box.width, y: box.top + (0.5 - 0.5 * p.y) * box.height };
  }

  private aim(e: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    this.ray.setFromCamera(new THREE.Vector2((2 * (e.clientX - box.left)) / box.width - 1, 1 - (2 * (e.clientY - box.top)) / box.height), this.camera);
  }

  private down(e: PointerEvent): void {
    this.aim(e);
    if (e.button !== 0 || !this.ray.intersectObject(this.ball).length) return;
    this.held = true;
    this.plane.setFromNormalAndCoplanarPoint(this.camera.getWorldDirection(new THREE.Vector3()), this.ball.getWorldPosition(new THREE.Vector3()));
    this.canvas.setPointerCapture(e.pointerId);
    e.stopImmediatePropagation();
  }

  private move(e: PointerEvent): void {
    if (!this.held) return;
    e.stopImmediatePropagation();
    this.aim(e);
    const p = this.ray.ray.intersectPlane(this.plane, new THREE.Vector3());
    if (!p) return;
    this.ball.position.copy(this.root.worldToLocal(p));
    if (performance.now() - this.last < EVERY) return;
    this.last = performance.now();
    this.ask(this.ball.position);
  }

  private up(e: PointerEvent): void {
    if (!this.held) return;
    this.held = false;
    e.stopImmediatePropagation();
    this.ask(this.ball.position);
  }
}
