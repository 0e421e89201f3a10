// Engine sound, off by default. The pitch depends on the speed, the loudness on the load.

const LOUDEST = 0.05; // maximum gain

export class Sound {
  on = false;
  private context: AudioContext | null = null;
  private readonly voices: OscillatorNode[] = [];
  private volume: GainNode | null = null;
  private filter: BiquadFilterNode | null = null;

  turn(on: boolean): void {
    this.on = on;
    if (on && !this.context) this.begin();
    void (on ? this.context?.resume() : this.context?.suspend());
  }

  // speed: rpm; load: 0 to 1.
  hear(speed: number, load: number): void {
    if (!this.on || !this.context || !this.volume || !this.filter) return;
    const now = this.context.currentTime, fires = (speed / 60) * 2; // four cylinders, four strokes
    this.voices.forEach((v, i) => v.frequency.setTargetAtTime(fires * (i + 1) * 0.5, now, 0.08));
    this.volume.gain.setTargetAtTime(LOUDEST * (0.3 + 0.7 * Math.min(1, Math.max(0, load))), now, 0.1);
    this.filter.frequency.setTargetAtTime(220 + 900 * Math.min(1, Math.max(0, load)), now, 0.1);
  }

  private begin(): void {
    const c = (this.context = new AudioContext());
    this.filter = new BiquadFilterNode(c, { type: "lowpass", frequency: 220 });
    this.volume = new GainNode(c, { gain: 0 });
    for (const shape of ["sawtooth", "square", "triangle"] as const) {
      const v = new OscillatorNode(c, { type: shape, frequency: 30 });
      v.connect(this.filter);
      v.start();
      this.voices.push(v);
    }
    this.filter.connect(this.volume).connect(c.destination);
  }
}
