// The protocol, as in src/bellcrank/cockpit/messages.py.

export const PROTOCOL = 3;
export const HEADER = 32;
export const GROUND_HEADER = 24;
export const RUNNING = 1, NEUTRAL = 2, DRIVEN = 4;

// From the page.
export type Message =
  | { type: "input"; values: number[]; n: number }
  | { type: "blur" }
  | { type: "seen"; serial: number }
  | { type: "ask" }
  | { type: "answer"; grant: boolean }
  | { type: "release" }
  | { type: "pause" }
  | { type: "resume" }
  | { type: "reset" }
  | { type: "slow"; factor: number }
  | { type: "switch"; rate?: number; integrator?: string; method?: string }
  | { type: "pilot"; name: string }
  | { type: "step" }
  | { type: "tune"; name: string; value: number }
  | { type: "soil"; name: string }
  | { type: "task"; name: string }
  | { type: "reach"; point: number[] };

// From the server.
export type Vec3 = [number, number, number];
export interface Shape {
  body: number; kind: "bar" | "box" | "disc" | "ball" | "slide" | "rod" | "mesh"; joint?: boolean;
  a?: Vec3; b?: Vec3; ra?: number; rb?: number; at?: Vec3; axis?: Vec3; r?: number; h?: number;
  axes?: Vec3[]; half?: Vec3; parent?: number; from?: Vec3;
  colour?: Vec3; corners?: string; faces?: string; // for a mesh: f32 and u32, in base64
}
export interface Bent { body: number; point: Vec3; axes: [Vec3, Vec3, Vec3]; q: number[]; shift: Vec3[]; turn: Vec3[] } // q: indices in Scene.bent
export interface Slice extends Bent { corners: [number, number][]; stress: number[][] | null } // by q and corner, Pa
export interface Skin { body: number; points: Vec3[]; q: number[]; shift: Vec3[][]; cells: number[][]; thick: number } // lines (two points) or faces (three points)
export interface Scene {
  bent: number[]; beams: { name: string; slices: Slice[] }[]; skins: Skin[]; nodes: Bent[]; parents: number[]; // view/scene.py
  bodies: string[]; shapes: Shape[]; notes: string[]; frames: { name: string; body: number; point: Vec3 }[];
  joints: { name: string; parent: number; body: number; point: Vec3 }[]; // point: in the parent frame; -1: the ground
  up: Vec3; unit: number; centre: Vec3; radius: number; follow: boolean; anchor: Vec3;
}
export interface Lever { name: string; label: string; unit: string; low: number; high: number; neutral: number | null }
export interface Tool { across: Vec3; mouth: Vec3; width: number; capacity: number } // in the axes of the trace's body; m and m^3
export interface Gauge { title: string; column: string; unit: string; low: number; high: number; scale: number; warn: number | null }
export interface Tune { name: string; label: string; unit: string; low: number; high: number; first: number }
export interface Plot { title: string; unit: string; columns: string[]; scale: number }
export type Axis = "left.x" | "left.y" | "right.x" | "right.y";
export type Axes = Record<Axis, [string, number]>;
export interface Welcome {
  type: "welcome"; protocol: number; version: string; name: string; you: number; scene: Scene; names: string[];
  sizes: [number, number, number, number]; levers: Lever[]; first: number[]; plots: Plot[]; gauges: Gauge[];
  handle: string; // tool frame, or empty
  tunes: Tune[]; soils: string[]; tasks: string[];
  formats: string[]; // file formats of records
  patterns: Record<string, Record<string, Axes>>; joysticks: Record<string, [string, number][][]>; mode: string; modes: string[];
  words: Record<string, Record<string, [string, string, string]>>; spans: Record<string, Record<string, number>>;
  look: string; ground: number | null; trace: [string, Vec3] | null; tool: Tool | null; pilots: string[];
  choices: { rate: number[]; integrator: string[]; method: string[] };
}
export interface Roles {
  type: "roles"; driver: number | null; asking: number | null; viewers: number; you: number;
}
export interface Settings {
  type: "settings"; rate: number; integrator: string; method: string; running: boolean; slow: number; pilot: string;
  compiling: string; // settings being compiled, or empty
  soil: string; task: { name: string; place: [number, number, number, number] | null; score: number }; tuned: Record<string, number>;
}
export interface Histogram { edges: number[]; counts: number[] }
export interface Times { min: number; mean: number; p99: number; max: number; histogram?: Histogram }
export interface Late { time: number; late: number; cost: number; skipped: number } // skipped 0: the delay was made up
export interface Report {
  type: "report"; status?: string; predicted?: number | Times; measured?: Times; histogram?: Histogram; jitter?: Times;
  overruns?: number; skipped?: number; real_time_factor?: number; log?: Late[]; notes?: string[];
}
export interface Note { type: "note"; text: string; bad: boolean }
export interface Levers { type: "levers"; values: number[] } // for the page that requested them
export type Told = Welcome | Roles | Settings | Report | Note | Levers;

export interface State { flags: number; epoch: number; input: number; n: number; t: number; slow: number; serial: number; values: Float32Array }

export function state(data: ArrayBuffer): State | null {
  const head = new DataView(data);
  if (data.byteLength < HEADER || head.getUint8(0) !== 1) return null;
  return {
    flags: head.getUint8(1), epoch: head.getUint16(2, true), input: head.getUint32(4, true),
    n: Number(head.getBigUint64(8, true)), t: head.getFloat64(16, true), slow: head.getFloat32(24, true), serial: head.getUint32(28, true),
    values: new Float32Array(data, HEADER),
  };
}

// Changes of the ground. whole: all other cells are level.
export interface Patch { whole: boolean; t: number; load: number; dug: number; heights: Float32Array; cells: Uint16Array }

export function patch(data: ArrayBuffer): Patch | null {
  const head = new DataView(data);
  if (data.byteLength < GROUND_HEADER || head.getUint8(0) !== 2) return null;
  const n = head.getUint32(4, true);
  return {
    whole: head.getUint8(1) !== 0, t: head.getFloat64(8, true), load: head.getFloat32(16, true), dug: head.getFloat32(20, true),
    heights: new Float32Array(data, GROUND_HEADER, n), cells: new Uint16Array(data, GROUND_HEADER + 4 * n, n),
  };
}
