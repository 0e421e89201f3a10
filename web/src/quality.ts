// Picture quality: fewer pixels and no shadows if the computer is too slow, and back when it is fast enough.

const LATE = 45, EARLY = 24; // ms between pictures, above which the quality decreases, and below which it increases
const WAIT = 4000, LONGEST = 120_000; // ms of sufficient speed before a higher quality is tried; doubled after each failed attempt

export class Quality {
  level: number;
  private slow = 0; // ms between recent pictures
  private good = 0; // ms of sufficient speed
  private wait = WAIT;
  private tried = Infinity; // ms since the last increase

  // Levels are 0 (best) to `worst`; `best`: best level that this computer supports.
  constructor(readonly best: number, private readonly worst: number) { this.level = best; }

  // Add the time in ms since the previous picture. True if the level has changed.
  pace(gap: number): boolean {
    const ms = Math.min(gap, 400);
    this.slow = this.slow ? 0.85 * this.slow + 0.15 * ms : ms;
    this.tried += ms;
    this.good = this.slow < EARLY ? this.good + ms : 0;
    if (this.slow > LATE && this.level < this.worst) {
      this.wait = this.tried < 2 * WAIT ? Math.min(LONGEST, 2 * this.wait) : WAIT; // the attempt failed
      return this.set(this.level + 1);
    }
    if (this.good > this.wait && this.level > this.best) { this.tried = 0; return this.set(this.level - 1); }
    return false;
  }

  private set(level: number): boolean {
    this.level = level;
    this.slow = this.good = 0;
    return true;
  }
}
