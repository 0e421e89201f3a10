// How fine the picture is: fewer pixels and no shadows where a computer is late, and back when it keeps up again.

const LATE = 45, EARLY = 24; // ms between pictures, above which it gets coarser, and below which finer
const WAIT = 4000, LONGEST = 120_000; // ms of good time before it tries to be finer; twice as long after each try that failed

export class Quality {
  level: number;
  private slow = 0; // ms between pictures, of late
  private good = 0; // ms for which it has kept up
  private wait = WAIT;
  private tried = Infinity; // ms since it became finer

  // Levels are 0 (the finest) to `worst`; `best`: the finest that this computer can have.
  constructor(readonly best: number, private readonly worst: number) { this.level = best; }

  // A picture came so many ms after the one before. True where the level has changed.
  pace(gap: number): boolean {
    const ms = Math.min(gap, 400);
    this.slow = this.slow ? 0.85 * this.slow + 0.15 * ms : ms;
    this.tried += ms;
    this.good = this.slow < EARLY ? this.good + ms : 0;
    if (this.slow > LATE && this.level < this.worst) {
      this.wait = this.tried < 2 * WAIT ? Math.min(LONGEST, 2 * this.wait) : WAIT; // it was too early
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
