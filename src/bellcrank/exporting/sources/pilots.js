// Automatic pilots, described by numbers from excavators/stick_machine.py. They move the levers of RESOLVED mode: from place to
// place ("tour"), or along the path of a paper's experiment again and again ("experiment").

const GAIN = 1.2, ARRIVED = 0.06, PATIENCE = 14; // 1/s; m and rad; s, after which a place that is not reached is skipped

class Hands {
  constructor(about) { Object.assign(this, about); }

  // Position of the teeth: radius, swing, height, and the bucket's angle.
  place(y) {
    const theta = this.joints.map((k, i) => y[k] + this.start[i]), { a, c, l1, l2, tip } = this.arm;
    const phi1 = theta[1], phi2 = theta[1] + theta[2], bucket = phi2 + theta[3], cos = Math.cos(bucket), sin = Math.sin(bucket);
    return [
      a + l1 * Math.cos(phi1) + l2 * Math.cos(phi2) + tip[0] * cos - tip[1] * sin, theta[0],
      c + l1 * Math.sin(phi1) + l2 * Math.sin(phi2) + tip[0] * sin + tip[1] * cos, bucket,
    ];
  }

  // Lever positions for the rates of the four; all are reduced by the same factor, so that the path is straight.
  moved(at, rates) {
    const wanted = [...rates];
    wanted[1] = Math.min(Math.max(rates[1], -this.turn), this.turn) * Math.max(at[0], 1);
    const share = Math.min(1, ...wanted.map((x, k) => (x ? this.speeds[k] / Math.abs(x) : 1)));
    return wanted.map((x) => share * x);
  }
}

const arrived = (error) => Math.max(...error.map(Math.abs)) < ARRIVED;

// Visit the places repeatedly; each round is turned a little further, to undisturbed ground.
class Tour {
  constructor(about) { Object.assign(this, about, { hands: new Hands(about.hands), at: 0, turned: null, since: -Infinity }); }

  levers(t, y) {
    const now = this.hands.place(y);
    this.turned ??= now[1];
    if (!(t >= this.since && t - this.since < Infinity)) this.since = t;
    const goal = [...this.places[this.at]];
    goal[1] += this.turned;
    const error = goal.map((x, k) => x - now[k]);
    if (arrived(error) || t - this.since > PATIENCE) {
      this.at = (this.at + 1) % this.places.length;
      this.since = t;
      if (this.at === this.places.length - 1) this.turned += this.further; // the return path leads there
    }
    return [...this.hands.moved(now, error.map((e) => GAIN * e)), ...this.rest];
  }
}

// Go to the start of the path, rest, follow it at constant rates, rest.
class Experiment {
  constructor(about) { Object.assign(this, about, { hands: new Hands(about.hands), there: null }); }

  levers(t, y) {
    const now = this.hands.place(y);
    if (this.there !== null && !(t - this.there >= 0 && t - this.there < this.seconds)) this.there = null;
    if (this.there === null) {
      const error = this.beginning.map((x, k) => x - now[k]);
      if (arrived(error)) this.there = t;
      return [...this.hands.moved(now, error.map((e) => GAIN * e)), ...this.rest];
    }
    const since = t - this.there, moving = since >= this.still && since < this.still + this.moving;
    return [...this.hands.moved(now, this.rates.map((x) => (moving ? x : 0))), ...this.rest];
  }
}

export const pilot = (about) => new { tour: Tour, experiment: Experiment }[about.kind](about);
