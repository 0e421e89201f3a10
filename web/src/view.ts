// The view: light, ground, machine, trace and camera.

import * as THREE from "three";
import { RoomEnvironment } from "three/addons/environments/RoomEnvironment.js";
import { Bending } from "./bending";
import * as excavator from "./excavator";
import { Site } from "./coach";
import { Earth, HALF } from "./earth";
import { dark } from "./dom";
import { Covered, Eye, Seat } from "./eye";
import { Handle } from "./handle";
import * as linkage from "./linkage";
import { Patch, Vec3, Welcome } from "./messages";
import { Look } from "./parts";
import { Quality } from "./quality";
import * as shapes from "./shapes";
import { Trace } from "./trace";
import { world } from "./world";

const LEVELS = [{ ratio: 2, shadows: true }, { ratio: 1, shadows: true }, { ratio: 0.75, shadows: false }, { ratio: 0.5, shadows: false }];
const FORCED = new URLSearchParams(location.search).get("quality"); // "high" or "low", for pictures of the page
const SKY = 0xdfe9f2, NIGHT = 0x2b3540;

export class View {
  pictures = 0; // number of pictures drawn
  readonly eye: Eye;
  readonly quality: Quality;
  private readonly renderer: THREE.WebGLRenderer;
  private readonly scene = new THREE.Scene();
  private readonly root = new THREE.Group(); // the mechanism's axes, rotated so that its up direction is y
  private readonly fixed = new THREE.Group();
  private readonly bodies: THREE.Group[];
  private readonly look: Look | null = null; // drawing of a machine that the page knows
  readonly earth: Earth | null = null;
  readonly bending: Bending | null = null;
  private readonly update: () => void;
  private readonly trace: Trace;
  private readonly home: THREE.Vector3;
  private readonly size: number;
  private readonly tip = new THREE.Vector3();
  private closed = 0; // upward orientation of the bucket's mouth
  private bucket = { load: 0, dug: 0 }; // m3
  private readonly sky = new THREE.HemisphereLight(0xe6f1ff, 0xa08c6c, 1.0);
  private readonly full = new Map<THREE.Mesh, THREE.Material>(); // materials of meshes with full lighting
  private stale = true;
  private drawn = 0; // ms, time of the newest picture; 0: none recently

  constructor(private readonly canvas: HTMLCanvasElement, private readonly w: Welcome) {
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: FORCED !== "low" });
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.renderer.toneMapping = THREE.ACESFilmicToneMapping;
    this.renderer.toneMappingExposure = 1.05;
    const up = new THREE.Vector3(...w.scene.up);
    this.root.quaternion.setFromUnitVectors(up, new THREE.Vector3(0, 1, 0));
    this.root.add(this.fixed);
    this.bodies = w.scene.bodies.map(() => { const g = new THREE.Group(); g.matrixAutoUpdate = false; this.root.add(g); return g; });
    if (w.look === "excavator") this.look = excavator.build(this.bodies, this.fixed, w.ground ?? -1);
    if (w.look === "linkage") this.look = linkage.build(w.scene, this.bodies, this.fixed);
    const update = this.look?.update ?? shapes.build(w.scene, this.bodies, this.fixed);
    if (w.scene.beams.length + w.scene.skins.length) this.bending = new Bending(w.scene, this.bodies, this.root, this.look !== null);
    this.update = () => { update(); this.bending?.update(); };
    this.size = this.look?.reach ?? w.scene.radius;
    this.home = new THREE.Vector3(...(this.look?.heart ?? w.scene.centre)).applyQuaternion(this.root.quaternion);
    const height = w.ground ?? this.home.y - 1.05 * this.size;
    this.root.traverse((o) => { if (o instanceof THREE.Mesh && !o.material.transparent) { o.castShadow = true; o.receiveShadow = true; } });
    this.trace = new Trace(this.root);
    const around = world(this.size, height, this.look !== null);
    const flies = w.scene.follow && !this.look; // a floating base falls without contact; a known machine stands on its tracks
    if (!flies) this.scene.add(...around.objects);
    this.scene.add(this.root, ...this.lights(height));
    if (this.look && w.tool) {
      this.earth = new Earth(height, around.soil);
      this.scene.add(...this.earth.objects);
    }
    this.scene.environmentIntensity = 0.28;
    this.scene.background = new THREE.Color(SKY);
    this.scene.fog = new THREE.Fog(SKY, 7 * this.size, 26 * this.size);
    this.eye = new Eye(canvas, this.home.clone(), this.size, flies ? null : height, this.look);
    new ResizeObserver(() => this.resize()).observe(canvas);
    const plainer = FORCED === "low" || (FORCED !== "high" && software(this.renderer));
    this.quality = new Quality(plainer ? LEVELS.length - 2 : 0, LEVELS.length - 1);
    this.refine();
    this.shade();
    addEventListener("theme", () => this.shade());
  }

  private lights(height: number): THREE.Object3D[] {
    const sun = new THREE.DirectionalLight(0xfff2dc, 2.9), r = 1.7 * this.size;
    sun.position.copy(this.home).add(new THREE.Vector3(0.55, 1.25, 0.7).multiplyScalar(2.6 * this.size));
    sun.target.position.set(this.home.x, height, this.home.z);
    sun.castShadow = true;
    sun.shadow.mapSize.set(2048, 2048);
    Object.assign(sun.shadow.camera, { left: -r, right: r, top: r, bottom: -r, near: 0.1, far: 8 * this.size });
    sun.shadow.bias = -0.0004;
    sun.shadow.normalBias = 0.02;
    sun.shadow.radius = 4;
    return [sun, sun.target, this.sky];
  }

  // A handle at the tool; dragging it requests slider positions.
  lead(ask: (p: THREE.Vector3) => void): void {
    this.handle = new Handle(this.canvas, this.eye.camera, this.size, this.root, ask);
  }
  handle: Handle | null = null;

  // The area of a task: x and y of two corners, in the mechanism's axes.
  job(place: [number, number, number, number] | null): void {
    if (JSON.stringify(place) === JSON.stringify(this.place_of_job)) return;
    this.place_of_job = place;
    if (this.fence) this.scene.remove(this.fence);
    this.fence = null;
    this.stale = true;
    if (!place) return;
    const [x0, y0, x1, y1] = place, z = (this.w.ground ?? 0) + 0.03;
    const corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]].map(([x, y]) => new THREE.Vector3(x, z, -y!));
    this.fence = new THREE.LineLoop(new THREE.BufferGeometry().setFromPoints(corners), new THREE.LineBasicMaterial({ color: 0xff3b00, depthTest: false }));
    this.fence.renderOrder = 5;
    this.scene.add(this.fence);
  }
  private fence: THREE.LineLoop | null = null;
  private place_of_job: [number, number, number, number] | null = null;

  // Magnification of the deformation; 0: normal appearance.
  bend(scale: number): void { this.bending?.show(scale); this.stale = true; }

  // Light or dark theme.
  shade(): void {
    const colour = new THREE.Color(dark() ? NIGHT : SKY);
    this.scene.background = colour;
    this.scene.fog!.color.copy(colour);
    this.stale = true;
  }

  sit(seat: Seat): void { this.eye.sit(seat); }

  // Set the pixels covered by panels.
  cover(covered: Covered): void { this.eye.cover(covered); }

  private resize(): void {
    const { clientWidth: x, clientHeight: y } = this.canvas;
    if (!x || !y) return;
    this.renderer.setSize(x, y, false);
    this.eye.fit();
  }

  clearTrace(): void { this.trace.clear(); this.stale = true; }

  // Height of the teeth above the ground, dug volume, and whether they are outside the area that can be dug.
  site(): Site | null {
    if (!this.earth || !this.w.tool) return null;
    const { load, dug } = this.bucket;
    return { height: this.tip.y - (this.w.ground ?? 0), share: load / this.w.tool.capacity, dug, closed: this.closed, bearing: Math.atan2(this.tip.z, this.tip.x), reach: Math.hypot(this.tip.x, this.tip.z), away: Math.max(Math.abs(this.tip.x), Math.abs(this.tip.z)) > HALF };
  }

  // values: 12 numbers for each body.
  place(values: Float32Array, at = 0): void {
    this.bodies.forEach((g, i) => {
      const k = at + 12 * i, v = values;
      g.matrix.set(v[k]!, v[k + 1]!, v[k + 2]!, v[k + 3]!, v[k + 4]!, v[k + 5]!, v[k + 6]!, v[k + 7]!, v[k + 8]!, v[k + 9]!, v[k + 10]!, v[k + 11]!, 0, 0, 0, 1);
      g.matrixWorldNeedsUpdate = true;
    });
    this.bending?.place(values, at + 12 * this.bodies.length);
    this.stale = true;
    if (this.w.scene.follow) {
      const now = new THREE.Vector3().setFromMatrixPosition(this.bodies[0]!.matrix).applyQuaternion(this.root.quaternion);
      const anchor = new THREE.Vector3(...this.w.scene.anchor).applyQuaternion(this.root.quaternion);
      this.eye.follow(now.sub(anchor).add(this.home));
    }
  }

  // Add a point to the trace for every received state, because not all states are drawn.
  trail(v: Float32Array): void {
    const frames = this.w.scene.frames, last = frames.find((f) => f.name === this.w.handle) ?? frames[frames.length - 1];
    const [body, [x, y, z]]: [number, Vec3] = this.w.trace
      ? [this.w.scene.bodies.indexOf(this.w.trace[0]), this.w.trace[1]]
      : last ? [last.body, last.point] : [-1, [0, 0, 0]];
    if (body < 0) return;
    const k = 12 * body, row = (r: number, d: Vec3) => v[k + r]! * d[0] + v[k + r + 1]! * d[1] + v[k + r + 2]! * d[2];
    const p = new THREE.Vector3(row(0, [x, y, z]) + v[k + 3]!, row(4, [x, y, z]) + v[k + 7]!, row(8, [x, y, z]) + v[k + 11]!);
    this.trace.add(p, 0.004 * this.size);
    this.tip.copy(p).applyQuaternion(this.root.quaternion);
    this.handle?.follow(p);
    if (this.w.tool) this.closed = row(8, this.w.tool.mouth);
  }

  // The ground has changed.
  dug(p: Pick<Patch, "whole" | "load" | "dug" | "heights"> & { cells: ArrayLike<number> }): void {
    if (!this.earth || !this.w.tool) return;
    if (p.whole) this.earth.flatten();
    p.heights.forEach((h, i) => this.earth!.set(p.cells[i]!, h));
    const lost = this.bucket.load - p.load;
    if (!p.whole && lost > 0.001 && Math.random() < 0.7) this.earth.drop(this.tip.clone().add(new THREE.Vector3(Math.random() - 0.5, 0.3, Math.random() - 0.5).multiplyScalar(0.6 * this.w.tool.width)));
    this.bucket = { load: p.load, dug: p.dug };
    this.look?.fill(Math.min(1, p.load / this.w.tool.capacity));
    this.stale = true;
  }

  // Draw if the picture has changed.
  draw(): void {
    const now = performance.now(), since = this.drawn ? now - this.drawn : 0;
    this.root.updateMatrixWorld();
    const moved = this.eye.placed(this.bodies[0]?.matrixWorld ?? this.root.matrixWorld);
    if (!this.stale && !moved && !this.earth?.stale) { this.drawn = 0; return; }
    this.stale = false;
    this.update();
    this.earth?.draw(Math.min(0.1, since / 1000));
    this.renderer.render(this.scene, this.eye.camera);
    this.pictures++;
    this.drawn = now;
    // The time between pictures is meaningful only for consecutive ones.
    if (since && !document.hidden && !FORCED && this.quality.pace(since)) this.refine();
  }

  // On a slow computer, fewer pixels and no shadows are better than a slow response.
  private refine(): void {
    const { ratio, shadows } = LEVELS[this.quality.level]!;
    document.body.classList.toggle("plain", !shadows);
    this.renderer.setPixelRatio(Math.min(ratio, devicePixelRatio));
    if (shadows !== this.renderer.shadowMap.enabled) {
      this.renderer.shadowMap.enabled = shadows;
      this.scene.environment = shadows ? this.around() : null;
      this.sky.intensity = shadows ? 1.3 : 2.4;
      this.scene.traverse((o) => {
        if (!(o instanceof THREE.Mesh)) return;
        if (!this.full.has(o)) this.full.set(o, o.material);
        o.material = shadows ? this.full.get(o) : plain(this.full.get(o)!);
        o.material.needsUpdate = true;
      });
    }
    this.stale = true;
    this.resize();
  }

  // Metal reflects its surroundings; without any it would be black.
  private around(): THREE.Texture {
    const maker = new THREE.PMREMGenerator(this.renderer), made = maker.fromScene(new RoomEnvironment(), 0.04).texture;
    maker.dispose();
    return made;
  }
}

// Equal colours with simple lighting: half the work for each pixel.
function plain(m: THREE.Material): THREE.Material {
  if (!(m instanceof THREE.MeshStandardMaterial)) return m;
  const { color, map, vertexColors, transparent, opacity, side, depthWrite, emissive, emissiveIntensity, flatShading } = m;
  return new THREE.MeshLambertMaterial({ color, map, vertexColors, transparent, opacity, side, depthWrite, emissive, emissiveIntensity, flatShading });
}

// True if pictures are rendered by the CPU.
function software(renderer: THREE.WebGLRenderer): boolean {
  const gl = renderer.getContext(), info = gl.getExtension("WEBGL_debug_renderer_info");
  return /swiftshader|llvmpipe|software/i.test(String(gl.getParameter(info?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER)));
}
