// What people do, and what is around the pictures. Every change ends in redraw().

let waiting = false, last = 0;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame((clock) => {
    waiting = false;
    if (now.playing) advance(clock);
    drawStage();
    plots.forEach(drawPlot);
    $("time").value = now.t;
    $("clock").textContent = `${now.t.toFixed(decimals)} s`;
    if (now.playing) redraw();
  });
}
const decimals = Math.max(1, Math.min(6, 3 - Math.floor(Math.log10(END - START || 1))));

function advance(clock) {
  const passed = last ? Math.min(0.1, (clock - last) / 1000) : 0;
  last = clock;
  now.t += passed * now.speed;
  if (now.t >= END) { now.t = END; play(false); }
}

function play(on) {
  if (on && now.t >= END) now.t = START;
  now.playing = on;
  last = 0;
  $("play").classList.toggle("on", on);
  $("play").setAttribute("aria-label", on ? "Pause" : "Play");
  redraw();
}

function seek(t) {
  now.t = Math.min(END, Math.max(START, t));
  redraw();
}

// -- the replay

const pointers = new Map();

function turn(dx, dy) {
  eye.yaw -= dx * 0.008;
  eye.pitch = Math.min(1.55, Math.max(-1.55, eye.pitch + dy * 0.008));
}

function shift(dx, dy) {
  const { right, above } = eyeAt(), k = eye.distance / (eye.focal * Math.min(stage.clientWidth, stage.clientHeight) / 2);
  const by = add(add([0, 0, 0], right, -dx * k), above, dy * k);
  eye.target = add(eye.target, by);
  offset = add(offset, by);
}

function dolly(by) { eye.distance = Math.min(100 * D.replay.radius, Math.max(0.05 * D.replay.radius, eye.distance * by)); }

function pinch(event) {
  const [a, b] = [...pointers.values()], apart = Math.hypot(a.x - b.x, a.y - b.y), middle = [(a.x + b.x) / 2, (a.y + b.y) / 2];
  Object.assign(pointers.get(event.pointerId), { x: event.clientX, y: event.clientY });
  const [c, d] = [...pointers.values()];
  dolly(apart / (Math.hypot(c.x - d.x, c.y - d.y) || 1));
  shift((c.x + d.x) / 2 - middle[0], (c.y + d.y) / 2 - middle[1]);
}

function listenStage() {
  stage.onpointerdown = (event) => {
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    stage.setPointerCapture(event.pointerId);
  };
  stage.onpointermove = (event) => {
    const old = pointers.get(event.pointerId);
    if (!old) return;
    const dx = event.clientX - old.x, dy = event.clientY - old.y;
    if (pointers.size > 1) pinch(event);
    else if (event.shiftKey || event.buttons > 1) shift(dx, dy);
    else turn(dx, dy);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    redraw();
  };
  stage.onpointerup = stage.onpointercancel = (event) => pointers.delete(event.pointerId);
  stage.oncontextmenu = (event) => event.preventDefault();
  stage.ondblclick = () => { home(); redraw(); };
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    dolly(Math.exp(event.deltaY * 0.0012));
    redraw();
  }, { passive: false });
  $("home").onclick = () => { home(); redraw(); };
  $("follow").onclick = () => {
    following = !following;
    offset = add(eye.target, poseAt(0, now.t).p, -1);
    $("follow").setAttribute("aria-pressed", String(following));
    redraw();
  };
  listenBending();
  $("trace").append(made("option", "none", { value: -1 }));
  D.replay.frames.forEach((frame, i) => $("trace").append(made("option", frame.name, { value: i })));
  $("trace").value = traceFrame;
  $("trace").onchange = () => { traceFrame = Number($("trace").value); redraw(); };
  home();
}

// -- time

$("play").onclick = () => play(!now.playing);
$("speed").onchange = () => { now.speed = Number($("speed").value); };
Object.assign($("time"), { min: START, max: END, oninput: () => seek(Number($("time").value)) });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|BUTTON)$/.test(event.target.tagName)) return;
  const step = ((END - START) / 100) * (event.shiftKey ? 5 : 1);
  const keys = {
    " ": () => play(!now.playing), ArrowLeft: () => seek(now.t - step), ArrowRight: () => seek(now.t + step),
    Home: () => seek(START), End: () => seek(END),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// -- around

function notice(title, text, bad, items = []) {
  const node = made("div", "", { className: bad ? "notice bad" : "notice" });
  node.append(made("b", title), made("span", text ? ` ${text}` : ""));
  if (items.length) {
    const list = made("ul", "");
    for (const item of items.slice(0, 20)) list.append(made("li", item));
    if (items.length > 20) list.append(made("li", `and ${items.length - 20} more`));
    node.append(list);
  }
  $("notices").append(node);
}

function fill() {
  $("title").textContent = D.name;
  $("about").textContent = D.about;
  for (const [value, unitName, label] of D.facts) {
    const pair = made("div", ""), dd = made("dd", value);
    if (unitName) dd.append(made("small", unitName));
    pair.append(made("dt", label), dd);
    $("facts").append(pair);
  }
  for (const [reason, time, message] of D.stops) {
    if (reason !== "end") notice(`Stopped at ${time}: ${reason}.`, message, true);
  }
  if (D.warnings.length) notice("Warnings of the mechanism", "", false, D.warnings);
  for (const [key, value] of D.provenance) row($("provenance"), [key, value], 1);
  for (const cells of D.joints) row($("joints"), cells, 1);
  $("parts").hidden = !D.joints.length;
  $("replay").hidden = !D.replay;
  document.querySelector("main").classList.toggle("flat", !D.replay);
}

function row(table, cells, heads) {
  const tr = made("tr", "");
  cells.forEach((cell, i) => tr.append(made(i < heads ? "th" : "td", cell)));
  table.append(tr);
}

function recolour() { readColours(); restage(); redraw(); dispatchEvent(new Event("theme")); }

$("theme").onclick = () => {
  document.documentElement.dataset.theme = ink.dark ? "light" : "dark";
  recolour();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
new ResizeObserver(redraw).observe(document.querySelector("main"));

fill();
buildPlots();
if (D.replay) listenStage();
openWorld();
recolour();
