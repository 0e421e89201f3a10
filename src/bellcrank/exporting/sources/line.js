// The machine itself, where the page without a server has it: in this thread, instead of a line to a server. It says
// and hears what src/bellcrank/cockpit/messages.py has. Time passes in whole steps, as many as are due whenever this
// thread wakes up; where a computer is too slow or was asleep, they are skipped, and the report says how many.

import { Ground } from "./ground.js";
import { load } from "./MACHINE.js";

const WAKE = 4, PICTURE = 16, REPORT = 500; // ms
const STALL = 600; // ms without a word from the page, after which its hands are no more
const MOST = 100; // steps in one go; what is late beyond that is skipped
const RUNNING = 1, NEUTRAL = 2, DRIVEN = 4, HEADER = 32;
const STATUS = { 2: "a number is not finite", 6: "the loops cannot be closed", 4: "an event stopped it" };
const HAND = 0.02; // s, of one step by hand
const WARM = 600; // ms
const KEPT = 512; // costs of steps for the report

const early = []; // what the page says before there is a machine
onmessage = (event) => early.push(event);
const found = await fetch(new URL("welcome.json", import.meta.url));
const { welcome, settings, start, outputs, nq, lengths } = await found.json();
const machine = await load();
const [bodies, ny, nu, nout] = welcome.sizes;
const now = { ...settings, running: true, slow: 1 };
const ground = welcome.tool && welcome.trace ? new Ground(welcome.tool, welcome.ground ?? 0) : null;
const digs = ground && welcome.scene.bodies.indexOf(welcome.trace[0]);
let levers = [...welcome.first], hand = null, told = -1e9, driver = 1;
let origin = performance.now(), done = 0, steps = 0, skipped = 0, overruns = 0, serial = 0, number = 0, epoch = 0, shown = 0, reported = 0;
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
  aligned();
}

// From here on, time is counted anew.
function aligned() { origin = performance.now(); done = 0; meter = { at: origin, steps: 0 }; }

function moved(values) { levers = clipped(values); machine.u.set(levers); machine.stale = true; }

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

function picture(held) {
  const data = new ArrayBuffer(HEADER + 4 * (12 * bodies + ny + nu + nout)), head = new DataView(data), values = new Float32Array(data, HEADER);
  head.setUint8(0, 1);
  head.setUint8(1, (now.running ? RUNNING : 0) | (held ? 0 : NEUTRAL) | (driver ? DRIVEN : 0));
  head.setUint16(2, epoch % 65536, true);
  head.setUint32(4, number >>> 0, true);
  head.setBigUint64(8, BigInt(steps), true);
  head.setFloat64(16, machine.t, true);
  head.setFloat32(24, now.slow, true);
  head.setUint32(28, ++serial >>> 0, true);
  const y = machine.now.subarray(1, 1 + ny), at = 12 * bodies;
  const q = y.subarray(0, nq), p = lengths.map((k) => machine.p[k]);
  values.set(machine.call("poses", ...(p.length ? [q, p] : [q])).poses);
  if (ground) dig(values.subarray(12 * digs, 12 * digs + 12));
  values.set(y, at);
  values.set(machine.u.subarray(0, nu), at + ny);
  const seen = nout ? machine.observe() : [];
  outputs.forEach((k, i) => { values[at + ny + nu + i] = seen[k]; });
  postMessage(data, [data]);
}

// X: the rows of the 3x4 matrix of the body that digs.
function dig(X) {
  const turned = (v) => [0, 4, 8].map((k) => X[k] * v[0] + X[k + 1] * v[1] + X[k + 2] * v[2]), at = [X[3], X[7], X[11]];
  const tip = turned(welcome.trace[1]).map((x, k) => x + at[k]), { tool } = welcome;
  ground.work(machine.t, tip, turned(tool.across), turned(tool.mouth)[2], at.map((x, k) => x + 0.7 * (tip[k] - x)));
  const news = ground.news();
  if (news) postMessage(news, [news]);
}

function times(some) {
  const sorted = [...some].sort((a, b) => a - b), n = sorted.length;
  return n ? { min: sorted[0], mean: sorted.reduce((a, b) => a + b, 0) / n, p99: sorted[Math.floor(0.99 * (n - 1))], max: sorted[n - 1] } : undefined;
}

function report(t) {
  const seconds = (t - meter.at) * 1e-3, factor = seconds > 1 && now.running ? meter.steps / (now.rate * now.slow * seconds) : undefined;
  say({
    type: "report", status: status ? STATUS[status] ?? `status ${status}` : now.running ? "running" : "paused", measured: times(costs), jitter: times(lates),
    overruns, skipped, real_time_factor: factor, log: [], notes: ["The physics runs in this page, compiled to WebAssembly; no server takes part."],
  });
}

function roles() { say({ type: "roles", driver, asking: null, viewers: 1, you: 1 }); }
function told_settings() { say({ type: "settings", ...now }); }

setInterval(() => {
  const t = performance.now(), held = driver !== null && hand !== null && t - told < STALL;
  if (!held && hand) { hand = null; moved(neutral(levers)); }
  advance(t);
  if (t - shown >= PICTURE) { shown = t; picture(held); }
  if (t - reported >= REPORT) { reported = t; report(t); }
}, WAKE);

const OBEYED = {
  blur() { if (hand) { hand = null; moved(neutral(levers)); } },
  ask() { driver = 1; roles(); },
  release() { driver = null; hand = null; moved(neutral(levers)); roles(); },
  pause() { now.running = false; told_settings(); },
  resume() { now.running = true; aligned(); told_settings(); },
  slow({ factor }) { now.slow = factor; aligned(); told_settings(); },
  step() { now.running = false; if (!status) { const n = Math.round(HAND * now.rate); status = machine.step(n); steps += n; } told_settings(); },
  tune({ name, value }) { machine.set(name, value); now.tuned = { ...now.tuned, [name]: value }; told_settings(); },
  reset() {
    levers = welcome.levers.map((lever, k) => (lever.name === welcome.mode ? levers[k] : welcome.first[k]));
    placed();
  },
  switch() { say({ type: "note", text: "This page has one way of stepping: export another, or run bellcrank drive.", bad: true }); told_settings(); },
};

function heard({ data }) {
  if (data.is === "open") {
    postMessage({ is: "open" });
    say({ ...welcome, type: "welcome", you: 1 });
    told_settings();
    roles();
  } else if (data.is === "say") OBEYED[data.message.type]?.(data.message);
  else if (driver !== null) {
    told = performance.now();
    if (data.values) { hand = data.values; number = data.n; moved(data.values); }
    else if (hand) { hand = null; moved(neutral(levers)); }
  }
}

// A browser compiles twice, quickly and then well: the second is under way before the clock starts.
for (const t = performance.now(); performance.now() - t < WARM && !machine.step(20); );
placed();
onmessage = heard;
early.forEach(heard);
