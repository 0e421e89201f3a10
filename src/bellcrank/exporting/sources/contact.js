// What a machine feels of the ground, as numbers that its step takes as parameters: ground/contact.py and ground/wedge.py
// in JavaScript, line by line (a test compares them).

const NEAR = [0.1, 0.25, 0.4], FAR = [0.55, 0.7, 0.85]; // m ahead of the edge: where the surface is looked at
const ASIDE = [-0.35, 0, 0.35]; // of the width
const STEEPEST = 0.7; // rise over run of a surface, in the equation
const RAKES = [20, 95].map((x) => (x * Math.PI) / 180); // within which a blade counts
const FALLING = 0.7; // of the blade's own slope: a surface that falls away faster counts as that
const SLOWEST = 0.05; // m/s: slower, the way it last went is the way ahead
const LEAST = 0.05, STEPS = 200; // rad from the ends of where a plane of failure can be; how many are tried

const bounded = (x, low, high) => Math.min(Math.max(x, low), high);
const mean = (some) => some.reduce((a, b) => a + b, 0) / some.length;

// The level direction in which the edge goes; where it hardly does, the one in which the mouth looks.
function ahead(velocity, mouth) {
  const [x, y] = Math.hypot(velocity[0], velocity[1]) < SLOWEST ? mouth : velocity, far = Math.hypot(x, y);
  return far > 1e-9 ? [x / far, y / far] : [1, 0];
}

// What the soil resists with along the plane beta, for each power of the depth: square, linear, constant.
export function resistance(soil, width, rake, slope, beta, surcharge) {
  const { phi, delta } = soil, share = 1 / Math.sin(rake + delta + beta + phi);
  const failure = 1 / (Math.cos(beta) * (Math.tan(beta) - Math.tan(slope))), blade = 1 / (Math.sin(rake) + Math.cos(rake) * Math.tan(slope));
  const weight = 0.5 * soil.unit_weight * width * failure * blade * Math.sin(rake + beta);
  const stuck = soil.cohesion * failure * Math.cos(phi) - soil.adhesion * blade * Math.cos(rake + beta + phi), lifted = Math.sin(beta + phi) * share;
  return [weight * lifted, width * stuck * share, surcharge * lifted];
}

// Where it takes the least force, and the soil above it is a wedge.
export function planeOfFailure(soil, width, rake, slope, depth, surcharge) {
  const low = Math.max(slope, 0) + LEAST, high = Math.min(0.5 * Math.PI, Math.PI - rake - soil.delta - soil.phi) - LEAST;
  if (high <= low) return low;
  let best = low, least = Infinity;
  for (let k = 0; k < STEPS; k++) {
    const beta = k === STEPS - 1 ? high : low + k * ((high - low) / (STEPS - 1)), [a, b, c] = resistance(soil, width, rake, slope, beta, surcharge);
    const force = a * depth * depth + b * depth + c;
    if (force < least) { least = force; best = beta; }
  }
  return best;
}

// g: the ground; turned: of a vector of the bucket, what it is in the world; origin: of the bucket; velocity: of the edge.
export function felt(g, turned, origin, tip, velocity) {
  const { tool, level, soil, load, contact } = g, across = turned(tool.across), way = ahead(velocity, turned(tool.mouth));
  const surface = (some) => mean(some.flatMap((d) => ASIDE.map((s) => g.height(tip[0] + d * way[0] + s * tool.width * across[0], tip[1] + d * way[1] + s * tool.width * across[1]))));
  const near = surface(NEAR), first = mean(NEAR), slope = bounded((surface(FAR) - near) / (mean(FAR) - first), -STEEPEST, STEEPEST), edge = near - slope * first;
  const depth = Math.max(level + edge - tip[2], 0), teeth = turned(contact.pointing);
  const rake = bounded(Math.atan2(-teeth[2], teeth[0] * way[0] + teeth[1] * way[1]), ...RAKES), surcharge = soil.unit_weight * load;
  const angle = Math.atan(Math.max(slope, -FALLING * Math.tan(rake)));
  const beta = planeOfFailure(soil, tool.width, rake, angle, Math.max(depth, 0.05), surcharge);
  const [square, linear, constant] = resistance(soil, tool.width, rake, angle, beta, surcharge).map((x) => Math.max(x, 0)), heel = turned(contact.heel).map((x, k) => x + origin[k]);
  const share = Math.min(load / tool.capacity, 1), long = Math.hypot(...contact.tip);
  const centre = contact.tip.map((x, k) => 0.52 * x - (1 - 0.45 * share) * tool.deep * long * tool.mouth[k]);
  return {
    "ground.height": level + edge - slope * (way[0] * tip[0] + way[1] * tip[1]), "ground.slope_x": slope * way[0], "ground.slope_y": slope * way[1],
    "ground.square": square, "ground.linear": linear, "ground.constant": constant,
    "ground.heel": level + g.height(heel[0], heel[1]), "ground.pin": level + g.height(origin[0], origin[1]),
    "load.mass": soil.density * load, "load.x": centre[0], "load.y": centre[1], "load.z": centre[2],
  };
}
