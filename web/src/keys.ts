// The list of keys, in a dialog.

import { by, make } from "./dom";

const KEYS: [string, string, boolean][] = [ // last entry: only for machines with sticks
  ["W A S D", "left stick", true],
  ["↑ ← ↓ → or I J K L", "right stick", true],
  ["M", "JOINT or RESOLVED", true],
  ["H", "the steps of digging", true],
  ["V", "another view", false],
  ["space", "pause or go on", false],
  [".", "one step, and still again", false],
  ["T", "light or dark", false],
  ["?", "this list", false],
];

export function keys(sticks: boolean): void {
  const dialog = by<HTMLDialogElement>("keys-dialog");
  if (dialog.open) { dialog.close(); return; }
  by("keys-body").replaceChildren(...KEYS.filter(([, , needs]) => sticks || !needs).map(([key, what]) => {
    const row = make("div", "key");
    row.append(make("kbd", "", key), make("span", "", what));
    return row;
  }));
  dialog.showModal();
}
by("keys-close").onclick = () => by<HTMLDialogElement>("keys-dialog").close();
