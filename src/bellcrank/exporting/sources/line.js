// The machine of a page without a server: it runs in this worker, which replaces the connection to a server. It sends and
// receives the messages of src/bellcrank/cockpit/messages.py. Whenever the worker wakes up, it takes all steps that are
// due. If the computer is too slow or was asleep, steps are skipped; the report has their number.

import { Ground } from "./ground.js";
import { load } from "./MACHINE.js";
import { pilot } from "./pilots.js";
import { Memory } from "./record.js";

const WAKE = 4, PICTURE = 16, REPORT = 500; // ms
const STALL = 600; // ms without a message from the page, after which the levers are released
const MOST = 100; // steps at a time; further late steps are skipped
const RUNNING = 1, NEUTRAL = 2, DRIVEN = 4, HEADER = 32;
const STATUS = { 2: "a number is not finite", 6: "the loops cannot be closed", 4: "an event stopped it" };
const HAND = 0.02; // s, length of one manual step
const WARM = 600; // ms
const KEPT = 512; // number of step times kept for the report

const early = []; // messages that arrive before the machine is loaded
onmessage = (event) => early.push(event);
const found = await fetch(new URL("welcome.json", import.meta.url));
const { welcome, settings, start, outputs, nq, lengths, pilots, site } = await found.json();
const machine = await load();
const [bodies, ny, nu, nout] = welcome.sizes;
const now = { ...settings, running: true, slow: 1 };
const ground = site ? new Ground(site.contact, site.soils[settings.soil]) : null, memory = new Memory();
const digs = ground && welcome.scene.bodies.indexOf(welcome.trace[0]);
let levers = [...welcome.first], hand = null, told = -1e9, driver = 1;
let origin = performance.now(), done = 0, steps = 0, skipped = 0, overruns = 0, serial = 0, number = 0, epoch = 0, shown = 0, reported = 0;
let flies = null; // the pilot that moves the levers
let costs = [], lates = [], status = 0, meter = { at: origin, steps: 0 };

const say = (message) => postMessage(JSON.stringify(message));
const clipped = (values) => welcome.levers.map((lever, k) => Math.min(Math.max(values[k] ?? 0, lever.low), lever.high));
const neutral = (values) => welcome.levers.map((lever, k) => lever.neutral ?? values[k]);

function placed() {
  machine.reset();
  for (const [name, x] of Object.entries(now.tuned ?? {})) machine.set(name, x);
  machine.now.set(start, 1);
  moved(levers);
  machine.start();
  steps = 0; status = 0; epoch++;
  ground?.heal();
  memory.clear();
  look();
  aligned();
}

// Restart the clock.
function aligned() { origin = performance.now(); done = 0; meter = { at: origin, steps: 0 }; }

function moved(values) { levers = clipped(values); machine.u.set(levers); machine.stale = true; }

function letGo() {
  if (!hand) return;
  hand = null;
  if (!flies) moved(neutral(levers));
}

function advance(t) {
  if (!now.running || status) return;
  let due = Math.floor((t - origin) * 1e-3 * now.rate * now.slow) - done;
  if (due <= 0) return;
  if (due > MOST) { skipped += due - MOST; overruns++; origin += (due - MOST) / (1e-3 * now.rate * now.slow); due = MOST; }
  const began = performance.now();
  status = machine.step(due);
  costs.push((performance.now() - began) * 1e-3 / due);
  lates.push(Math.max(0, (t - origin) * 1e-3 - done / (now.rate * now.slow)));
  if (costs.length > KEPT) { costs.shift(); lates.shift(); }
  done += due; steps += due; meter.steps += due;
}

function picture(holds) {
  const data = new ArrayBuffer(HEADER + 4 * (12 * bodies + ny + nu + nout)), head = new DataView(data), values = new Float32Array(data, HEADER);
  head.setUint8(0, 1);
  head.setUint8(1, (now.running ? RUNNING : 0) | (holds ? 0 : NEUTRAL) | (driver ? DRIVEN : 0));
  head.setUint16(2, epoch % 65536, true);
  head.setUint32(4, number >>> 0, true);
  head.setBigUint64(8, BigInt(steps), true);
  head.setFloat64(16, machine.t, true);
  head.setFloat32(24, now.slow, true);
  head.setUint32(28, ++serial >>> 0, true);
  const y = machine.now.subarray(1, 1 + ny), at = 12 * bodies;
  values.set(look());
  values.set(y, at);
  values.set(machine.u.subarray(0, nu), at + ny);
  const seen = nout ? machine.observe() : [];
  outputs.forEach((k, i) => { values[at + ny + nu + i] = seen[k]; });
  memory.add(machine.t, values.slice());
  postMessage(data, [data]);
}

// Update the ground and the forces on the machine; return the poses of all bodies.
function look() {
  const q = machine.now.subarray(1, 1 + nq), p = lengths.map((k) => machine.p[k]), { poses } = machine.call("poses", ...(p.length ? [q, p] : [q]));
  if (!ground) return poses;
  const X = poses.subarray(12 * digs, 12 * digs + 12);
  if (X.every(Number.isFinite)) for (const [name, x] of Object.entries(ground.look(machine.t, X))) machine.set(name, x);
  const news = ground.news();
  if (news) postMessage(news, [news]);
  return poses;
}

function fly(name) {
  flies = pilots[name] ? pilot(pilots[name]) : null;
  now.pilot = flies ? name : "";
  told_settings();
}

// Send the score of a job, an integer, when it has changed.
function scored() {
  const score = now.task.name ? Math.floor(ground.score(site.tasks[now.task.name])) : 0;
  if (score === now.task.score) return;
  now.task = { ...now.task, score };
  told_settings();
}

function fetched({ address, id }) {
  const [what, query] = address.slice(1).split("?"), names = welcome.names;
  const data = what === "replay" ? memory.replay(query, ground) : what === "record.csv" ? memory.csv(query, names, 12 * bodies) : null;
  postMessage({ is: "file", id, data, name: `${welcome.name}.csv`, why: data ? "" : `There is no ${what} in a page without a server.` }, data ? [data] : []);
}

function times(some) {
  const sorted = [...some].sort((a, b) => a - b), n = sorted.length;
  return n ? { min: sorted[0], mean: sorted.reduce((a, b) => a + b, 0) / n, p99: sorted[Math.floor(0.99 * (n - 1))], max: sorted[n - 1] } : undefined;
}

function report(t) {
  const seconds = (t - meter.at) * 1e-3, factor = seconds > 1 && now.running ? meter.steps / (now.rate * now.slow * seconds) : undefined;
  say({
    type: "report", status: status ? STATUS[status] ?? `status ${status}` : now.running ? "running" : "paused", measured: times(costs), jitter: times(lates),
    overruns, skipped, real_time_factor: factor, log: [], notes: ["The physics runs in this page, compiled to WebAssembly; no server computes anything."],
  });
}

function roles() { say({ type: "roles", driver, asking: null, viewers: 1, you: 1 }); }
function told_settings() { say({ type: "settings", ...now }); }

setInterval(() => {
  const t = performance.now(), holds = driver !== null && hand !== null && t - told < STALL;
  if (!holds) letGo();
  advance(t);
  if (t - shown >= PICTURE) {
    shown = t;
    picture(holds);
    if (flies && now.running && !status) moved(flies.levers(machine.t, machine.now.subarray(1)));
  }
  if (t - reported >= REPORT) { reported = t; report(t); scored(); }
}, WAKE);

const OBEYED = {
  blur() { letGo(); },
  ask() { driver = 1; roles(); },
  release() { letGo(); driver = null; roles(); },
  pause() { now.running = false; told_settings(); },
  resume() { now.running = true; aligned(); told_settings(); },
  slow({ factor }) { now.slow = factor; aligned(); told_settings(); },
  step() { now.running = false; if (!status) { const n = Math.round(HAND * now.rate); status = machine.step(n); steps += n; } told_settings(); },
  pilot({ name }) { fly(name); if (!flies) moved(neutral(levers)); },
  soil({ name }) { if (site?.soils[name]) { ground.become(site.soils[name]); now.soil = name; told_settings(); } },
  task({ name }) {
    const job = site?.tasks[name];
    now.task = job ? { name, place: [...job.low, ...job.high], score: 0 } : { name: "", place: null, score: 0 };
    told_settings();
  },
  tune({ name, value }) { machine.set(name, value); now.tuned = { ...now.tuned, [name]: value }; told_settings(); },
  reset() {
    levers = welcome.levers.map((lever, k) => (lever.name === welcome.mode ? levers[k] : welcome.first[k]));
    fly("");
    placed();
  },
  switch() { say({ type: "note", text: "This page has one way of stepping: export another, or run bellcrank drive.", bad: true }); told_settings(); },
};

function heard({ data }) {
  if (data.is === "open") {
    postMessage({ is: "open" });
    say({ ...welcome, type: "welcome", you: 1 });
    fly(new URLSearchParams(data.query).get("pilot") ?? ""); // ?pilot=dig in the address starts a pilot
    roles();
  } else if (data.is === "fetch") fetched(data);
  else if (data.is === "say") OBEYED[data.message.type]?.(data.message);
  else if (driver !== null) {
    told = performance.now();
    if (!data.values) letGo();
    else if (!flies || !neutral(data.values).every((x, k) => x === data.values[k])) held(data);
  }
}

// A user who moves a lever takes over from a pilot.
function held({ values, n }) {
  if (flies) fly("");
  hand = values; number = n;
  moved(values);
}

// A browser compiles twice: quickly, then with optimisation. The warm-up starts the second before the clock starts.
for (const t = performance.now(); performance.now() - t < WARM && !machine.step(20); );
placed();
onmessage = heard;
early.forEach(heard);
