// Beams and other bodies that bend: sections that move with coordinates, coloured by stress, the bending scaled on request.

const REPLAY_BENT = D.replay && D.replay.beams.length + D.replay.skins.length ? D.replay.bent.length : 0;
const LEVELS = 33; // colours from the strongest push to the strongest pull
let bendScale = 1;

function bentAt(t) {
  const times = D.replay.t, k = before(times, t), next = Math.min(k + 1, times.length - 1), n = REPLAY_BENT, B = D.replay.bends;
  const part = next > k ? Math.min(1, Math.max(0, (t - times[k]) / (times[next] - times[k]))) : 0;
  return Array.from({ length: n }, (_, i) => B[k * n + i] + part * (B[next * n + i] - B[k * n + i]));
}

const multiplied = (A, B) => [0, 1, 2].flatMap((i) => [0, 1, 2].map((j) => A[3 * i] * B[j] + A[3 * i + 1] * B[3 + j] + A[3 * i + 2] * B[6 + j]));
const transposed = (A) => [A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8]];
const composed = (a, b) => ({ R: multiplied(a.R, b.R), p: placed(a, b.p) });
const undone = (a) => { const R = transposed(a.R); return { R, p: placed({ R, p: [0, 0, 0] }, a.p).map((x) => -x) }; };

// Where something stands in its body's frame: at a point with axes, moved and turned by the coordinates n.
function bentPose(s, n, scale) {
  let p = s.point, w = [0, 0, 0];
  s.q.forEach((i, k) => { p = add(p, s.shift[k], scale * n[i]); w = add(w, s.turn[k], scale * n[i] / 2); });
  const [x, y, z] = w, d = 2 / (1 + dot(w, w)); // as the mechanism's nodes turn: a rotation for any n
  const R = [
    1 - d * (y * y + z * z), d * (x * y - z), d * (x * z + y),
    d * (x * y + z), 1 - d * (x * x + z * z), d * (y * z - x),
    d * (x * z - y), d * (y * z + x), 1 - d * (x * x + y * y),
  ];
  return { R: multiplied(R, s.axes.flat()), p };
}

// All bodies where they are with the bending scaled: what stands on a node goes with it.
function scaled(poses, n) {
  if (bendScale === 1 || !REPLAY_BENT) return poses;
  const nodes = new Map(D.replay.nodes.map((x) => [x.body, x])), out = [];
  poses.forEach((pose, i) => {
    const parent = D.replay.parents[i], node = nodes.get(i), ground = { R: [1, 0, 0, 0, 1, 0, 0, 0, 1], p: [0, 0, 0] };
    const moved = parent < 0 ? ground : out[parent], was = parent < 0 ? ground : poses[parent];
    out.push(composed(moved, node ? bentPose(node, n, bendScale) : composed(undone(was), pose)));
  });
  return out;
}

// Push is blue, pull is red.
function stressColour(part) {
  const x = Math.max(-1, Math.min(1, part)), level = Math.round((x + 1) / 2 * (LEVELS - 1)) / (LEVELS - 1) * 2 - 1;
  const from = ink.dark ? [150, 158, 166] : [196, 202, 208], to = level < 0 ? [34, 98, 214] : [214, 40, 40], k = Math.abs(level);
  return `#${from.map((a, i) => Math.round(a + k * (to[i] - a)).toString(16).padStart(2, "0")).join("")}`;
}

// The beams as meshes in the world, with a colour for each face.
function beamMeshes(poses, n) {
  if (!REPLAY_BENT) return [];
  return D.replay.beams.map(({ slices }) => {
    const sides = slices[0].corners.length, corners = [], faces = [], stress = [], colours = [];
    for (const s of slices) {
      const at = bentPose(s, n, bendScale), pose = s.body < 0 ? at : composed(poses[s.body], at);
      s.corners.forEach(([y, z], c) => {
        corners.push(placed(pose, [0, y, z]));
        stress.push(s.stress ? s.q.reduce((sum, i, k) => sum + s.stress[k][c] * n[i], 0) : NaN);
      });
    }
    const face = (points) => {
      const mean = points.reduce((sum, i) => sum + stress[i], 0) / points.length;
      faces.push(points);
      colours.push(Number.isFinite(mean) ? stressColour(D.replay.stress ? mean / D.replay.stress : 0) : "#8a94a0");
    };
    for (let r = 0; r + 1 < slices.length; r++) {
      for (let k = 0; k < sides; k++) {
        const m = (k + 1) % sides;
        face([r * sides + k, r * sides + m, (r + 1) * sides + m, (r + 1) * sides + k]);
      }
    }
    const last = (slices.length - 1) * sides;
    face(Array.from({ length: sides }, (_, k) => sides - 1 - k));
    face(Array.from({ length: sides }, (_, k) => last + k));
    const normals = faces.map((f) => unit(cross(add(corners[f[1]], corners[f[0]], -1), add(corners[f[2]], corners[f[0]], -1))));
    return { body: -1, joint: false, corners, faces, normals, colours };
  });
}

// Bodies that are not made of beams, as meshes in the world: faces as they are, lines as thin bars of three sides.
function skinMeshes(poses, n) {
  if (!REPLAY_BENT) return [];
  return D.replay.skins.map((s) => {
    const at = s.points.map((p, i) => placed(poses[s.body], s.q.reduce((sum, j, k) => add(sum, s.shift[i][k], bendScale * n[j]), p)));
    const corners = s.cells[0].length === 3 ? at : [], faces = [];
    for (const cell of s.cells) {
      if (cell.length === 3) { faces.push(cell); continue; }
      const [a, b] = cell.map((i) => at[i]), u = across(unit(add(b, a, -1))), w = cross(unit(add(b, a, -1)), u), first = corners.length;
      for (const end of [a, b]) {
        for (let k = 0; k < 3; k++) corners.push(add(add(end, u, s.thick * Math.cos(2 * Math.PI * k / 3)), w, s.thick * Math.sin(2 * Math.PI * k / 3)));
      }
      for (let k = 0; k < 3; k++) faces.push([first + k, first + (k + 1) % 3, first + 3 + (k + 1) % 3, first + 3 + k]);
    }
    const normals = faces.map((f) => unit(cross(add(corners[f[1]], corners[f[0]], -1), add(corners[f[2]], corners[f[0]], -1))));
    return { body: -1, joint: false, corners, faces, normals, colour: "#8a94a0" };
  });
}

function listenBending() {
  $("bending").hidden = $("legend").hidden = !REPLAY_BENT;
  if (!REPLAY_BENT) return;
  $("scale").onchange = () => { bendScale = Number($("scale").value); redraw(); };
  $("legend").textContent = D.replay.stress ? `blue: push, red: pull, up to ${number(D.replay.stress / 1e6, 3)} MPa` : "";
}
