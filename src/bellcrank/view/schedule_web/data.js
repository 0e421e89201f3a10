"use strict";
// The schedule as the page reads it: rows of tasks in the order of time, who needs whom, and text for people.

const S = JSON.parse(document.getElementById("schedule").textContent);

// Every task knows its number; a row is a processor's tasks by their start.
const rows = Array.from({ length: S.processors }, () => []);
S.tasks.forEach((task, i) => {
  task.index = i;
  task.users = [];
  task.hot = false;
  rows[task.processor].push(task);
});
for (const row of rows) row.sort((a, b) => a.start - b.start || a.finish - b.finish || a.index - b.index);
for (const task of S.tasks) for (const j of task.needs) S.tasks[j].users.push(task.index);
for (const i of S.critical) S.tasks[i].hot = true;
const busy = rows.map((row) => row.reduce((sum, task) => sum + task.finish - task.start, 0));
S.messages.forEach((m) => {
  m.start = m.hops[0][1];
  m.arrival = m.hops[m.hops.length - 1][2];
});
const hotHops = []; // of the critical path, those of one message together
for (const [message, hop] of S.critical_hops) {
  const run = hotHops[hotHops.length - 1];
  if (run && run.message === message && run.last === hop - 1) run.last = hop;
  else hotHops.push({ message, first: hop, last: hop });
}
const sent = new Map(); // task -> its messages
for (const m of S.messages) sent.set(m.task, [...(sent.get(m.task) || []), m]);

// Steps in the order of their first appearance; the table of colours starts again after twelve.
const COLOURS = 12;
const steps = new Map();
for (const task of S.tasks) {
  if (!steps.has(task.step)) steps.set(task.step, { colour: steps.size % COLOURS, tasks: 0 });
  steps.get(task.step).tasks += 1;
}

// The first task of a row that ends after t.
function firstAfter(row, t) {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].finish > t) high = middle; else low = middle + 1;
  }
  return low;
}

// How many processors are busy: [time, number] at every change.
const profile = (() => {
  const changes = [];
  for (const task of S.tasks) if (task.finish > task.start) changes.push([task.start, 1], [task.finish, -1]);
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const out = [];
  let now = 0;
  for (const [t, by] of changes) {
    now += by;
    if (out.length && out[out.length - 1][0] === t) out[out.length - 1][1] = now; else out.push([t, now]);
  }
  return out;
})();
const mostBusy = profile.reduce((most, [, n]) => Math.max(most, n), 1);

// The same as means over so many equal parts of the time.
function load(parts) {
  const out = new Float64Array(parts), part = S.makespan / parts || 1;
  for (let k = 0; k + 1 < profile.length; k++) {
    const [from, n] = profile[k], to = profile[k + 1][0];
    for (let i = Math.floor(from / part); i < parts && i * part < to; i++) {
      out[i] += (n * (Math.min(to, (i + 1) * part) - Math.max(from, i * part))) / part;
    }
  }
  return out;
}

function number(x) {
  const size = Math.abs(x);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return x.toExponential(3);
  return String(Number(x.toPrecision(6)));
}

function plural(n, word) { return `${n} ${word}${n === 1 ? "" : "s"}`; }

// Round numbers between two, about so many.
function ticks(from, to, wanted) {
  const rough = (to - from) / Math.max(wanted, 1);
  if (!(rough > 0)) return [];
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((k) => unit * k >= rough * (1 - 1e-9));
  const out = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++) out.push(Number((k * step).toPrecision(12)));
  return out;
}
