// The connection to the server, in a worker: lever messages are sent however long drawing takes. It
// reconnects after a failure, at first quickly and then every two seconds.
//
// A page that hangs must not hold the levers, though: its last input is repeated for STALL only.

import { Message } from "./messages";

export type Said = { is: "open"; url: string; token: string; query: string } | { is: "say"; message: Message } | { is: "hands"; values: number[] | null; n: number }
  | { is: "fetch"; address: string; id: number };
export type Heard = { is: "open" | "shut" | "stranger" };
export interface File { is: "file"; id: number; data: ArrayBuffer | null; name: string; why: string } // data: null if the request failed

const BEAT = 33; // ms between two lever messages; the server's dead-man switch waits 200
const STALL = 600; // ms without input from the page, after which the levers are released
const SILENT = 4000; // ms without a message from the server, which sends at least two per second
const STRANGER = 4401; // close code: wrong token

const page = self as unknown as { postMessage(message: Heard | File | string | ArrayBuffer, transfer?: Transferable[]): void; onmessage: ((e: MessageEvent<Said>) => void) | null };
let socket: WebSocket | null = null, url = "", token = "", tries = 0, heard = 0;
let hands: { values: number[]; n: number } | null = null, told = 0, sent = 0;

function send(message: Message): void {
  // Queued messages are outdated: skipping is better than arriving late.
  if (socket?.readyState === WebSocket.OPEN && (message.type !== "input" || socket.bufferedAmount < 4096)) socket.send(JSON.stringify(message));
}

function beat(now: number): void {
  if (!hands || now - sent < BEAT - 5) return;
  if (now - told > STALL) { hands = null; send({ type: "blur" }); return; }
  sent = now;
  send({ type: "input", ...hands });
}

setInterval(() => {
  const now = performance.now();
  beat(now);
  // The server has vanished without closing, as when a computer sleeps.
  if (socket?.readyState === WebSocket.OPEN && now - heard > SILENT) socket.close();
}, BEAT);

function connect(): void {
  const mine = new WebSocket(url, ["bellcrank", `token.${token}`]);
  mine.binaryType = "arraybuffer";
  socket = mine;
  mine.onopen = () => { tries = 0; heard = performance.now(); page.postMessage({ is: "open" }); };
  mine.onmessage = (event) => {
    heard = performance.now();
    const data = event.data as string | ArrayBuffer;
    page.postMessage(data, typeof data === "string" ? [] : [data]);
  };
  mine.onclose = (event) => {
    hands = null;
    if (event.code === STRANGER) { page.postMessage({ is: "stranger" }); return; }
    page.postMessage({ is: "shut" });
    setTimeout(connect, Math.min(2000, 200 * 2 ** tries++));
  };
}

// Fetched here, because a link cannot send the token.
async function fetched(address: string, id: number): Promise<void> {
  const file: File = { is: "file", id, data: null, name: "record", why: "" };
  try {
    const answer = await fetch(address, { headers: { Authorization: `Bearer ${token}` } });
    if (answer.ok) file.data = await answer.arrayBuffer();
    else file.why = await answer.text();
    file.name = /filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? file.name;
  } catch (error) { file.why = error instanceof Error ? error.message : String(error); }
  page.postMessage(file, file.data ? [file.data] : []);
}

page.onmessage = ({ data }) => {
  if (data.is === "open") { ({ url, token } = data); connect(); }
  else if (data.is === "say") send(data.message);
  else if (data.is === "fetch") void fetched(data.address, data.id);
  else {
    told = performance.now();
    hands = data.values && { values: data.values, n: data.n };
    beat(told);
  }
};
