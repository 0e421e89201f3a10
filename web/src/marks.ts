// The marked part of the record, from Record to Stop, which is replayed and saved; without marks, the whole record is.

import { by, make } from "./dom";
import { note } from "./notices";

type Fetched = (address: string) => Promise<{ data: ArrayBuffer; name: string }>;

export class Marks {
  recording = false;
  private marked: [number, number] | null = null;
  private formats: string[] = [];

  constructor(private readonly fetched: Fetched) {
    by("unmark").onclick = () => { this.recording = false; this.set(null); };
    this.set(null);
  }

  // s, time of the run.
  get span(): [number, number] { return this.marked ?? [0, Infinity]; }

  // File formats of records.
  offer(formats: string[]): void { this.formats = formats; this.set(this.marked); }

  // True if an end was marked.
  press(t: number): boolean {
    this.recording = !this.recording;
    this.set(this.recording ? [t, Infinity] : [this.span[0], t]);
    return !this.recording;
  }

  // The record was reset to time 0: a mark in progress begins there, earlier marks are dropped.
  restart(): void { this.set(this.recording ? [0, Infinity] : null); }

  // The query string of a time span.
  static query(from: number, to: number): string {
    return [["from", from], ["to", to]].filter(([, t]) => Number.isFinite(t)).map(([key, t]) => `${key}=${t}`).join("&");
  }

  private set(span: [number, number] | null): void {
    this.marked = span;
    by("record").classList.toggle("recording", this.recording);
    by("record").lastChild!.textContent = this.recording ? "Stop" : "Record";
    by("unmark").hidden = span === null;
    const said = span && (Number.isFinite(span[1]) ? `${span[0].toFixed(1)} to ${span[1].toFixed(1)} s` : `from ${span[0].toFixed(1)} s on`);
    by("save-what").textContent = `save ${said ?? "all"}`;
    by("save").replaceChildren(...this.formats.map((suffix) => {
      const a = make("a", "", suffix);
      a.href = `/record.${suffix}${span ? `?${Marks.query(...span)}` : ""}`;
      a.onclick = (e) => { e.preventDefault(); void this.save(a.getAttribute("href")!); };
      return a;
    }));
  }

  private async save(address: string): Promise<void> {
    note("Writing the record …", false);
    try {
      const { data, name } = await this.fetched(address), a = make("a"), url = URL.createObjectURL(new Blob([data]));
      a.href = url;
      a.download = name;
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      note("", false);
    } catch (error) { note(error instanceof Error ? error.message : String(error), true); }
  }
}
