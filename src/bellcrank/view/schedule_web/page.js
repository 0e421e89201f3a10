// What people do: point, click, drag, type. Every change ends in redraw().

const $ = (id) => document.getElementById(id);
const tip = $("tip"), details = $("details"), find = $("find");
let waiting = false, dragged = null, pointers = new Map();

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function made(tag, text, more = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  return Object.assign(node, more);
}

// -- what is seen

function show(from, to) {
  const least = END * 1e-6, length = Math.max(least, Math.min(to - from, END));
  view.from = Math.max(0, Math.min(from, END - length));
  view.to = view.from + length;
  redraw();
}

function zoom(by, around = (view.from + view.to) / 2) {
  const length = Math.max(END * 1e-6, Math.min(END, (view.to - view.from) * by));
  const part = (around - view.from) / (view.to - view.from);
  show(around - part * length, around + (1 - part) * length);
}

function scroll(by) {
  scrollRows(view.top + by);
  redraw();
}

function fit() {
  view.top = 0;
  show(0, END);
}

function reveal(task) {
  const length = view.to - view.from;
  if (task.start < view.from || task.finish > view.to) {
    const room = Math.max(0, length - (task.finish - task.start));
    show(task.start - room / 2, task.start - room / 2 + length);
  }
  if (line[task.processor] === undefined) toggle("idle");
  const y = Y(task.processor);
  if (y < RULER + rowHeight / 2) scroll(y - RULER - rowHeight / 2);
  if (y > height - rowHeight / 2) scroll(y - height + rowHeight / 2);
}

function zoomTo(task) {
  const length = Math.max((task.finish - task.start) * 8, END * 1e-4), middle = (task.start + task.finish) / 2;
  show(middle - length / 2, middle + length / 2);
}

// -- one task

function select(index, focus = true) {
  view.selected = index;
  tip.hidden = true;
  details.replaceChildren();
  if (index === null) {
    hint();
  } else {
    const task = S.tasks[index];
    if (focus) reveal(task);
    details.append(made("b", task.name));
    for (const [name, text] of about(task)) details.append(made("span", `${name} ${text}`));
    if (task.hot) details.append(made("span", "on the critical path", { className: "hot" }));
    links("needs", task.needs);
    links("used by", task.users);
  }
  redraw();
}

function links(title, found) {
  if (!found.length) return;
  const group = made("span", title, { className: "links" });
  for (const j of found.slice(0, 12)) {
    group.append(made("button", S.tasks[j].name, { onclick: () => { select(j); chart.focus(); } }));
  }
  if (found.length > 12) group.append(made("span", `and ${found.length - 12} more`));
  details.append(group);
}

function about(task) {
  const out = [
    ["processor", String(task.processor)],
    ["time", `${number(task.start)} to ${number(task.finish)} ${S.unit}`],
    ["takes", `${number(task.finish - task.start)} ${S.unit}`],
    ["operations", String(task.operations)],
  ];
  const messages = sent.get(task.index) || [];
  if (task.words) out.push(["gives", plural(task.words, "word")]);
  if (messages.length) out.push(["sent to", messages.map((m) => m.to).join(", ")]);
  return out;
}

function hint() {
  const text = "Point at a task to see what it is, click it to see what it waits for and who waits for it.";
  details.append(made("span", text));
}

function point(task, x, y) {
  const index = task ? task.index : null;
  if (index !== view.hovered) {
    view.hovered = index;
    tip.replaceChildren();
    if (task) {
      const list = made("dl", "");
      for (const [name, text] of about(task)) list.append(made("dt", name), made("dd", text));
      tip.append(made("b", task.name), list);
      if (task.hot) tip.append(made("div", "on the critical path", { className: "hot" }));
    }
    redraw();
  }
  tip.hidden = !task;
  if (!task) return;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = `${x + 18 + w < width ? x + 18 : Math.max(8, x - w - 14)}px`;
  tip.style.top = `${y + 18 + h < height ? y + 18 : Math.max(4, y - h - 12)}px`;
}

// -- pointer

function place(event) {
  const box = chart.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

chart.addEventListener("wheel", (event) => {
  event.preventDefault();
  const [x] = place(event), unit = event.deltaMode === 1 ? 16 : 1;
  const time = (view.to - view.from) / (width - gutter);
  if (event.shiftKey) {
    const by = (event.deltaX || event.deltaY) * unit * time;
    show(view.from + by, view.to + by);
  } else if (x < gutter || event.altKey) {
    scroll(event.deltaY * unit);
  } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    show(view.from + event.deltaX * unit * time, view.to + event.deltaX * unit * time);
  } else {
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * 0.0025))), T(Math.max(x, gutter)));
  }
}, { passive: false });

chart.addEventListener("pointerdown", (event) => {
  chart.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, place(event));
  const [x, y] = place(event);
  dragged = { x, y, from: view.from, to: view.to, top: view.top, moved: false };
});

chart.addEventListener("pointermove", (event) => {
  const [x, y] = place(event);
  if (!pointers.has(event.pointerId)) {
    point(taskAt(x, y), x, y);
    return;
  }
  const before = [...pointers.values()];
  pointers.set(event.pointerId, [x, y]);
  if (pointers.size === 2) { // two fingers: zoom around the middle between them
    const now = [...pointers.values()], apart = (ends) => Math.max(Math.abs(ends[0][0] - ends[1][0]), 12);
    zoom(apart(before) / apart(now), T((now[0][0] + now[1][0]) / 2));
    dragged.moved = true;
  } else if (dragged && (dragged.moved || Math.hypot(x - dragged.x, y - dragged.y) > 3)) {
    dragged.moved = true;
    chart.classList.add("dragging");
    point(null);
    const by = ((dragged.x - x) / (width - gutter - 16)) * (dragged.to - dragged.from);
    show(dragged.from + by, dragged.to + by);
    scrollRows(dragged.top + dragged.y - y);
  }
});

function released(event) {
  const [x, y] = place(event);
  if (event.type === "pointerup" && dragged && !dragged.moved) {
    const task = taskAt(x, y);
    select(task ? task.index : null, false);
  }
  pointers.delete(event.pointerId);
  if (!pointers.size) dragged = null;
  chart.classList.remove("dragging");
}
chart.addEventListener("pointerup", released);
chart.addEventListener("pointercancel", released);
chart.addEventListener("pointerleave", () => point(null));
chart.addEventListener("dblclick", (event) => {
  const task = taskAt(...place(event));
  if (task) zoomTo(task); else fit();
});

let anchor = null; // where a drag in the strip began
overview.addEventListener("pointerdown", (event) => {
  overview.setPointerCapture(event.pointerId);
  const t = overviewT(event.offsetX), whole = view.from <= 0 && view.to >= END;
  anchor = { t, inside: !whole && t >= view.from && t <= view.to, from: view.from, to: view.to };
  if (!anchor.inside && !whole) {
    const half = (view.to - view.from) / 2;
    show(t - half, t + half);
    anchor = { t, inside: true, from: view.from, to: view.to };
  }
});
overview.addEventListener("pointermove", (event) => {
  if (!anchor) return;
  const t = overviewT(event.offsetX), by = t - anchor.t;
  if (anchor.inside) show(anchor.from + by, anchor.to + by);
  else if (Math.abs(by) > END * 0.005) show(Math.min(t, anchor.t), Math.max(t, anchor.t));
});
for (const type of ["pointerup", "pointercancel"]) overview.addEventListener(type, () => { anchor = null; });
overview.addEventListener("dblclick", fit);

// -- keys

function beside(by) {
  const task = S.tasks[view.selected], row = rows[task.processor];
  return row[row.indexOf(task) + by];
}

function across(by) {
  const task = S.tasks[view.selected], middle = (task.start + task.finish) / 2;
  for (let k = line[task.processor] + by; k >= 0 && k < shown.length; k += by) {
    const row = rows[shown[k]];
    if (row.length) return row[Math.min(firstAfter(row, middle), row.length - 1)];
  }
  return undefined;
}

function along(by) {
  const k = S.critical.indexOf(view.selected);
  return S.tasks[S.critical[k < 0 ? 0 : k + by]];
}

const moves = {
  ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowUp: () => across(-1), ArrowDown: () => across(1),
  n: () => along(1), p: () => along(-1),
};
const keys = {
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": fit, f: fit,
  a: () => show(...[view.from, view.to].map((t) => t - 0.2 * (view.to - view.from))),
  d: () => show(...[view.from, view.to].map((t) => t + 0.2 * (view.to - view.from))),
  c: () => toggle("critical"), m: () => toggle("messages"), i: () => toggle("idle"), t: theme,
  "/": () => find.focus(), "?": help,
  Enter: () => { if (view.selected !== null) zoomTo(S.tasks[view.selected]); },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (!$("keys").hidden) help();
    find.value = "";
    filter(null);
    select(null);
    chart.focus();
    return;
  }
  const typing = event.target === find, onButton = event.target.tagName === "BUTTON";
  if (typing || (onButton && ["Enter", " "].includes(event.key))) return;
  if (moves[event.key]) {
    const first = S.tasks[S.critical[0] ?? 0];
    const next = view.selected === null ? first : moves[event.key]();
    if (next) select(next.index);
  } else if (keys[event.key]) keys[event.key]();
  else return;
  event.preventDefault();
});

// -- buttons

function toggle(name) {
  view[name] = !view[name];
  $(name).setAttribute("aria-pressed", view[name]);
  layout();
  redraw();
}

function filter(step) {
  view.step = view.step === step ? null : step;
  $("legend").classList.toggle("filtered", view.step !== null);
  for (const button of $("legend").children) button.setAttribute("aria-pressed", button.title === view.step);
  redraw();
}

function theme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  refresh();
}

function help() {
  $("keys").hidden = !$("keys").hidden;
  $("help").setAttribute("aria-expanded", !$("keys").hidden);
}

for (const name of ["critical", "messages", "idle"]) $(name).onclick = () => toggle(name);
$("in").onclick = () => zoom(0.6);
$("out").onclick = () => zoom(1 / 0.6);
$("fit").onclick = fit;
$("theme").onclick = theme;
$("help").onclick = help;
find.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !find.value) return;
  const wanted = find.value.toLowerCase(), n = S.tasks.length, after = (view.selected ?? -1) + 1;
  for (let k = 0; k < n; k++) { // the next one after the one at hand
    const task = S.tasks[(after + k) % n];
    if (task.name.toLowerCase().includes(wanted)) { select(task.index); return; }
  }
  details.replaceChildren(made("span", `No task is called "${find.value}".`));
});

// -- the head of the page

function head() {
  $("title").textContent = `${S.graph} on ${S.machine}`;
  const cost = S.message, free = !cost.start && !cost.word;
  const way = free ? "messages cost nothing"
    : `a message costs ${number(cost.start)} + ${number(Number(cost.word.toPrecision(3)))} per word ${S.unit}${cost.overlapped ? "" : " and keeps both ends busy"}`;
  const tasks = `${plural(S.tasks.length, "task")}${S.level === "node" ? ", each one operation" : ""}`;
  $("about").textContent = `${tasks}; ${plural(S.processors, "processor")}${S.processors > 1 ? `, ${S.used} of them used; ${way}` : ""}`;
  const facts = [
    ["time", number(Number(S.makespan.toPrecision(5))), S.unit], ["speed-up", S.speedup.toFixed(2), "×"],
    ["efficiency", Math.round(100 * S.efficiency), "%"],
    ["work / processors", number(Number((S.work / S.processors).toPrecision(4))), S.unit], ["span", number(S.span), S.unit],
    ["messages", S.messages.length, plural(S.words, "word")],
  ];
  for (const [name, value, unit] of facts) {
    const pair = document.createElement("div"), dd = made("dd", value);
    dd.append(made("small", unit));
    pair.append(made("dt", name), dd);
    $("facts").append(pair);
  }
  for (const [step, { colour, tasks: count }] of steps) {
    const button = made("button", "", { className: "step", title: step, onclick: () => filter(step) });
    button.setAttribute("aria-pressed", false);
    button.append(Object.assign(made("i", ""), { style: `background: var(--step${colour})` }), step || "other");
    button.append(made("small", count));
    $("legend").append(button);
  }
  chart.setAttribute("aria-label", `${S.graph} on ${S.machine}: ${tasks}. Arrow keys go from task to task.`);
  $("idle").hidden = rows.every((row) => row.length);
  if (S.processors > 32 && !$("idle").hidden) toggle("idle");
  hint();
}

// The machine from above: a cell for each processor, darker where it is busier.
function map() {
  const places = S.places, tall = Math.max(...places.map((p) => p[1])) + 1, wide = Math.max(...places.map((p) => p[0])) + 1;
  if (tall < 2 || tall > 40 || wide > 40) return;
  const cell = Math.max(2, Math.min(14, 62 / tall, 120 / wide)), scale = window.devicePixelRatio || 1, canvas = $("map");
  canvas.hidden = false;
  canvas.width = wide * cell * scale;
  canvas.height = tall * cell * scale;
  Object.assign(canvas.style, { width: `${wide * cell}px`, height: `${tall * cell}px` });
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  places.forEach(([x, y], p) => {
    const share = S.makespan ? busy[p] / S.makespan : 0;
    g.globalAlpha = 1;
    g.fillStyle = share ? ink.accent : ink.rule;
    if (share) g.globalAlpha = 0.25 + 0.75 * share;
    rounded(g, x * cell + 0.75, y * cell + 0.75, cell - 1.5, cell - 1.5, 2.5);
    g.fill();
  });
}

function refresh() {
  widths.clear();
  layout();
  map();
  redraw();
}

head();
refresh();
new ResizeObserver(refresh).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
