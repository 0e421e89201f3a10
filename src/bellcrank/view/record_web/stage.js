// The replay on a canvas: ground, shadow, trace, and the faces of all shapes from far to near.

const stage = $("stage");
const drawn = { faces: 0, trace: 0, ground: 0 }; // for who checks
const MESHES = D.replay ? meshes() : [];
const LIGHT = unit(add(add(UP, EAST, 0.45), NORTH, -0.65));
const STEPS = 24; // shades of a colour
let shades = [], traceFrame = D.replay ? D.replay.frames.length - 1 : -1, following = Boolean(D.replay && D.replay.follow);
let offset = [0, 0, 0]; // of what is looked at, from the body that is followed

function channels(hex) { return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); }

function shadesOf(hex) {
  const c = channels(hex), floor = ink.dark ? 0.42 : 0.6;
  return Array.from({ length: STEPS }, (_, k) => {
    const light = k / (STEPS - 1), dim = floor + (1.02 - floor) * light, glow = ink.dark ? 46 * light ** 3 : 26 * light ** 4;
    return `rgb(${c.map((x) => Math.min(255, Math.round(x * dim * (ink.dark ? 1.25 : 1) + glow))).join(",")})`;
  });
}

let painted = {}; // shades of meshes that have colours of their own

function restage() {
  if (!D.replay) return;
  painted = {};
  shades = [...ink.bodies.map(shadesOf), shadesOf(ink.dark ? "#7c8694" : "#6f7884")]; // joints and ground are grey
}

function home() {
  const r = D.replay;
  Object.assign(eye, { yaw: -0.9, pitch: 0.36, distance: (r.follow ? 2.4 : 1.85) * r.radius, target: [...r.centre] });
  following = r.follow;
  offset = following ? add(r.centre, poseAt(0, START).p, -1) : [0, 0, 0];
  $("follow").setAttribute("aria-pressed", String(following));
}

function drawStage() {
  if (!D.replay || drawWorld()) return;
  const [g, w, h] = sized(stage);
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, w, h);
  const bends = REPLAY_BENT ? bentAt(now.t) : [], poses = scaled(D.replay.bodies.map((_, i) => poseAt(i, now.t)), bends);
  if (following) eye.target = add(poses[0].p, offset);
  const camera = projector(w, h), all = [...MESHES, ...rods(poses), ...beamMeshes(poses, bends), ...skinMeshes(poses, bends)], world = all.map((m) => (m.body < 0 ? m.corners : m.corners.map((x) => placed(poses[m.body], x))));
  const high = dot(camera.at, UP) > 0;
  drawGrid(g, camera);
  if (high) drawShadow(g, camera, all, world);
  drawTrace(g, camera);
  drawFaces(g, camera, all, world, poses, groundFaces(camera, now.t));
  drawAxes(g, camera, h);
}

// Lines of the ground around what is looked at; they fade with the distance.
function drawGrid(g, camera) {
  const reach = 2.6 * eye.distance, rough = eye.distance / 9, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((k) => power * k >= rough);
  const middle = [dot(eye.target, EAST), dot(eye.target, NORTH)], n = Math.ceil(reach / step), pieces = 12;
  const spot = (e, m) => add(add([0, 0, 0], EAST, e), NORTH, m);
  g.lineWidth = 1;
  g.strokeStyle = ink.soft;
  for (let side = 0; side < 2; side++) {
    const first = Math.round(middle[side] / step);
    for (let k = first - n; k <= first + n; k++) {
      const off = k * step - middle[side], half = Math.sqrt(Math.max(0, reach * reach - off * off));
      for (let i = 0; i < pieces; i++) {
        const along = [i, i + 1].map((j) => middle[1 - side] + half * (2 * j / pieces - 1));
        const ends = along.map((x) => camera.project(side ? spot(x, k * step) : spot(k * step, x)));
        if (Math.min(ends[0][2], ends[1][2]) <= camera.near) continue;
        const away = Math.hypot(off, (along[0] + along[1]) / 2 - middle[1 - side]) / reach;
        g.globalAlpha = (k === 0 ? 0.55 : 0.24) * Math.max(0, 1 - away) ** 1.5;
        if (g.globalAlpha < 0.01) continue;
        g.beginPath();
        g.moveTo(ends[0][0], ends[0][1]);
        g.lineTo(ends[1][0], ends[1][1]);
        g.stroke();
      }
    }
  }
  g.globalAlpha = 1;
}

// One path of all that looks up, seen from straight above: its union is the shadow.
function drawShadow(g, camera, meshes, world) {
  g.beginPath();
  meshes.forEach((m, k) => {
    const flat = world[k].map((x) => (dot(x, UP) >= 0 ? camera.project(add(x, UP, -dot(x, UP))) : null));
    for (const face of m.faces) {
      const points = face.map((i) => flat[i]);
      if (points.some((p) => p === null || p[2] <= camera.near)) continue;
      let area = 0;
      points.forEach((p, i) => { const q = points[(i + 1) % points.length]; area += p[0] * q[1] - q[0] * p[1]; });
      if (area >= 0) continue; // the lower half covers the same ground
      points.forEach((p, i) => (i ? g.lineTo(p[0], p[1]) : g.moveTo(p[0], p[1])));
      g.closePath();
    }
  });
  g.fillStyle = ink.dark ? "rgba(0,0,0,0.38)" : "rgba(28,32,36,0.10)";
  g.fill();
}

function drawFaces(g, camera, meshes, world, poses, more) {
  const all = more;
  meshes.forEach((m, k) => {
    // A joint's hub holds the ends of the bars that meet in it: it is drawn as if it were a little nearer.
    const nearer = m.joint ? 0.11 * D.replay.unit : 0;
    const corners = world[k], seen = corners.map(camera.project), R = m.body < 0 ? null : poses[m.body].R;
    const palette = m.colour ? (painted[m.colour] ??= shadesOf(m.colour)) : shades[m.joint || m.body < 0 ? shades.length - 1 : m.body % (shades.length - 1)];
    m.faces.forEach((face, f) => {
      const n0 = m.normals[f], n = R ? placed({ R, p: [0, 0, 0] }, n0) : n0;
      if (dot(n, add(camera.at, corners[face[0]], -1)) <= 0) return;
      let depth = 0;
      for (const i of face) {
        if (seen[i][2] <= camera.near) return;
        depth += seen[i][2];
      }
      const light = 0.5 + 0.5 * dot(n, LIGHT), own = m.colours ? (painted[m.colours[f]] ??= shadesOf(m.colours[f])) : palette;
      all.push({ depth: depth / face.length - nearer, points: face.map((i) => seen[i]), colour: own[Math.round(light * (STEPS - 1))] });
    });
  });
  all.sort((a, b) => b.depth - a.depth);
  drawn.faces = all.length;
  g.lineWidth = 0.8;
  g.lineJoin = "round";
  for (const { points, colour } of all) {
    g.beginPath();
    points.forEach((p, i) => (i ? g.lineTo(p[0], p[1]) : g.moveTo(p[0], p[1])));
    g.closePath();
    g.fillStyle = g.strokeStyle = colour; // the line closes the seam to the next face
    g.fill();
    g.stroke();
  }
}

// The path of the chosen frame: all of it faint, up to now strong.
function drawTrace(g, camera) {
  drawn.trace = 0;
  const frame = D.replay.frames[traceFrame];
  if (!frame) return;
  const times = D.replay.t, path = Array.from(times, (t) => camera.project(placed(poseAt(frame.body, t), frame.point)));
  const here = camera.project(placed(poseAt(frame.body, now.t), frame.point)), k = before(times, now.t);
  const line = (points, alpha, width) => {
    g.globalAlpha = alpha;
    g.lineWidth = width;
    g.beginPath();
    let pen = false;
    for (const p of points) {
      if (p[2] <= camera.near) pen = false;
      else if (pen) g.lineTo(p[0], p[1]);
      else { g.moveTo(p[0], p[1]); pen = true; }
    }
    g.stroke();
  };
  g.strokeStyle = ink.accent;
  g.lineJoin = "round";
  line(path, 0.28, 1.2);
  line([...path.slice(0, k + 1), here], 0.9, 1.8);
  g.globalAlpha = 1;
  drawn.trace = path.length;
}

// Which way x, y and z are, in the corner.
function drawAxes(g, camera, h) {
  const at = [38, h - 34], size = 22, axes = [["x", [1, 0, 0], 5], ["y", [0, 1, 0], 2], ["z", [0, 0, 1], 0]];
  axes.sort((a, b) => dot(a[1], camera.back) - dot(b[1], camera.back));
  g.font = `600 11px ${ink.font}`;
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.lineWidth = 2;
  for (const [name, axis, colour] of axes) {
    const x = size * dot(axis, camera.right), y = -size * dot(axis, camera.above);
    g.strokeStyle = g.fillStyle = ink.lines[colour];
    g.beginPath();
    g.moveTo(...at);
    g.lineTo(at[0] + x, at[1] + y);
    g.stroke();
    g.fillText(name, at[0] + 1.38 * x, at[1] + 1.38 * y);
  }
}
