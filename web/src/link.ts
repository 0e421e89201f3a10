// The page's side of the connection (line.ts), which runs in a worker.

import type { File, Heard, Said } from "./line";
import { Message, Patch, patch, State, state, Told } from "./messages";
import { token } from "./token";

export interface Ears { told(message: Told): void; seen(s: State): void; dug(p: Patch): void; changed(how: Heard["is"]): void }

export class Link {
  open = false;
  private readonly line = new Worker("/line.js", { type: "module" });
  private count = 0;
  private readonly asked = new Map<number, (file: File) => void>();

  constructor(private readonly ears: Ears) {
    this.line.onmessage = ({ data }: MessageEvent<string | ArrayBuffer | Heard | File>) => this.heard(data);
    this.tell({ is: "open", url: `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live`, token, query: location.search });
  }

  send(message: Message): void { this.tell({ is: "say", message }); }

  // Positions of the levers; null: nobody holds them.
  hands(values: number[] | null, n: number): void { this.tell({ is: "hands", values, n }); }

  // Fetch a file of the server: a replay or a record.
  fetched(address: string): Promise<{ data: ArrayBuffer; name: string }> {
    const id = ++this.files;
    this.tell({ is: "fetch", address, id });
    return new Promise((resolve, reject) => this.asked.set(id, ({ data, name, why }) => (data ? resolve({ data, name }) : reject(new Error(why)))));
  }
  private files = 0;

  private tell(said: Said): void { this.line.postMessage(said); }

  private heard(data: string | ArrayBuffer | Heard | File): void {
    if (typeof data === "string") this.ears.told(JSON.parse(data) as Told);
    else if (data instanceof ArrayBuffer) {
      const s = state(data), p = s ? null : patch(data);
      if (s) this.arrived(s);
      else if (p) this.ears.dug(p);
    } else if (data.is === "file") {
      this.asked.get(data.id)?.(data);
      this.asked.delete(data.id);
    } else {
      this.open = data.is === "open";
      this.ears.changed(data.is);
    }
  }

  // Acknowledging every second state suffices: it includes all before it.
  private arrived(s: State): void {
    if (++this.count % 2 === 0) this.send({ type: "seen", serial: s.serial });
    this.ears.seen(s);
  }
}
