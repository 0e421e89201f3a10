// Plots: one canvas for each panel, all over the same stretch of time, with a line where the replay is.

const span = { from: START, to: END }; // what all plots show
const plots = D.panels.map((panel) => ({ ...panel, hidden: new Set(), chips: [], low: 0, high: 1 }));
const LEFT = 58, RIGHT = 12, TOP = 8, BOTTOM = 22;
let marked = null; // [from, to] while a stretch is being chosen

function buildPlots() {
  for (const plot of plots) {
    const card = made("div", "", { className: "card plot" }), head = made("h2", plot.title);
    head.append(made("span", { "1": "", "": "no unit" }[plot.unit] ?? plot.unit));
    const legend = made("div", "", { className: "legend" });
    plot.canvas = made("canvas", "", { tabIndex: 0 });
    plot.canvas.setAttribute("aria-label", `${plot.title} over time`);
    plot.columns.forEach((c, i) => {
      const chip = made("button", "", { title: "Show or hide" });
      chip.append(Object.assign(made("i", ""), { style: `background: var(--line${i % 10})` }), made("span", D.columns[c].name), made("b", ""));
      chip.setAttribute("aria-pressed", "true");
      chip.onclick = (event) => { toggle(plot, c, event.altKey || event.shiftKey); };
      plot.chips.push(chip);
      legend.append(chip);
    });
    card.append(head, legend, plot.canvas);
    $("plots").append(card);
    listen(plot);
  }
}

// A click hides or shows a line; with Shift it leaves that line alone.
function toggle(plot, c, alone) {
  if (alone) plot.hidden = new Set(plot.columns.filter((k) => k !== c));
  else if (!plot.hidden.delete(c)) plot.hidden.add(c);
  plot.columns.forEach((k, i) => plot.chips[i].setAttribute("aria-pressed", String(!plot.hidden.has(k))));
  redraw();
}

function zoomTo(from, to) {
  const least = (END - START) * 1e-4 || 1, length = Math.max(least, Math.min(to - from, END - START));
  span.from = Math.max(START, Math.min(from, END - length));
  span.to = span.from + length;
  redraw();
}

function zoomBy(by, around = (span.from + span.to) / 2) {
  zoomTo(around - (around - span.from) * by, around + (span.to - around) * by);
}

const plotX = (plot, t) => LEFT + ((t - span.from) / (span.to - span.from || 1)) * (plot.width - LEFT - RIGHT);
const plotT = (plot, x) => {
  const part = (x - LEFT) / (plot.width - LEFT - RIGHT);
  return Math.min(span.to, Math.max(span.from, span.from + part * (span.to - span.from)));
};

// Least and greatest value in sight.
function bounds(plot, first, last) {
  let low = Infinity, high = -Infinity;
  for (const c of plot.columns) {
    if (plot.hidden.has(c)) continue;
    const values = D.columns[c].values;
    for (let i = first; i <= last; i++) {
      const x = values[i];
      if (Number.isFinite(x)) { if (x < low) low = x; if (x > high) high = x; }
    }
  }
  if (low > high) [low, high] = [0, 1];
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

function drawPlot(plot) {
  const [g, w, h] = sized(plot.canvas);
  plot.width = w;
  const first = before(D.t, span.from), last = Math.min(D.t.length - 1, before(D.t, span.to) + 1);
  [plot.low, plot.high] = bounds(plot, first, last);
  const Y = (x) => TOP + ((plot.high - x) / (plot.high - plot.low)) * (h - TOP - BOTTOM);
  g.clearRect(0, 0, w, h);
  g.font = `11px ${ink.font}`;
  g.lineWidth = 1;
  g.strokeStyle = ink.rule;
  g.fillStyle = ink.soft;
  g.textAlign = "right";
  g.textBaseline = "middle";
  for (const y of ticks(plot.low, plot.high, (h - TOP - BOTTOM) / 26)) {
    rule(g, LEFT, Y(y), w - RIGHT, Y(y));
    g.fillText(number(y), LEFT - 8, Y(y));
  }
  g.textAlign = "center";
  for (const t of ticks(span.from, span.to, (w - LEFT - RIGHT) / 80)) {
    const x = plotX(plot, t);
    rule(g, x, TOP, x, h - BOTTOM);
    g.fillText(`${number(t)} s`, Math.min(x, w - 16), h - BOTTOM / 2 + 2);
  }
  g.save();
  g.beginPath();
  g.rect(LEFT, 0, w - LEFT - RIGHT, h - BOTTOM);
  g.clip();
  g.lineJoin = "round";
  g.lineWidth = 1.6;
  plot.columns.forEach((c, i) => { if (!plot.hidden.has(c)) drawLine(g, plot, D.columns[c].values, first, last, Y, ink.lines[i % 10]); });
  if (marked) {
    g.fillStyle = ink.accent;
    g.globalAlpha = 0.14;
    g.fillRect(plotX(plot, marked[0]), TOP, plotX(plot, marked[1]) - plotX(plot, marked[0]), h - TOP - BOTTOM);
    g.globalAlpha = 1;
  }
  g.lineWidth = 1;
  if (now.hover !== null) { g.strokeStyle = ink.soft; g.setLineDash([3, 3]); rule(g, plotX(plot, now.hover), TOP, plotX(plot, now.hover), h - BOTTOM); g.setLineDash([]); }
  g.strokeStyle = ink.critical;
  g.lineWidth = 1.4;
  rule(g, plotX(plot, now.t), TOP, plotX(plot, now.t), h - BOTTOM);
  drawDots(g, plot, Y);
  g.restore();
}

function rule(g, x1, y1, x2, y2) {
  g.beginPath();
  g.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  g.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
  g.stroke();
}

function drawLine(g, plot, values, first, last, Y, colour) {
  g.strokeStyle = colour;
  g.beginPath();
  let pen = false;
  for (let i = first; i <= last; i++) {
    if (!Number.isFinite(values[i])) { pen = false; continue; }
    const x = plotX(plot, D.t[i]), y = Y(values[i]);
    if (pen) g.lineTo(x, y); else g.moveTo(x, y);
    pen = true;
  }
  g.stroke();
}

// The value at a time, on the straight line between two rows.
function valueAt(c, t) {
  const values = D.columns[c].values, i = before(D.t, t), j = Math.min(i + 1, D.t.length - 1);
  const part = j > i ? (t - D.t[i]) / (D.t[j] - D.t[i]) : 0;
  return part > 0 ? values[i] + part * (values[j] - values[i]) : values[i];
}

// Dots where the pointer (or the replay) is, and the numbers beside the names.
function drawDots(g, plot, Y) {
  const t = now.hover === null ? now.t : now.hover;
  plot.columns.forEach((c, i) => {
    const x = valueAt(c, t);
    plot.chips[i].lastChild.textContent = number(x);
    if (plot.hidden.has(c) || !Number.isFinite(x)) return;
    g.fillStyle = ink.lines[i % 10];
    g.beginPath();
    g.arc(plotX(plot, t), Y(x), 3, 0, 2 * Math.PI);
    g.fill();
  });
}

function listen(plot) {
  const canvas = plot.canvas;
  const at = (event) => plotT(plot, event.clientX - canvas.getBoundingClientRect().left);
  let pressed = null;
  canvas.onpointerdown = (event) => {
    if (event.button) return;
    pressed = { x: event.clientX, t: at(event) };
    canvas.setPointerCapture(event.pointerId);
    if (event.pointerType !== "mouse") seek(pressed.t);
  };
  canvas.onpointermove = (event) => {
    now.hover = at(event);
    if (pressed && event.pointerType !== "mouse") seek(now.hover); // a finger moves the time
    else if (pressed && Math.abs(event.clientX - pressed.x) > 4) marked = [pressed.t, now.hover].sort((a, b) => a - b);
    redraw();
  };
  canvas.onpointerup = (event) => {
    if (marked) zoomTo(...marked);
    else if (pressed && event.pointerType === "mouse") seek(pressed.t);
    pressed = marked = null;
    if (event.pointerType !== "mouse") now.hover = null;
    redraw();
  };
  canvas.onpointercancel = () => { pressed = marked = now.hover = null; redraw(); };
  canvas.onpointerleave = () => { now.hover = null; redraw(); };
  canvas.ondblclick = () => zoomTo(START, END);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return; // the page scrolls
    event.preventDefault();
    zoomBy(Math.exp((event.deltaY || event.deltaX) * 0.002), at(event));
  }, { passive: false });
  canvas.onkeydown = (event) => {
    const by = { "+": 0.6, "=": 0.6, "-": 1 / 0.6 }[event.key];
    if (by) zoomBy(by, now.t);
    if (event.key === "0") zoomTo(START, END);
  };
}
