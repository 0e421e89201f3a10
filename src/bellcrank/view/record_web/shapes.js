// Shapes as faces: polygons in a body's frame with corners counter-clockwise from outside.

// A surface of revolution about a -> b: rings of [place along, radius], closed at both ends.
function turned(a, b, rings, sides) {
  const axis = unit(add(b, a, -1)), u = across(axis), w = cross(axis, u), corners = [], faces = [];
  for (const [along, radius] of rings) {
    for (let k = 0; k < sides; k++) {
      const angle = (2 * Math.PI * (k + 0.5)) / sides;
      corners.push(add(add(add(a, axis, along), u, radius * Math.cos(angle)), w, radius * Math.sin(angle)));
    }
  }
  for (let r = 0; r + 1 < rings.length; r++) {
    for (let k = 0; k < sides; k++) {
      const m = (k + 1) % sides;
      faces.push([r * sides + k, r * sides + m, (r + 1) * sides + m, (r + 1) * sides + k]);
    }
  }
  const last = (rings.length - 1) * sides;
  faces.push(Array.from({ length: sides }, (_, k) => sides - 1 - k), Array.from({ length: sides }, (_, k) => last + k));
  return { corners, faces };
}

function bar(s, sides) {
  const length = Math.hypot(...add(s.b, s.a, -1)), pieces = Math.max(2, Math.min(8, Math.round(length / (4 * s.ra))));
  const rings = [[-0.8 * s.ra, 0.45 * s.ra], [-0.4 * s.ra, 0.86 * s.ra]]; // a round end
  for (let i = 0; i <= pieces; i++) rings.push([(length * i) / pieces, s.ra + ((s.rb - s.ra) * i) / pieces]);
  rings.push([length + 0.4 * s.rb, 0.86 * s.rb], [length + 0.8 * s.rb, 0.45 * s.rb]);
  return turned(s.a, s.b, rings, sides);
}

function disc(s, sides) {
  const axis = unit(s.axis), bevel = 0.12 * s.r;
  const rings = [[0, s.r - bevel], [bevel, s.r], [2 * s.h - bevel, s.r], [2 * s.h, s.r - bevel]];
  const from = add(s.at, axis, -s.h);
  return turned(from, add(from, axis), rings, Math.max(sides, 14));
}

function ball(s, sides) {
  const rings = [];
  for (let i = 0; i <= 8; i++) {
    const angle = (Math.PI * (i + 0.25)) / 8.5;
    rings.push([s.r - s.r * Math.cos(angle), s.r * Math.sin(angle)]);
  }
  const from = add(s.at, [0, 0, 1], -s.r);
  return turned(from, add(from, [0, 0, 1]), rings, sides);
}

function slide(s) {
  const axis = unit(s.axis), from = add(s.at, axis, -s.h);
  return turned(from, add(from, axis), [[0, 1.3 * s.r], [s.h, 1.3 * s.r], [2 * s.h, 1.3 * s.r]], 4);
}

// A box, cut into n x n pieces on each side so that the order of drawing is right beside other shapes.
function boxed(s) {
  const corners = [], faces = [], n = 3, column = (k) => [s.axes[0][k], s.axes[1][k], s.axes[2][k]];
  for (let k = 0; k < 3; k++) {
    for (const side of [-1, 1]) {
      const out = column(k), u = column((k + 1) % 3), w = column((k + 2) % 3);
      const hu = s.half[(k + 1) % 3], hw = s.half[(k + 2) % 3], first = corners.length;
      const middle = add(s.at, out, side * s.half[k]);
      for (let i = 0; i <= n; i++) {
        for (let j = 0; j <= n; j++) corners.push(add(add(middle, u, hu * (2 * i / n - 1)), w, hw * (2 * j / n - 1)));
      }
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < n; j++) {
          const p = first + i * (n + 1) + j, face = [p, p + n + 1, p + n + 2, p + 1];
          faces.push(side > 0 ? face : face.reverse());
        }
      }
    }
  }
  return { corners, faces };
}

// Triangles of the robot's own file.
function mesh(s) {
  const x = unpacked(s.corners, Float32Array), f = unpacked(s.faces, Uint32Array), corners = [], faces = [];
  for (let i = 0; i < x.length; i += 3) corners.push([x[i], x[i + 1], x[i + 2]]);
  for (let i = 0; i < f.length; i += 3) faces.push([f[i], f[i + 1], f[i + 2]]);
  return { corners, faces };
}

const MAKERS = { bar, disc, ball, slide, box: boxed, mesh };

// All shapes of the replay with the normals of their faces: fewer sides where there are many.
function meshes() {
  const sides = D.replay.shapes.length > 60 ? 8 : D.replay.shapes.length > 24 ? 10 : 14;
  return D.replay.shapes.filter((s) => s.kind !== "rod").map((s) => meshOf(s, sides));
}

function meshOf(s, sides) {
  const { corners, faces } = MAKERS[s.kind](s, sides);
  const normals = faces.map((f) => unit(cross(add(corners[f[1]], corners[f[0]], -1), add(corners[f[2]], corners[f[0]], -1))));
  // Neither white nor black: both papers are one of them.
  const colour = s.colour ? `#${s.colour.map((x) => Math.round(255 * (0.05 + 0.78 * x)).toString(16).padStart(2, "0")).join("")}` : null;
  return { body: s.body, joint: Boolean(s.joint), corners, faces, normals, colour };
}

// Rods of slides: their length changes, so they are made anew, in the world.
function rods(poses) {
  const out = [];
  for (const s of D.replay.shapes) {
    if (s.kind !== "rod") continue;
    const a = s.parent < 0 ? s.from : placed(poses[s.parent], s.from), b = poses[s.body].p;
    if (Math.hypot(...add(b, a, -1)) > s.r) out.push(meshOf({ kind: "bar", body: -1, a, b, ra: s.r, rb: s.r }, 8));
  }
  return out;
}
