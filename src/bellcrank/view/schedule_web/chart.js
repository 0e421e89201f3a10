// Drawing. Only what is in view is drawn, and of boxes thinner than a pixel one for each pixel: size does not matter.

const chart = document.getElementById("chart");
const overview = document.getElementById("overview");
const END = S.makespan || 1;
const RULER = 30;
const ARROWS = 400; // more than these in view are lines without tips, and more than ten times as many are not drawn

const view = {
  from: 0, to: END, top: 0, // what is seen: times, and pixels scrolled down
  selected: null, hovered: null, step: null,
  critical: true, messages: true, idle: true,
  drawn: { tasks: 0, labels: 0, messages: 0 },
};
let shown = [], line = [], gutter = 112, width = 0, height = 0, rowHeight = 30, tall = 22, loads = [], ink = {};

function layout() {
  const used = rows.some((row) => row.length);
  shown = rows.map((_, p) => p).filter((p) => view.idle || !used || rows[p].length);
  line = [];
  shown.forEach((p, k) => { line[p] = k; });
  width = chart.clientWidth;
  height = chart.clientHeight;
  gutter = width < 560 ? 44 : 112;
  rowHeight = Math.max(17, Math.min(132, (height - RULER - 8) / shown.length));
  tall = Math.round(Math.max(13, Math.min(44, 0.68 * rowHeight))); // of a box; messages need room between the rows
  scrollRows(view.top);
  loads = load(Math.max(1, 2 * Math.round(width - gutter - 16)));
  for (const canvas of [chart, overview]) {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
  }
  const css = getComputedStyle(document.documentElement);
  const names = ["paper", "raised", "rule", "ink", "soft", "message", "critical", "accent"];
  ink = Object.fromEntries(names.map((name) => [name, css.getPropertyValue(`--${name}`).trim()]));
  ink.steps = Array.from({ length: COLOURS }, (_, i) => css.getPropertyValue(`--step${i}`).trim());
  ink.font = getComputedStyle(document.body).fontFamily;
}

function scrollRows(top) {
  view.top = Math.max(0, Math.min(top, shown.length * rowHeight - (height - RULER - 8)));
}

const X = (t) => gutter + ((t - view.from) / (view.to - view.from)) * (width - gutter - 16);
const T = (x) => view.from + ((x - gutter) / (width - gutter - 16)) * (view.to - view.from);
const Y = (p) => RULER + line[p] * rowHeight - view.top + rowHeight / 2;
const rowAt = (y) => shown[Math.floor((y - RULER + view.top) / rowHeight)];
const visible = (y) => y > RULER - rowHeight && y < height + rowHeight;

function taskAt(x, y) {
  const p = rowAt(y);
  if (y < RULER || x < gutter || p === undefined) return null;
  const row = rows[p], near = 3;
  let best = null, distance = near;
  for (let k = Math.max(0, firstAfter(row, T(x - near)) - 1); k < row.length && X(row[k].start) <= x + near; k++) {
    const d = Math.max(X(row[k].start) - x, x - X(row[k].finish), 0);
    if (d < distance) [best, distance] = [row[k], d];
  }
  return best;
}

function rounded(g, x, y, w, h, r) {
  g.beginPath();
  g.roundRect(x, y, w, h, Math.min(r, w / 3));
}

const widths = new Map();
function textWidth(g, text) {
  if (!widths.has(text)) widths.set(text, g.measureText(text).width);
  return widths.get(text);
}

function draw() {
  const g = chart.getContext("2d");
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, width, height);
  view.drawn = { tasks: 0, labels: 0, messages: 0 };
  const times = ticks(view.from, view.to, (width - gutter) / 90);
  drawGround(g, times);
  g.save();
  g.beginPath();
  g.rect(gutter, RULER, width - gutter, height - RULER);
  g.clip();
  if (view.messages) drawMessages(g); // behind the boxes, so that these can be read
  if (view.critical) drawCritical(g);
  for (const p of shown) if (visible(Y(p))) drawRow(g, p);
  drawRelations(g);
  g.restore();
  drawFrame(g, times);
  drawOverview();
}

function drawGround(g, times) {
  shown.forEach((p, k) => {
    if (k % 2 === 0 && visible(Y(p))) {
      g.fillStyle = ink.raised;
      g.fillRect(gutter, Y(p) - rowHeight / 2, width - gutter, rowHeight);
    }
  });
  g.strokeStyle = ink.rule;
  g.lineWidth = 1;
  g.beginPath();
  for (const t of times) {
    g.moveTo(Math.round(X(t)) + 0.5, RULER);
    g.lineTo(Math.round(X(t)) + 0.5, height);
  }
  g.stroke();
}

function related(task) {
  const at = view.selected === null ? null : S.tasks[view.selected];
  return !at || task === at || at.needs.includes(task.index) || at.users.includes(task.index);
}

function drawRow(g, p) {
  const row = rows[p], top = Y(p) - tall / 2;
  g.font = `500 ${tall < 18 ? 10.5 : 11.5}px ${ink.font}`;
  g.textAlign = "center";
  g.textBaseline = "middle";
  let pixel = -1, red = false; // the last one that a thin box has taken, and whether it was critical
  for (let k = firstAfter(row, view.from); k < row.length && row[k].start <= view.to; k++) {
    const task = row[k], a = X(task.start), b = X(task.finish), thin = b - a < 1;
    const hot = view.critical && task.hot;
    if (thin && Math.floor(b) === pixel && (red || !hot) && task.index !== view.selected) continue;
    [pixel, red] = [Math.floor(b), hot];
    const faint = (view.step !== null && task.step !== view.step) || !related(task);
    const x = Math.max(a, gutter - 8), w = Math.max(Math.min(b, width + 8) - x, 1);
    g.globalAlpha = faint ? 0.22 : 1;
    g.fillStyle = ink.steps[steps.get(task.step).colour];
    const gap = w > 4 ? 0.5 : 0;
    if (w < 5) g.fillRect(x, top, w, tall);
    else {
      rounded(g, x + gap, top, w - 2 * gap, tall, 4);
      g.fill();
    }
    view.drawn.tasks += 1;
    if (hot && w >= 7) {
      g.strokeStyle = ink.critical;
      g.lineWidth = 1.75;
      rounded(g, x + 1, top + 1, Math.max(w - 2, 1), tall - 2, 3.5);
      g.stroke();
    } else if (hot) {
      g.fillStyle = ink.critical;
      g.fillRect(x, top, w, 2);
      g.fillRect(x, top + tall - 2, w, 2);
    }
    if (w > 14) {
      const name = [task.name, task.step].find((text) => text && textWidth(g, text) <= w - 7);
      if (name) {
        g.fillStyle = ink.ink;
        g.fillText(name, x + w / 2, top + tall / 2 + 0.5);
        view.drawn.labels += 1;
      }
    }
    if (task.index === view.selected || task.index === view.hovered) {
      g.globalAlpha = 1;
      g.strokeStyle = task.index === view.selected ? ink.accent : ink.ink;
      g.lineWidth = task.index === view.selected ? 2.5 : 1.25;
      rounded(g, x - 0.5, top - 0.5, w + 1, tall + 1, 4.5);
      g.stroke();
    }
  }
  g.globalAlpha = 1;
}

function curve(g, x0, y0, x1, y1) {
  const bow = Math.max(Math.min(14, 5 + 0.12 * Math.abs(y1 - y0)), Math.min((x1 - x0) / 2, 60));
  g.bezierCurveTo(x0 + bow, y0 + 0.15 * (y1 - y0), x1 - bow, y1 - 0.15 * (y1 - y0), x1, y1);
}

function arrowHead(g, x, y, angle = 0) {
  g.save();
  g.translate(x, y);
  g.rotate(angle);
  g.beginPath();
  g.moveTo(0, 0);
  g.lineTo(-6, -3);
  g.lineTo(-6, 3);
  g.fill();
  g.restore();
}

// The edges of two rows that face each other.
function between(a, b) {
  const down = Math.sign(Y(b) - Y(a)) * (tall / 2);
  return [Y(a) + down, Y(b) - down];
}

// A straight line for each hop, of all or of some. Rows that are hidden are passed by.
function messagePath(g, m, first = 0, last = m.hops.length - 1) {
  let at, y, angle = 0, x = X(m.hops[last][2]);
  for (let k = first; k <= last; k++) {
    const [channel, start, finish] = m.hops[k];
    const here = k === 0 ? m.from : channel[0], next = k === m.hops.length - 1 ? m.to : channel[1];
    if (at === undefined && line[here] !== undefined) at = here;
    if (at === undefined || line[next] === undefined) continue;
    const [y0, y1] = between(at, next), x0 = X(start), x1 = X(finish);
    if (y === undefined) g.moveTo(x0, y0); else g.lineTo(x0, y0);
    g.lineTo(x1, y1);
    angle = Math.atan2(y1 - y0, x1 - x0);
    [at, x, y] = [next, x1, y1];
  }
  return y === undefined ? null : [x, y, angle];
}

function drawMessages(g) {
  const inView = S.messages.filter((m) => m.arrival >= view.from && m.start <= view.to
    && (visible(Y(m.from)) || visible(Y(m.to))));
  view.drawn.messages = 0;
  if (inView.length > 10 * ARROWS) return;
  const strength = Math.max(0.12, Math.min(0.8, 100 / inView.length));
  g.strokeStyle = g.fillStyle = ink.message;
  g.lineWidth = 1;
  g.globalAlpha = view.selected === null ? strength : strength / 3;
  for (const m of inView) {
    g.beginPath();
    const end = messagePath(g, m);
    g.stroke();
    if (end && inView.length <= ARROWS) arrowHead(g, ...end);
  }
  g.globalAlpha = 1;
  view.drawn.messages = inView.length;
}

function drawCritical(g) {
  g.strokeStyle = g.fillStyle = ink.critical;
  g.lineWidth = 1.75;
  g.globalAlpha = view.selected === null ? 1 : 0.35;
  for (const { message, first, last } of hotHops) {
    const m = S.messages[message];
    if (m.hops[last][2] < view.from || m.hops[first][1] > view.to) continue;
    g.beginPath();
    const end = messagePath(g, m, first, last);
    g.stroke();
    if (end) arrowHead(g, ...end);
  }
  g.globalAlpha = 1;
}

// What the task at hand waits for, and who waits for it.
function drawRelations(g) {
  const index = view.selected ?? view.hovered;
  if (index === null) return;
  const task = S.tasks[index];
  g.strokeStyle = g.fillStyle = ink.accent;
  const firm = view.selected !== null; // pointing only hints
  g.globalAlpha = firm ? 1 : 0.5;
  g.lineWidth = firm ? 1.5 : 1;
  const pairs = [...task.needs.map((j) => [S.tasks[j], task]), ...task.users.map((j) => [task, S.tasks[j]])];
  for (const [a, b] of pairs) {
    if (line[a.processor] === undefined || line[b.processor] === undefined) continue;
    const x0 = X(a.finish), x1 = X(b.start), y0 = Y(a.processor), y1 = Y(b.processor);
    g.beginPath();
    g.moveTo(x0, y0);
    if (y0 === y1 && x1 - x0 > 8) { // over the boxes between
      const over = y0 - tall / 2 - Math.min(rowHeight / 3, 14);
      g.bezierCurveTo(x0 + 8, over, x1 - 8, over, x1, y1);
      g.stroke();
      arrowHead(g, x1, y1, 1.1);
      continue;
    }
    curve(g, x0, y0, x1, y1);
    g.stroke();
    arrowHead(g, x1, y1);
  }
  g.globalAlpha = 1;
}

function drawFrame(g, times) {
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, gutter, height);
  g.fillRect(0, 0, width, RULER);
  g.textBaseline = "middle";
  const current = view.selected ?? view.hovered;
  for (const p of shown) {
    const y = Y(p);
    if (!visible(y)) continue;
    const share = S.makespan ? busy[p] / S.makespan : 0;
    g.font = `${current !== null && S.tasks[current].processor === p ? 650 : 450} 12px ${ink.font}`;
    g.fillStyle = rows[p].length ? ink.ink : ink.soft;
    g.textAlign = "right";
    g.fillText(String(p), 32, y);
    if (gutter < 60) continue;
    g.fillStyle = ink.rule;
    rounded(g, 42, y - 2, 24, 4, 2);
    g.fill();
    if (share > 0) {
      g.fillStyle = ink.soft;
      rounded(g, 42, y - 2, Math.max(24 * share, 2), 4, 2);
      g.fill();
    }
    g.font = `400 11px ${ink.font}`;
    g.fillStyle = ink.soft;
    g.fillText(share ? `${Math.round(100 * share)}%` : "–", gutter - 6, y);
  }
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, width, RULER);
  g.font = `400 11px ${ink.font}`;
  g.fillStyle = ink.soft;
  g.textAlign = "right";
  if (gutter > 60) g.fillText(S.unit, gutter - 16, RULER / 2);
  g.textAlign = "center";
  for (const t of times) if (X(t) >= gutter - 1 && X(t) < width - 14) g.fillText(number(t), X(t), RULER / 2);
  g.strokeStyle = ink.rule;
  g.beginPath();
  g.moveTo(0, RULER - 0.5);
  g.lineTo(width, RULER - 0.5);
  g.moveTo(gutter - 0.5, RULER);
  g.lineTo(gutter - 0.5, height);
  g.stroke();
  scrollbar(g);
}

function scrollbar(g) {
  const all = shown.length * rowHeight, room = height - RULER;
  if (all <= room) return;
  g.fillStyle = ink.soft;
  g.globalAlpha = 0.45;
  rounded(g, width - 8, RULER + 2 + (view.top / (all + 8)) * room, 5, Math.max((room / all) * room - 4, 24), 2.5);
  g.fill();
  g.globalAlpha = 1;
}

// -- the strip above: how many processors are busy, all the time; what is seen below is between the handles

const overviewX = (t) => gutter + (t / END) * (width - gutter - 16);
const overviewT = (x) => Math.max(0, Math.min(END, ((x - gutter) / (width - gutter - 16)) * END));

function drawOverview() {
  const g = overview.getContext("2d"), deep = overview.clientHeight;
  const base = deep - 5, up = (n) => base - (n / mostBusy) * (deep - 12);
  g.fillStyle = ink.paper;
  g.fillRect(0, 0, width, deep);
  g.fillStyle = ink.accent;
  g.globalAlpha = 0.3;
  g.beginPath();
  g.moveTo(gutter, base);
  loads.forEach((n, k) => {
    g.lineTo(gutter + k / 2, up(n));
    g.lineTo(gutter + (k + 1) / 2, up(n));
  });
  g.lineTo(gutter + loads.length / 2, base);
  g.fill();
  g.globalAlpha = 1;
  g.font = `400 11px ${ink.font}`;
  g.fillStyle = ink.soft;
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.fillText(gutter < 60 ? String(mostBusy) : `${mostBusy} busy`, gutter - 6, up(mostBusy) + 4);
  const a = overviewX(view.from), b = overviewX(view.to);
  if (view.from > 0 || view.to < END) {
    g.fillStyle = ink.paper;
    g.globalAlpha = 0.65;
    g.fillRect(gutter, 0, a - gutter, deep);
    g.fillRect(b, 0, width - b, deep);
    g.globalAlpha = 1;
    g.strokeStyle = ink.accent;
    g.lineWidth = 1.5;
    rounded(g, a, 2, Math.max(b - a, 3), deep - 5, 3);
    g.stroke();
  }
}
