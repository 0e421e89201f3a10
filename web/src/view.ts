// The world: light, ground, the machine, a trace, and where it is seen from.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { RoomEnvironment } from "three/addons/environments/RoomEnvironment.js";
import * as excavator from "./excavator";
import * as shapes from "./shapes";
import { Vec3, Welcome } from "./messages";

export type Seat = "Cab" | "Orbit" | "Side";
const TRACE = 1500; // points
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
  private readonly update: () => void;
  private readonly trace: Trace;
  private readonly home: THREE.Vector3;
  private readonly size: number;
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
    this.size = w.scene.radius;
    this.home = new THREE.Vector3(...w.scene.centre).applyQuaternion(this.root.quaternion);
    const height = w.ground ?? this.home.y - 1.05 * this.size;
    this.update = w.look === "excavator" ? excavator.build(this.bodies, this.fixed, w.ground ?? -1) : shapes.build(w.scene, this.bodies, this.fixed);
    this.root.traverse((o) => { if (o instanceof THREE.Mesh && !o.material.transparent) { o.castShadow = true; o.receiveShadow = true; } });
    this.trace = new Trace(this.root);
    this.scene.add(this.root, ...world(this.size, height, w.look === "excavator"), ...this.lights(height));
    this.scene.environmentIntensity = 0.28;
    this.scene.background = new THREE.Color(SKY);
    this.scene.fog = new THREE.Fog(SKY, 7 * this.size, 26 * this.size);
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = true;
    this.orbit.maxPolarAngle = 0.56 * Math.PI;
    this.orbit.minDistance = 0.3 * this.size;
    this.orbit.maxDistance = 9 * this.size;
    this.seats = w.look === "excavator" ? ["Cab", "Orbit", "Side"] : ["Orbit", "Side"];
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
    this.camera.fov = seat === "Cab" ? 62 : 42;
    this.camera.near = seat === "Cab" ? 0.05 : 0.02 * this.size;
    this.camera.updateProjectionMatrix();
    const target = this.home.clone(), from = new THREE.Vector3(0.72, 0.42, 1).normalize();
    if (seat === "Side") from.set(0, 0.06, 1).normalize();
    if (seat === "Cab") return;
    // A panel covers the right: look a little past the machine so that it stands free.
    target.x += 0.06 * this.size;
    target.y -= seat === "Side" ? 0.05 * this.size : 0.2 * this.size;
    this.orbit.target.copy(target);
    this.camera.position.copy(target).addScaledVector(from, (seat === "Side" ? 3.9 : 3.65) * this.size * Math.max(1, 1.25 / this.camera.aspect));
  }

  private resize(): void {
    const { clientWidth: x, clientHeight: y } = this.canvas;
    if (!x || !y) return;
    this.renderer.setSize(x, y, false);
    this.camera.aspect = x / y;
    this.camera.updateProjectionMatrix();
  }

  clearTrace(): void { this.trace.clear(); }

  // values: 12 numbers for each body.
  place(values: Float32Array, at = 0): void {
    this.bodies.forEach((g, i) => {
      const k = at + 12 * i, v = values;
      g.matrix.set(v[k]!, v[k + 1]!, v[k + 2]!, v[k + 3]!, v[k + 4]!, v[k + 5]!, v[k + 6]!, v[k + 7]!, v[k + 8]!, v[k + 9]!, v[k + 10]!, v[k + 11]!, 0, 0, 0, 1);
      g.matrixWorldNeedsUpdate = true;
    });
    if (this.w.scene.follow) {
      const now = new THREE.Vector3().setFromMatrixPosition(this.bodies[0]!.matrix).applyQuaternion(this.root.quaternion);
      const move = now.sub(this.orbit.target).multiplyScalar(0.1);
      this.orbit.target.add(move);
      this.camera.position.add(move);
    }
  }

  // One more point of the trace; of every state that arrives, for not all are drawn.
  trail(v: Float32Array): void {
    const frames = this.w.scene.frames, last = frames[frames.length - 1];
    const [body, [x, y, z]]: [number, Vec3] = this.w.trace
      ? [this.w.scene.bodies.indexOf(this.w.trace[0]), this.w.trace[1]]
      : last ? [last.body, last.point] : [-1, [0, 0, 0]];
    if (body < 0) return;
    const at = (k: number) => v[12 * body + k]! * x + v[12 * body + k + 1]! * y + v[12 * body + k + 2]! * z + v[12 * body + k + 3]!;
    this.trace.add(new THREE.Vector3(at(0), at(4), at(8)), 0.004 * this.size);
  }

  draw(): void {
    this.update();
    if (this.seat === "Cab") {
      this.root.updateMatrixWorld();
      const cab = this.bodies[0]!.matrixWorld;
      this.camera.position.set(...excavator.EYE).applyMatrix4(cab);
      this.camera.up.set(0, 1, 0);
      this.camera.lookAt(new THREE.Vector3(...excavator.LOOK).applyMatrix4(cab));
    } else this.orbit.update();
    this.renderer.render(this.scene, this.camera);
    this.adapt(performance.now());
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
    const { ratio, shadows } = LEVELS[level]!;
    this.renderer.setPixelRatio(Math.min(ratio, devicePixelRatio));
    if (shadows !== this.renderer.shadowMap.enabled) {
      this.renderer.shadowMap.enabled = shadows;
      this.scene.environment = shadows ? this.around() : null;
      this.sky.intensity = shadows ? 1.3 : 2.4;
      this.scene.traverse((o) => { if (o instanceof THREE.Mesh) o.material.needsUpdate = true; });
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

// Whether a processor does the work of a graphics card.
function software(renderer: THREE.WebGLRenderer): boolean {
  const gl = renderer.getContext(), info = gl.getExtension("WEBGL_debug_renderer_info");
  return /swiftshader|llvmpipe|software/i.test(String(gl.getParameter(info?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER)));
}

// Where the bucket was: a line that forgets its beginning.
class Trace {
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

// Ground, rings that tell distance, and for the excavator a little of a building site.
function world(size: number, height: number, site: boolean): THREE.Object3D[] {
  const soil = new THREE.MeshStandardMaterial({ map: earth(site), roughness: 1 });
  const ground = new THREE.Mesh(new THREE.CircleGeometry(40 * size, 64), soil);
  ground.rotation.x = -Math.PI / 2;
  ground.position.y = height;
  ground.receiveShadow = true;
  soil.map!.repeat.setScalar(site ? 24 : 40);
  const out: THREE.Object3D[] = [ground];
  for (const r of site ? [4, 6, 8, 10] : [0.5 * size, size, 1.5 * size]) {
    const ring = new THREE.Mesh(new THREE.RingGeometry(r - 0.003 * size, r + 0.003 * size, 128), new THREE.MeshBasicMaterial({ color: 0xffffff, transparent: true, opacity: 0.4 }));
    ring.rotation.x = -Math.PI / 2;
    ring.position.y = height + 0.002 * size;
    out.push(ring);
  }
  if (site) out.push(...props(height));
  return out;
}

function props(height: number): THREE.Object3D[] {
  const out: THREE.Object3D[] = [];
  const dirt = new THREE.MeshStandardMaterial({ color: 0x8d7350, roughness: 1, flatShading: true });
  for (const [x, z, r] of [[7.5, -8, 1.7], [10, -6.2, 1.1], [-9, -9, 2.2], [12.5, 6, 1.4]] as const) {
    const geometry = new THREE.ConeGeometry(1.6 * r, 0.95 * r, 22, 5), p = geometry.attributes.position!;
    // Rough, but the same where two corners are in one place: the cone must not tear.
    const rough = (x: number, y: number, z: number, k: number) => Math.sin(17 * x + 29 * y + 41 * z + k + r) * 0.1 * r;
    for (let i = 0; i < p.count; i++) {
      const [x, y, z] = [p.getX(i), p.getY(i), p.getZ(i)];
      p.setXYZ(i, x + rough(x, y, z, 0), Math.min(0.36 * r, y) + 0.6 * rough(x, y, z, 2), z + rough(x, y, z, 4));
    }
    geometry.computeVertexNormals();
    const mound = new THREE.Mesh(geometry, dirt);
    mound.position.set(x, height + 0.42 * r, z);
    mound.castShadow = mound.receiveShadow = true;
    out.push(mound);
  }
  const orange = new THREE.MeshStandardMaterial({ color: 0xe8590c, roughness: 0.7 }), white = new THREE.MeshStandardMaterial({ color: 0xf8f9fa, roughness: 0.7 });
  for (let k = 0; k < 7; k++) {
    const a = -0.9 + 0.3 * k, x = 9.4 * Math.cos(a), z = -9.4 * Math.sin(a);
    const cone = new THREE.Mesh(new THREE.ConeGeometry(0.16, 0.6, 20), orange), band = new THREE.Mesh(new THREE.CylinderGeometry(0.078, 0.112, 0.13, 20), white);
    cone.position.set(x, height + 0.3, z);
    band.position.set(x, height + 0.3, z);
    cone.castShadow = true;
    out.push(cone, band);
  }
  return out;
}

function seeded(seed: number): () => number {
  return () => ((seed = (seed * 16807) % 2147483647) / 2147483647);
}

// Sand, or a floor with a grid: painted, so that nothing has to be fetched.
function earth(site: boolean): THREE.CanvasTexture {
  const canvas = document.createElement("canvas"), n = 512, random = seeded(3);
  canvas.width = canvas.height = n;
  const c = canvas.getContext("2d")!;
  c.fillStyle = site ? "#c9b48c" : "#e9ecef";
  c.fillRect(0, 0, n, n);
  if (site) {
    for (let i = 0; i < 5200; i++) {
      const light = random() > 0.5, r = 0.6 + 2.4 * random() ** 3;
      c.fillStyle = light ? `rgba(232,214,176,${0.15 + 0.35 * random()})` : `rgba(120,96,62,${0.08 + 0.25 * random()})`;
      c.beginPath(); c.arc(n * random(), n * random(), r, 0, 7); c.fill();
    }
  } else {
    c.strokeStyle = "#cfd5db"; c.lineWidth = 3;
    c.strokeRect(0, 0, n, n);
  }
  const t = new THREE.CanvasTexture(canvas);
  t.wrapS = t.wrapT = THREE.RepeatWrapping;
  t.colorSpace = THREE.SRGBColorSpace;
  t.anisotropy = 8;
  return t;
}
