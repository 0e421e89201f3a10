// The page's end of the line (line.ts), which is in a thread of its own.

import type { Heard, Said } from "./line";
import { Message, Patch, patch, State, state, Told } from "./messages";
import { token } from "./token";

export interface Ears { told(message: Told): void; seen(s: State): void; dug(p: Patch): void; changed(how: Heard["is"]): void }

export class Link {
  open = false;
  private readonly line = new Worker("/line.js", { type: "module" });
  private count = 0;

  constructor(private readonly ears: Ears) {
    this.line.onmessage = ({ data }: MessageEvent<string | ArrayBuffer | Heard>) => this.heard(data);
    this.tell({ is: "open", url: `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`, token });
  }

  send(message: Message): void { this.tell({ is: "say", message }); }

  // Where the levers are; null: no hand is on them.
  hands(values: number[] | null, n: number): void { this.tell({ is: "hands", values, n }); }

  private tell(said: Said): void { this.line.postMessage(said); }

  private heard(data: string | ArrayBuffer | Heard): void {
    if (typeof data === "string") this.ears.told(JSON.parse(data) as Told);
    else if (data instanceof ArrayBuffer) {
      const s = state(data), p = s ? null : patch(data);
      if (s) this.arrived(s);
      else if (p) this.ears.dug(p);
    } else {
      this.open = data.is === "open";
      this.ears.changed(data.is);
    }
  }

  // Every second answer will do: it speaks for all before it.
  private arrived(s: State): void {
    if (++this.count % 2 === 0) this.send({ type: "seen", serial: s.serial });
    this.ears.seen(s);
  }
}
