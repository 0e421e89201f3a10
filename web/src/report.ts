// The replay of a report page, drawn as in the cockpit (included by view/record_web/world.js). It needs no
// server: poses of bodies and heights of the ground are in the page.

import { Scene, Vec3, Welcome } from "./messages";
import { View } from "./view";

export interface Ground { cells: ArrayLike<number>; heights: ArrayLike<number>; anew: boolean; share: number }
interface Shown { scene: Scene; look: string; ground: number | null; digs: boolean }
const TOOL = { across: [0, 1, 0], mouth: [0, 0, 1], width: 1, capacity: 1 }; // the load is given as a fraction

export class Stage {
  private readonly view: View;
  private readonly told: Welcome;

  constructor(canvas: HTMLCanvasElement, shown: Shown) {
    const { scene, look, ground, digs } = shown;
    this.told = { scene, look, ground, tool: digs ? TOOL : null, trace: null, handle: "" } as unknown as Welcome;
    this.view = new View(canvas, this.told);
    const draw = () => { requestAnimationFrame(draw); this.view.draw(); };
    draw();
  }

  // 12 numbers for each body, then the elastic coordinates.
  place(values: Float32Array): void { this.view.place(values); }

  dig(g: Ground): void {
    this.view.dug({ whole: g.anew, load: g.share, dug: 0, cells: g.cells, heights: Float32Array.from(g.heights) });
  }

  // The path of a point of a body, from poses with 12 numbers each.
  path(body: number, point: Vec3, places: ArrayLike<number>[]): void {
    this.view.clearTrace();
    this.told.trace = [this.told.scene.bodies[body]!, point];
    const row = new Float32Array(12 * (body + 1));
    for (const place of places) { row.set(place, 12 * body); this.view.trail(row); }
  }

  // scale: magnification of the deformation; 0: normal appearance.
  bend(scale: number): void { this.view.bend(scale); }
  home(): void { this.view.sit("Orbit"); }
  get pictures(): number { return this.view.pictures; }
}
