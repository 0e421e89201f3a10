// Notices: the state of the connection, and events.

import { by } from "./dom";

export function chip(text: string, cls: string): void {
  by("link").textContent = text;
  by("link").className = `chip ${cls}`;
}

let timer = 0;
// Warnings disappear after some time, other notices on request.
export function note(text: string, bad: boolean): void {
  const box = by("notice");
  box.textContent = text;
  box.hidden = !text;
  box.classList.toggle("bad", bad);
  clearTimeout(timer);
  if (bad) timer = window.setTimeout(() => (box.hidden = true), 6000);
}

// A change of rate, integrator or method takes seconds to compile.
export function compiling(what: string): void {
  by("compiling").hidden = !what;
  by("compiling-what").textContent = `Compiling ${what}. The machine runs on meanwhile.`;
}
