// The page: messages of the server go to view, plots and panels; input goes to the server.

import "./style.css";
import { calibrating } from "./calibrate";
import { Coach } from "./coach";
import { deadline } from "./deadline";
import { Gauges } from "./gauges";
import { by, choice } from "./dom";
import { Seat } from "./eye";
import { AXES, Four, Hands, typing } from "./hands";
import { History } from "./history";
import { keys } from "./keys";
import { Layout } from "./layout";
import { Link } from "./link";
import { Marks } from "./marks";
import { Axes, NEUTRAL, Patch, PROTOCOL, Report, Roles, RUNNING, Settings, State, Told, Welcome } from "./messages";
import { chip, compiling, note } from "./notices";
import * as pilots from "./pilots";
import { Plots } from "./plots";
import { Replay } from "./replay";
import { Sliders } from "./sliders";
import { Sound } from "./sound";
import { Stick } from "./sticks";
import { turnTheme } from "./theme";
import { Tuning } from "./tuning";
import { View } from "./view";

const HEARTBEAT = 33; // ms between two polls of the input devices; the worker repeats the last input while drawing takes long
const hands = new Hands();
let welcome: Welcome | null = null, settings: Settings | null = null, roles: Roles | null = null, report: Report | null = null;
let view: View | null = null, plots: Plots | null = null, history: History | null = null, sliders: Sliders | null = null, coach: Coach | null = null;
let sticks: Stick[] = [], replay: Replay | null = null, newest: State | null = null, axes: Four = hands.now();
let mode = "", pattern = localStorage.getItem("pattern") ?? "ISO", tab = "Plots", attentive = document.hasFocus(), number = 0;
let pictures = 0, steps = -1, epoch = -1, last = 0, fresh = false, held = true, asked = 0;
const layout = new Layout(() => view), sentAt = new Map<number, number>(), delays: number[] = [];
const sound = new Sound();
let gauges: Gauges | null = null, tuning: Tuning | null = null;
let showMode = (_: string) => {}, showPattern = (_: string) => {};

const link = new Link({ told, seen, dug, changed: (how) => {
  chip(how === "open" ? "live" : how === "stranger" ? "no entry" : "no line, trying again", how === "open" ? "" : "bad");
  if (how === "stranger") note("This page does not know this server's token. Open the address that the terminal shows.", false);
  if (how !== "open") { roles = null; newest = null; held = true; }
} });
const marks = new Marks((address) => link.fetched(address));
const driving = () => roles !== null && roles.driver === roles.you;

function told(message: Told): void {
  switch (message.type) {
    case "welcome": meet(message); break;
    case "roles": roles = message; showRoles(); break;
    case "settings": settings = message; showSettings(); break;
    case "report": report = message; fault(message.status ?? ""); if (tab === "Deadlines") deadline(message, settings?.rate ?? 1000); break;
    case "note": note(message.text, message.bad); break;
    case "levers": sliders?.take(message.values); takeOver(); break;
  }
}

// If the server has not changed, the world is kept after a reconnection.
function meet(w: Welcome): void {
  if (w.protocol !== PROTOCOL) { note("The server has changed; load this page again.", true); return; }
  if (welcome && JSON.stringify({ ...w, you: 0 }) === JSON.stringify({ ...welcome, you: 0 })) { welcome = w; history!.clear(); return; }
  if (welcome) { location.reload(); return; }
  welcome = w;
  document.title = w.name;
  by("name").textContent = w.name.replaceAll("_", " ");
  marks.offer(w.formats);
  const [, ...rest] = w.sizes;
  view = new View(by<HTMLCanvasElement>("view"), w);
  if (ground) dug(ground);
  by("bends").hidden = !view.bending;
  by<HTMLSelectElement>("bending").value = w.look ? "0" : "1";
  by("bending").onchange = () => view!.bend(Number(by<HTMLSelectElement>("bending").value));
  if (w.scene.notes.length) note(`${w.scene.notes.length} of its meshes could not be had, and simple shapes stand for them. ${w.scene.notes[0]}`, true);
  history = new History(rest.reduce((a, b) => a + b, 0));
  plots = new Plots(by("tab-Plots"), w);
  gauges = new Gauges(by("gauges"), w, 12 * w.sizes[0]);
  tuning = new Tuning(w, (m) => link.send(m));
  by("sound").hidden = !w.names.includes("engine.speed");
  const seat = (localStorage.getItem("seat") ?? "Orbit") as Seat, show = choice(by("seats"), view.eye.seats, (s) => sit(s as Seat));
  const sit = (s: Seat) => { view!.sit(s); show(s); localStorage.setItem("seat", s); };
  sit(view.eye.seats.includes(seat) ? seat : "Orbit");
  layout.fit();
  addEventListener("keydown", (e) => { if (e.code === "KeyV" && !typing(e.target)) { const { seats, seat } = view!.eye; sit(seats[(seats.indexOf(seat) + 1) % seats.length]!); } });
  mode = w.modes[0] ?? "";
  by("modes").hidden = w.modes.length < 2;
  showMode = choice(by("modes"), w.modes, (name) => { mode = name; relabel(); });
  const patterns = Object.keys(w.patterns);
  by("patterns").hidden = patterns.length < 2;
  if (patterns.length && !patterns.includes(pattern)) pattern = patterns[0]!;
  showPattern = choice(by("patterns"), patterns, (name) => { pattern = name; localStorage.setItem("pattern", name); relabel(); });
  showMode(mode); showPattern(pattern);
  if (patterns.length) {
    sticks = [new Stick(by("stick-left"), "left", hands.fingers), new Stick(by("stick-right"), "right", hands.fingers)];
    by("stick-left").hidden = by("stick-right").hidden = false;
    if (view.earth) coach = new Coach(w.pilots.includes("dig") ? () => link.send({ type: "pilot", name: "dig" }) : null);
    by("site").hidden = !view.earth;
    relabel();
  } else {
    sliders = new Sliders(by("sliders"), w.levers, w.first, w.names, 12 * w.sizes[0]);
    by("sliders").hidden = false;
    by("sliders").addEventListener("input", () => takeOver());
    if (w.handle) view.lead((p) => { if (driving()) link.send({ type: "reach", point: [p.x, p.y, p.z] }); });
  }
  for (const key of ["rate", "integrator", "method"] as const) {
    const select = by<HTMLSelectElement>(key);
    select.replaceChildren(...w.choices[key].map((x) => new Option(String(x), String(x))));
    select.onchange = () => link.send({ type: "switch", [key]: key === "rate" ? Number(select.value) : select.value });
  }
  const pilot = by<HTMLSelectElement>("pilot");
  pilot.hidden = !w.pilots.length;
  pilot.replaceChildren(new Option("by hand", ""), ...w.pilots.map((p) => new Option(pilots.listed(p), p)));
  pilot.onchange = () => link.send({ type: "pilot", name: pilot.value });
}

// Merge two changes; the result covers the whole ground if the first does.
function merged(a: Patch, b: Patch): Patch {
  const all = new Map([...a.cells].map((cell, i) => [cell, a.heights[i]!]));
  b.cells.forEach((cell, i) => all.set(cell, b.heights[i]!));
  return { ...b, whole: a.whole, heights: Float32Array.from(all.values()), cells: Uint16Array.from(all.keys()) };
}

function axesNow(): Axes | null {
  return welcome?.patterns[pattern]?.[mode] ?? null;
}

function relabel(): void {
  const a = axesNow();
  hands.pads.pattern = a;
  hands.pads.joysticks = welcome?.joysticks[mode];
  if (!a) return;
  sticks.forEach((s) => s.label(a, welcome!.words[mode] ?? {}));
  coach?.label(a, welcome!.words[mode] ?? {}, mode === welcome!.modes[1]);
}

// Lever values: slider positions, or the four axes mapped by the pattern.
function levers(): number[] {
  if (!welcome) return [];
  if (sliders) return [...sliders.values];
  const a = axesNow(), spans = welcome.spans[mode] ?? {};
  return welcome.levers.map((lever) => {
    if (lever.name === welcome!.mode) return welcome!.modes.indexOf(mode);
    const axis = a && AXES.find((x) => a[x][0] === lever.name);
    return axis ? axes[axis] * a[axis][1] * (spans[lever.name] ?? lever.high) : (lever.neutral ?? 0);
  });
}

function beat(): void {
  axes = hands.now();
  if (AXES.some((a) => axes[a] !== 0)) takeOver();
  if (!welcome || !attentive || !driving() || replay) {
    if (held) link.hands(null, number);
    held = false;
    return;
  }
  held = true;
  number = (number + 1) % 2 ** 32;
  sentAt.set(number, performance.now());
  if (sentAt.size > 100) sentAt.delete(sentAt.keys().next().value!);
  link.hands(levers(), number);
}

// If nobody drives, moving the levers requests to drive.
function takeOver(): void {
  if (!roles || roles.driver !== null || replay || performance.now() - asked < 500) return;
  asked = performance.now();
  link.send({ type: "ask" });
}
setInterval(beat, HEARTBEAT);

function attention(now: boolean): void {
  if (attentive === now) return;
  attentive = now;
  if (!now) { hands.drop(); sliders?.drop(); link.send({ type: "blur" }); }
}
addEventListener("blur", () => attention(false));
addEventListener("focus", () => attention(true));
document.addEventListener("visibilitychange", () => attention(!document.hidden && document.hasFocus()));
addEventListener("pointerdown", () => attention(true));

function seen(s: State): void {
  pictures++;
  if (s.epoch !== epoch || s.t < last) view?.clearTrace();
  fresh ||= !newest || s.n !== newest.n || s.epoch !== newest.epoch || s.t !== newest.t;
  if (s.epoch !== epoch || s.t < last) marks.restart();
  epoch = s.epoch; last = s.t;
  newest = s;
  const sent = sentAt.get(s.input);
  if (sent !== undefined && driving()) {
    sentAt.delete(s.input);
    delays.push(performance.now() - sent);
    if (delays.length > 120) delays.shift();
  }
  if (!welcome) return;
  history!.add(s.t, s.values, 12 * welcome.sizes[0]);
  if (!replay) view?.trail(s.values);
}

// The drawn ground. A replay has a separate one; changes meanwhile are collected in `ground`.
let ground: Patch | null = null;
function dug(p: Patch): void {
  if (p !== ground) ground = p.whole || !ground ? p : merged(ground, p);
  if (!replay) view?.dug(p);
}

function frame(): void {
  requestAnimationFrame(frame);
  if (!view) return;
  if (replay) {
    if (replay.step(1)) {
      const soil = replay.ground();
      if (soil) view.dug(soil);
      view.place(replay.row());
      view.trail(replay.row());
    }
    by<HTMLInputElement>("time").value = String(replay.t);
    by("time-text").textContent = `${(replay.t - replay.begin).toFixed(2)} / ${(replay.end - replay.begin).toFixed(1)} s`;
    by("play").textContent = replay.playing ? "❚❚" : "▶";
  } else if (newest && fresh) { view.place(newest.values); fresh = false; }
  view.draw();
  if (view.bending) by("stress").textContent = view.bending.said;
  for (const s of sticks) s.show(axes, driving() && attentive && !replay);
}
requestAnimationFrame(frame);

setInterval(() => {
  if (replay) plots?.replay(replay.table, replay.t, false);
  else if (tab === "Plots" && history && history.end > history.start && !by("panel").classList.contains("away")) plots!.live(history);
  if (newest) sliders?.show(replay ? replay.row() : newest.values);
  if (newest && welcome) {
    const of = (name: string) => newest!.values[12 * welcome!.sizes[0] + welcome!.names.indexOf(name)] ?? 0;
    if (sound.on) sound.hear(newest.flags & RUNNING ? of("engine.speed") : 0, of("engine.load"));
  }
  if (newest) by("clock").textContent = `${newest.t.toFixed(2)} s`;
  const site = newest && view?.site();
  if (newest) gauges?.show(replay ? replay.row() : newest.values, site?.away);
  if (site) coach?.see(site, replay !== null);
  dead();
}, 80);

setInterval(() => {
  by("fps").textContent = `${pictures} /s`;
  if (link.open) live();
  pictures = 0;
  const sorted = [...delays].sort((a, b) => a - b);
  by("latency").textContent = sorted.length ? `${sorted[sorted.length >> 1]!.toFixed(1)} ms` : "–";
}, 1000);

// Show the status, with the reason while the machine does not move.
function live(): void {
  const stuck = newest !== null && newest.n === steps;
  steps = newest?.n ?? -1;
  const [text, cls] = settings?.running === false ? ["paused", "wait"]
    : report?.status === "failed" ? ["failed", "bad"]
    : !pictures ? ["no picture comes", "wait"]
    : stuck ? ["stands still", "wait"] : [`live ${pictures} Hz`, ""];
  chip(text!, cls!);
}

function dead(): void {
  const free = driving() || roles?.driver == null, move = sliders ? "move a slider" : "move a stick";
  const why = replay || !newest ? "" : settings?.pilot ? `it ${pilots.told(settings.pilot)}; ${free ? `${move} to take over` : "you are watching"}`
    : !driving() ? (free ? `nobody drives: ${move} to take over` : "you are watching")
    : newest.flags & NEUTRAL ? (attentive ? "dead-man: sticks are neutral" : "click here to drive: sticks are neutral") : "";
  by("dead-man").textContent = why;
  by("dead-man").hidden = !why;
}

// A failed drive gives the reason, such as a state that is not finite.
function fault(status: string): void {
  if (status && !["running", "paused", "stopped", "ready"].includes(status)) note(`The drive: ${status}. Reset starts it anew.`, true);
}

function showRoles(): void {
  if (!roles) return;
  by("viewers").textContent = String(roles.viewers);
  by("role").textContent = driving() ? "you drive" : roles.driver == null ? "nobody drives" : "you are watching";
  by("ask").hidden = driving();
  by("release").hidden = !driving();
  by<HTMLButtonElement>("ask").disabled = roles.asking === roles.you;
  by("asked").hidden = !(driving() && roles.asking !== null);
  for (const id of ["pause", "step", "reset", "slow", "pilot"]) by<HTMLButtonElement>(id).disabled = !driving();
  showSettings();
}

function showSettings(): void {
  if (!settings) return;
  by("pause").textContent = settings.running ? "Pause" : "Go on";
  for (const key of ["rate", "integrator", "method", "slow", "pilot"] as const) by<HTMLSelectElement>(key).value = String(settings[key]);
  compiling(settings.compiling);
  tuning?.show(settings, driving());
  view?.job(settings.task.place);
  for (const id of ["rate", "integrator", "method"]) by<HTMLSelectElement>(id).disabled = !driving() || Boolean(settings.compiling);
}

// -- buttons

by("pause").onclick = () => link.send({ type: newest && newest.flags & RUNNING ? "pause" : "resume" });
addEventListener("keydown", (e) => {
  if (e.code === "Space" && !typing(e.target) && (e.target as HTMLElement).tagName !== "BUTTON") { e.preventDefault(); if (replay) replay.toggle(); else by("pause").click(); }
  if (e.code === "KeyH" && coach && !typing(e.target)) coach.show(by("coach").hidden === true);
  if (e.code === "KeyM" && !typing(e.target) && welcome && welcome.modes.length > 1) {
    mode = welcome.modes[(welcome.modes.indexOf(mode) + 1) % welcome.modes.length]!;
    showMode(mode); relabel();
  }
});
by("step").onclick = () => link.send({ type: "step" });
by("keys").onclick = () => keys(sticks.length > 0);
by("theme").onclick = () => turnTheme();
by("sound").onclick = () => { sound.turn(!sound.on); by("sound").setAttribute("aria-pressed", String(sound.on)); };
addEventListener("keydown", (e) => {
  if (typing(e.target) || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === ".") by("step").click();
  if (e.key === "?") keys(sticks.length > 0);
  if (e.code === "KeyT") turnTheme();
});
by("reset").onclick = () => { sliders?.reset(); hands.drop(); link.send({ type: "reset" }); history?.clear(); };
by<HTMLSelectElement>("slow").onchange = (e) => link.send({ type: "slow", factor: Number((e.target as HTMLSelectElement).value) });
by("ask").onclick = () => link.send({ type: "ask" });
by("release").onclick = () => { hands.drop(); link.send({ type: "release" }); };
by("grant").onclick = () => link.send({ type: "answer", grant: true });
by("refuse").onclick = () => link.send({ type: "answer", grant: false });
by("pads").onclick = () => calibrating(hands.pads);

by("record").onclick = () => { if (marks.press(newest?.t ?? 0)) void startReplay(); };
by("replay").onclick = () => void startReplay();
by("live").onclick = () => {
  replay = null;
  showReplay();
  view?.clearTrace();
  fresh = true;
  if (ground) view?.dug({ ...ground, whole: true });
};
by("play").onclick = () => replay?.toggle();
by<HTMLInputElement>("time").oninput = (e) => { replay?.seek(Number((e.target as HTMLInputElement).value)); };

function showReplay(): void {
  by("timeline").hidden = replay === null;
  document.body.classList.toggle("replaying", replay !== null);
}

async function startReplay(): Promise<void> {
  if (!welcome) return;
  try {
    const { data } = await link.fetched(`/replay?${Marks.query(...marks.span)}`), found = Replay.of(data, 12 * welcome.sizes[0]);
    if (!found) { note("There is nothing recorded yet.", true); return; }
    replay = found;
    view?.clearTrace();
    Object.assign(by<HTMLInputElement>("time"), { min: String(found.begin), max: String(found.end) });
    showReplay();
    plots?.replay(found.table, found.t, true);
  } catch (error) { note(error instanceof Error ? error.message : String(error), true); }
}

const showTab = choice(by("tabs"), ["Plots", "Deadlines", "Setup"], (name) => {
  tab = name;
  for (const other of ["Plots", "Deadlines", "Setup"]) by(`tab-${other}`).hidden = other !== name;
  if (name === "Deadlines" && report) deadline(report, settings?.rate ?? 1000);
  if (name === "Plots" && replay) plots?.replay(replay.table, replay.t, true);
});
showTab(tab);
// For tests and for the browser's console.
Object.assign(window, { cockpit: { state: () => newest, roles: () => roles, settings: () => settings, axes: () => axes, delays, replay: () => replay, view: () => view, plots: () => plots, levers } });
