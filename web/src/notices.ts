// Words to who looks: how the line is, and what happened.

import { by } from "./dom";

export function chip(text: string, cls: string): void {
  by("link").textContent = text;
  by("link").className = `chip ${cls}`;
}

let timer = 0;
// What is bad goes away by itself, anything else when it is told to.
export function note(text: string, bad: boolean): void {
  const box = by("notice");
  box.textContent = text;
  box.hidden = !text;
  box.classList.toggle("bad", bad);
  clearTimeout(timer);
  if (bad) timer = window.setTimeout(() => (box.hidden = true), 6000);
}

// Another rate, integrator or method takes seconds to come.
export function compiling(what: string): void {
  by("compiling").hidden = !what;
  by("compiling-what").textContent = `Compiling ${what}. The machine runs on meanwhile.`;
}
