// Three dimensions: vectors, rotations, and an eye that goes around what it looks at.

const add = (a, b, k = 1) => [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

// Some direction across a.
function across(a) {
  const axis = Math.abs(a[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0];
  return unit(cross(a, axis));
}

// The rotation of a unit quaternion (x, y, z, w), as rows.
function rotation(x, y, z, w) {
  return [
    1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
    2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
    2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y),
  ];
}

// Where body i is at the time t: rows of R, then p; straight between two frames, quaternions the shorter way.
function poseAt(i, t) {
  const times = D.replay.t, n = D.replay.bodies.length, P = D.replay.poses;
  const k = before(times, t), next = Math.min(k + 1, times.length - 1);
  const part = next > k ? Math.min(1, Math.max(0, (t - times[k]) / (times[next] - times[k]))) : 0;
  const a = 7 * (k * n + i), b = 7 * (next * n + i), v = new Array(7);
  const flip = P[a + 3] * P[b + 3] + P[a + 4] * P[b + 4] + P[a + 5] * P[b + 5] + P[a + 6] * P[b + 6] < 0 ? -1 : 1;
  for (let j = 0; j < 7; j++) v[j] = P[a + j] + part * ((j < 3 ? 1 : flip) * P[b + j] - P[a + j]);
  if (flip < 0) for (let j = 3; j < 7; j++) v[j] = (1 - part) * P[a + j] - part * P[b + j];
  const size = Math.hypot(v[3], v[4], v[5], v[6]) || 1;
  return { R: rotation(v[3] / size, v[4] / size, v[5] / size, v[6] / size), p: [v[0], v[1], v[2]] };
}

const placed = ({ R, p }, x) => [
  R[0] * x[0] + R[1] * x[1] + R[2] * x[2] + p[0],
  R[3] * x[0] + R[4] * x[1] + R[5] * x[2] + p[1],
  R[6] * x[0] + R[7] * x[1] + R[8] * x[2] + p[2],
];

// The eye: around `target` at a distance, turned by yaw about `up` and lifted by pitch.
const UP = D.replay ? D.replay.up : [0, 0, 1];
const EAST = Math.abs(UP[2]) > 0.9 ? [1, 0, 0] : unit(cross(UP, [0, 0, 1]));
const NORTH = cross(UP, EAST);
const eye = { yaw: -0.9, pitch: 0.42, distance: 1, target: [0, 0, 0], focal: 1.5 };

function eyeAt() {
  const c = Math.cos(eye.pitch), out = add(add([0, 0, 0], EAST, c * Math.cos(eye.yaw)), NORTH, c * Math.sin(eye.yaw));
  const back = add(out, UP, Math.sin(eye.pitch)); // from the target to the eye
  const right = unit(cross(UP, back)), above = cross(back, right);
  return { at: add(eye.target, back, eye.distance), back, right, above };
}

// World -> [x, y, depth] on the page; depth grows away from the eye.
function projector(w, h) {
  const { at, back, right, above } = eyeAt(), scale = eye.focal * Math.min(w, h) / 2;
  const near = eye.distance * 0.02;
  const project = (x) => {
    const d = [x[0] - at[0], x[1] - at[1], x[2] - at[2]], depth = -dot(d, back);
    const k = scale / Math.max(depth, near);
    return [w / 2 + k * dot(d, right), h / 2 - k * dot(d, above), depth];
  };
  return { project, at, near, right, above, back };
}
