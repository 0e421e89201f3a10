// The world: light, ground, the machine, a trace, and where it is seen from.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { RoomEnvironment } from "three/addons/environments/RoomEnvironment.js";
import * as excavator from "./excavator";
import { Site } from "./coach";
import { Earth } from "./earth";
import * as linkage from "./linkage";
import { Vec3, Welcome } from "./messages";
import { Look } from "./parts";
import * as shapes from "./shapes";
import { Trace } from "./trace";
import { world } from "./world";

export type Seat = "Cab" | "Orbit" | "Side";
const LATE = 45; // ms between pictures, above which quality goes down
const LEVELS = [{ ratio: 2, shadows: true }, { ratio: 1, shadows: true }, { ratio: 0.75, shadows: false }, { ratio: 0.5, shadows: false }];
const FORCED = new URLSearchParams(location.search).get("quality"); // "high" or "low", for pictures of the page
const SKY = 0xdfe9f2;

export class View {
  readonly seats: Seat[];
  seat: Seat = "Orbit";
  private readonly renderer: THREE.WebGLRenderer;
  private readonly scene = new THREE.Scene();
  private readonly camera = new THREE.PerspectiveCamera(42, 1, 0.05, 400);
  private readonly orbit: OrbitControls;
  private readonly root = new THREE.Group(); // the mechanism's axes, turned so that its up is ours
  private readonly fixed = new THREE.Group();
  private readonly bodies: THREE.Group[];
  private readonly look: Look | null = null; // of a machine that the page knows
  readonly earth: Earth | null = null;
  private readonly update: () => void;
  private readonly trace: Trace;
  private readonly home: THREE.Vector3;
  private readonly size: number;
  private off: THREE.Vector3 | null = null; // from the base of what floats to its middle, at first
  private readonly tip = new THREE.Vector3();
  private closed = 0; // how far the bucket looks up
  private covered = { left: 0, right: 0, top: 0, below: 0 }; // pixels that panels cover
  private seen = 0; // s, the newest state's time
  private readonly sky = new THREE.HemisphereLight(0xe6f1ff, 0xa08c6c, 1.0);
  private slow = 0;
  private level = 0;
  private drawn = performance.now();

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
    this.update = this.look?.update ?? shapes.build(w.scene, this.bodies, this.fixed);
    this.size = this.look?.reach ?? w.scene.radius;
    this.home = new THREE.Vector3(...(this.look?.heart ?? w.scene.centre)).applyQuaternion(this.root.quaternion);
    const height = w.ground ?? this.home.y - 1.05 * this.size;
    this.root.traverse((o) => { if (o instanceof THREE.Mesh && !o.material.transparent) { o.castShadow = true; o.receiveShadow = true; } });
    this.trace = new Trace(this.root);
    const around = world(this.size, height, this.look !== null);
    if (!w.scene.follow) this.scene.add(...around.objects); // what floats falls, and meets nothing
    this.scene.add(this.root, ...this.lights(height));
    if (this.look) {
      this.earth = new Earth(height, around.soil, this.look.tool);
      this.scene.add(...this.earth.objects);
    }
    this.scene.environmentIntensity = 0.28;
    this.scene.background = new THREE.Color(SKY);
    this.scene.fog = new THREE.Fog(SKY, 7 * this.size, 26 * this.size);
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = true;
    this.orbit.maxPolarAngle = 0.56 * Math.PI;
    this.orbit.minDistance = 0.3 * this.size;
    this.orbit.maxDistance = 9 * this.size;
    this.seats = this.look ? ["Cab", "Orbit", "Side"] : ["Orbit", "Side"];
    this.sit("Orbit");
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.quality(FORCED === "high" ? 0 : FORCED === "low" || software(this.renderer) ? LEVELS.length - 2 : 0);
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

  sit(seat: Seat): void {
    this.seat = seat;
    this.orbit.enabled = seat !== "Cab";
    this.camera.fov = seat !== "Cab" ? 42 : this.camera.aspect < 1 ? 80 : 62; // a narrow window sees as much by more height
    this.camera.near = seat === "Cab" ? 0.05 : 0.02 * this.size;
    this.resize();
    if (seat === "Cab") return;
    const from = seat === "Side" ? new THREE.Vector3(0, 0.06, 1) : new THREE.Vector3(0.72, 0.42, 1);
    this.orbit.target.copy(this.home);
    this.camera.position.copy(this.home).addScaledVector(from.normalize(), this.distance());
  }

  // From where the whole machine is seen in what panels leave free.
  private distance(): number {
    const { clientWidth: x, clientHeight: y } = this.canvas, { left, right, top, below } = this.covered;
    const wide = Math.max(0.4 * x, x - left - right), high = Math.max(0.4 * y, y - top - below);
    return (1.12 * this.size * y) / Math.tan((this.camera.fov * Math.PI) / 360) / Math.min(high, wide);
  }

  // Panels cover so many pixels: the middle is elsewhere.
  cover(covered: { left: number; right: number; top: number; below: number }): void {
    this.covered = covered;
    this.sit(this.seat);
  }

  private resize(): void {
    const { clientWidth: x, clientHeight: y } = this.canvas, { left, right, top, below } = this.covered;
    if (!x || !y) return;
    this.renderer.setSize(x, y, false);
    this.camera.aspect = x / y;
    const cab = this.seat === "Cab"; // whose window a hint may cover
    this.camera.setViewOffset(x, y, (right - (cab ? 0 : left)) / 2, (below - (cab ? 0 : top)) / 2, x, y);
    this.camera.updateProjectionMatrix();
  }

  clearTrace(): void { this.trace.clear(); }

  // Back at the start: nothing has been dug.
  heal(): void { this.clearTrace(); this.earth?.heal(); }

  // How high the teeth are above the ground, and what was dug.
  site(): Site | null {
    if (!this.earth || !this.look) return null;
    const { load, dug } = this.earth, { capacity } = this.look.tool;
    return { height: this.tip.y - (this.w.ground ?? 0), share: load / capacity, dug, closed: this.closed, bearing: Math.atan2(this.tip.z, this.tip.x), reach: Math.hypot(this.tip.x, this.tip.z) };
  }

  // values: 12 numbers for each body.
  place(values: Float32Array, at = 0): void {
    this.bodies.forEach((g, i) => {
      const k = at + 12 * i, v = values;
      g.matrix.set(v[k]!, v[k + 1]!, v[k + 2]!, v[k + 3]!, v[k + 4]!, v[k + 5]!, v[k + 6]!, v[k + 7]!, v[k + 8]!, v[k + 9]!, v[k + 10]!, v[k + 11]!, 0, 0, 0, 1);
      g.matrixWorldNeedsUpdate = true;
    });
    if (this.w.scene.follow) {
      const now = new THREE.Vector3().setFromMatrixPosition(this.bodies[0]!.matrix).applyQuaternion(this.root.quaternion);
      this.off ??= this.home.clone().sub(now);
      const move = now.add(this.off).sub(this.orbit.target);
      this.orbit.target.add(move);
      this.camera.position.add(move);
    }
  }

  // One more point of the trace; of every state that arrives, for not all are drawn. live: the teeth dig.
  trail(v: Float32Array, t: number, live: boolean): void {
    const frames = this.w.scene.frames, last = frames[frames.length - 1];
    const [body, [x, y, z]]: [number, Vec3] = this.w.trace
      ? [this.w.scene.bodies.indexOf(this.w.trace[0]), this.w.trace[1]]
      : last ? [last.body, last.point] : [-1, [0, 0, 0]];
    if (body < 0) return;
    const at = (k: number) => v[12 * body + k]! * x + v[12 * body + k + 1]! * y + v[12 * body + k + 2]! * z + v[12 * body + k + 3]!;
    const p = new THREE.Vector3(at(0), at(4), at(8));
    this.trace.add(p, 0.004 * this.size);
    this.tip.copy(p).applyQuaternion(this.root.quaternion);
    const dt = Math.max(0, Math.min(0.1, t - this.seen));
    this.seen = t;
    if (this.earth && this.look && live) this.dig(v, dt);
  }

  private dig(v: Float32Array, dt: number): void {
    const { body, across, mouth } = this.look!.tool, k = 12 * body;
    const turned = (d: THREE.Vector3) => new THREE.Vector3(
      v[k]! * d.x + v[k + 1]! * d.y + v[k + 2]! * d.z, v[k + 4]! * d.x + v[k + 5]! * d.y + v[k + 6]! * d.z, v[k + 8]! * d.x + v[k + 9]! * d.y + v[k + 10]! * d.z,
    ).applyQuaternion(this.root.quaternion);
    const pin = new THREE.Vector3(v[k + 3]!, v[k + 7]!, v[k + 11]!).applyQuaternion(this.root.quaternion);
    const opening = turned(mouth);
    this.closed = opening.y;
    this.earth!.work(this.tip, turned(across), opening, pin.lerp(this.tip, 0.7), dt);
  }

  draw(): void {
    const now = performance.now();
    this.update();
    this.earth?.draw(Math.min(0.1, (now - this.drawn) / 1000));
    if (this.seat === "Cab" && this.look) {
      this.root.updateMatrixWorld();
      const cab = this.bodies[0]!.matrixWorld;
      this.camera.position.set(...this.look.eye).applyMatrix4(cab);
      this.camera.up.set(0, 1, 0);
      this.camera.lookAt(new THREE.Vector3(...this.look.ahead).applyMatrix4(cab));
    } else this.orbit.update();
    this.renderer.render(this.scene, this.camera);
    this.adapt(now);
  }

  // On a weak computer fewer pixels and no shadows are better than a page that answers late.
  private adapt(now: number): void {
    const gap = now - this.drawn;
    this.drawn = now;
    if (document.hidden || this.level >= LEVELS.length - 1 || FORCED) return;
    this.slow = 0.85 * this.slow + 0.15 * Math.min(gap, 400);
    if (this.slow > LATE) this.quality(this.level + 1);
  }

  private quality(level: number): void {
    this.level = level;
    this.slow = 0;
    document.body.classList.toggle("plain", !LEVELS[level]!.shadows);
    const { ratio, shadows } = LEVELS[level]!;
    this.renderer.setPixelRatio(Math.min(ratio, devicePixelRatio));
    if (shadows !== this.renderer.shadowMap.enabled) {
      this.renderer.shadowMap.enabled = shadows;
      this.scene.environment = shadows ? this.around() : null;
      this.sky.intensity = shadows ? 1.3 : 2.4;
      this.scene.traverse((o) => {
        if (!(o instanceof THREE.Mesh)) return;
        if (!shadows) o.material = plain(o.material);
        o.material.needsUpdate = true;
      });
    }
    this.resize();
  }

  // Metal shows what is around it; without anything there it would be black.
  private around(): THREE.Texture {
    const maker = new THREE.PMREMGenerator(this.renderer), made = maker.fromScene(new RoomEnvironment(), 0.04).texture;
    maker.dispose();
    return made;
  }
}

// The same colours without the physics of light: half the work for each pixel.
function plain(m: THREE.Material): THREE.Material {
  if (!(m instanceof THREE.MeshStandardMaterial)) return m;
  const { color, map, vertexColors, transparent, opacity, side, depthWrite, emissive, emissiveIntensity, flatShading } = m;
  if (map) { map.anisotropy = 1; map.needsUpdate = true; }
  return new THREE.MeshLambertMaterial({ color, map, vertexColors, transparent, opacity, side, depthWrite, emissive, emissiveIntensity, flatShading });
}

// Whether a processor does the work of a graphics card.
function software(renderer: THREE.WebGLRenderer): boolean {
  const gl = renderer.getContext(), info = gl.getExtension("WEBGL_debug_renderer_info");
  return /swiftshader|llvmpipe|software/i.test(String(gl.getParameter(info?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER)));
}
