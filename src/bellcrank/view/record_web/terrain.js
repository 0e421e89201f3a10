// Ground that is dug: heights at the time that is shown, and the part of them that ever changed, as faces.

const EARTH = { light: "#9a7248", dark: "#8a6238" };
const field = { k: 0, heights: null, window: null };

// What the heights are at t. Forwards from where they were; back in time, from the first again.
function groundAt(t) {
  const G = D.ground;
  if (!field.heights || (field.k && G.t[field.k - 1] > t)) {
    field.heights = Float32Array.from(G.first);
    field.k = 0;
  }
  while (field.k < G.t.length && G.t[field.k] <= t) {
    field.heights[G.cells[field.k]] = G.heights[field.k];
    field.k++;
  }
  return field.heights;
}

// Rows and columns around all that is ever not level: [from, to, from, to].
function groundWindow() {
  const G = D.ground, n = G.rows, span = [n, -1, n, -1];
  const wide = (cell) => {
    const row = Math.floor(cell / n), column = cell % n;
    span[0] = Math.min(span[0], row); span[1] = Math.max(span[1], row);
    span[2] = Math.min(span[2], column); span[3] = Math.max(span[3], column);
  };
  G.first.forEach((h, cell) => { if (h !== 0) wide(cell); });
  G.cells.forEach(wide);
  return [Math.max(0, span[0] - 1), Math.min(n - 1, span[1] + 1), Math.max(0, span[2] - 1), Math.min(n - 1, span[3] + 1)];
}

function groundFaces(camera, t) {
  if (!D.ground) return [];
  const G = D.ground, n = G.rows, h = groundAt(t), half = (n - 1) * G.cell / 2, out = [];
  const [r0, r1, c0, c1] = (field.window ??= groundWindow());
  const palette = (painted[ink.dark ? EARTH.dark : EARTH.light] ??= shadesOf(ink.dark ? EARTH.dark : EARTH.light));
  const spot = (r, c) => [c * G.cell - half, r * G.cell - half, G.level + h[r * n + c]];
  for (let r = r0; r < r1; r++) {
    for (let c = c0; c < c1; c++) {
      const corners = [spot(r, c), spot(r, c + 1), spot(r + 1, c + 1), spot(r + 1, c)];
      const seen = corners.map(camera.project);
      if (seen.some((p) => p[2] <= camera.near)) continue;
      const normal = unit(cross(add(corners[2], corners[0], -1), add(corners[3], corners[1], -1)));
      const light = 0.5 + 0.5 * dot(normal, LIGHT), depth = (seen[0][2] + seen[1][2] + seen[2][2] + seen[3][2]) / 4;
      out.push({ depth, points: seen, colour: palette[Math.round(light * (STEPS - 1))] });
    }
  }
  drawn.ground = out.length;
  return out;
}
