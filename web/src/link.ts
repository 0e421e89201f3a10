// The line to the server. It mends itself: after a break it tries again, soon at first and then every two seconds.

import { Message, State, state, Told } from "./messages";

export class Link {
  open = false;
  private socket: WebSocket | null = null;
  private tries = 0;
  private heard = 0;
  private count = 0;
  private looked = performance.now();

  constructor(
    private readonly told: (message: Told) => void,
    private readonly seen: (s: State) => void,
    private readonly changed: (open: boolean) => void,
  ) {
    this.connect();
    setInterval(() => this.watch(), 1000);
  }

  send(message: Message): void {
    // What has piled up in the browser is old: better to skip than to arrive late.
    if (this.socket?.readyState === WebSocket.OPEN && (message.type !== "input" || this.socket.bufferedAmount < 4096)) {
      this.socket.send(JSON.stringify(message));
    }
  }

  // A server that vanished without a word, as when a computer sleeps. A page that was busy itself has not listened.
  private watch(): void {
    const now = performance.now(), busy = now - this.looked > 1500;
    this.looked = now;
    if (busy) this.heard = now;
    if (this.open && now - this.heard > 4000) this.socket?.close();
  }

  // Every second answer will do: it speaks for all before it.
  private arrived(s: State): void {
    if (++this.count % 2 === 0) this.send({ type: "seen", serial: s.serial });
    this.seen(s);
  }

  private connect(): void {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/live${location.search}`);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => { this.tries = 0; this.heard = performance.now(); this.set(true); };
    socket.onmessage = (event) => {
      this.heard = performance.now();
      if (typeof event.data === "string") this.told(JSON.parse(event.data) as Told);
      else { const s = state(event.data as ArrayBuffer); if (s) this.arrived(s); }
    };
    socket.onclose = () => {
      this.set(false);
      setTimeout(() => this.connect(), Math.min(2000, 200 * 2 ** this.tries++));
    };
  }

  private set(open: boolean): void {
    if (open !== this.open) { this.open = open; this.changed(open); }
  }
}
