// Machines, and robots with meshes, as the cockpit draws them: where the page carries its scripts, and the browser has
// WebGL. Else, and for all other mechanisms, stage.js draws.

let world = null, dugAt = -1;
const CHANGED = D.ground ? [...new Set([...D.ground.cells, ...Array.from(D.ground.first, (h, i) => (h ? i : -1)).filter((i) => i >= 0)])] : [];
const GRID = { rows: 105, cell: 0.2 }; // of the ground that the cockpit draws

function openWorld() {
  const W = D.replay && D.replay.world, canvas = $("world");
  if (!W || typeof BellcrankReport === "undefined") return;
  const fits = !D.ground || (D.ground.rows === GRID.rows && Math.abs(D.ground.cell - GRID.cell) < 1e-9);
  if (!fits || !document.createElement("canvas").getContext("webgl2")) return;
  canvas.hidden = false;
  try {
    const scene = { ...D.replay, joints: W.joints, follow: D.replay.follow && !W.look };
    world = new BellcrankReport.Stage(canvas, { scene, look: W.look, ground: D.ground ? D.ground.level : W.ground, digs: Boolean(W.look) });
  } catch (error) { // a card that cannot
    canvas.hidden = true;
    return;
  }
  stage.hidden = true;
  $("follow").hidden = true;
  if (W.look) traceFrame = -1;
  $("trace").value = traceFrame;
  $("trace").addEventListener("change", worldPath);
  worldPath();
  $("home").addEventListener("click", () => world.home());
  if (REPLAY_BENT && W.look) { // the machine's own plates do not bend
    $("scale").prepend(made("option", "off", { value: 0 }));
    $("scale").value = 0;
  }
  $("scale").addEventListener("change", () => world.bend(Number($("scale").value)));
}

const twelve = ({ R, p }) => [0, 1, 2].flatMap((r) => [R[3 * r], R[3 * r + 1], R[3 * r + 2], p[r]]);

function worldPath() {
  const frame = D.replay.frames[traceFrame];
  world.path(frame ? frame.body : 0, frame ? frame.point : [0, 0, 0], frame ? Array.from(D.replay.t, (t) => twelve(poseAt(frame.body, t))) : []);
}

// The state at the time that is shown; whether it was drawn.
function drawWorld() {
  if (!world) return false;
  const n = D.replay.bodies.length, bends = REPLAY_BENT ? bentAt(now.t) : [], used = D.replay.bent;
  const values = new Float32Array(12 * n + (used.length ? Math.max(...used) + 1 : 0));
  for (let i = 0; i < n; i++) values.set(twelve(poseAt(i, now.t)), 12 * i);
  used.forEach((j, k) => { values[12 * n + j] = bends[k]; });
  world.place(values);
  const load = D.columns.find((c) => c.name === "payload" || c.name === "parameter.load.mass"), share = load ? Math.max(0, load.values[before(D.t, now.t)] / D.replay.world.full) : 0;
  const heights = D.ground ? groundAt(now.t) : [];
  world.dig({ cells: CHANGED, heights: CHANGED.map((i) => heights[i]), anew: now.t < dugAt, share });
  dugAt = now.t;
  return true;
}
