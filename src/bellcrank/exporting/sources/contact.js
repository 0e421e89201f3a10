// Effect of the ground on a machine, as parameters of its step: ground/contact.py and ground/soils.py in JavaScript, line by
// line (a test compares them).

const NEAR = [0.1, 0.25, 0.4], FAR = [0.55, 0.7, 0.85]; // m ahead of the edge, where the surface is sampled
const ASIDE = [-0.35, 0, 0.35]; // offsets to the side, as fractions of the width
const STEEPEST = 0.7; // limit of the slope of the surface in the equation
const RAKES = [20, 95].map((x) => (x * Math.PI) / 180); // limits of the rake in the equation
const FALLING = 0.7; // fraction of the blade's slope: limit of a falling slope
const SLOWEST = 0.05; // m/s; below this speed, ahead is the direction of the bucket's mouth
const LEAST = 0.05, STEPS = 200; // rad from the ends of the range of the plane of failure; number of planes tried

const bounded = (x, low, high) => Math.min(Math.max(x, low), high);
const mean = (some) => some.reduce((a, b) => a + b, 0) / some.length;

// Horizontal direction of motion of the edge; if it hardly moves, the direction of the mouth.
function ahead(velocity, mouth) {
  const [x, y] = Math.hypot(velocity[0], velocity[1]) < SLOWEST ? mouth : velocity, far = Math.hypot(x, y);
  return far > 1e-9 ? [x / far, y / far] : [1, 0];
}

// Coefficients of the resistance along the plane beta, for each power of the depth: square, linear, constant.
export function resistance(soil, width, rake, slope, beta, surcharge) {
  const { phi, delta } = soil, share = 1 / Math.sin(rake + delta + beta + phi);
  const failure = 1 / (Math.cos(beta) * (Math.tan(beta) - Math.tan(slope))), blade = 1 / (Math.sin(rake) + Math.cos(rake) * Math.tan(slope));
  const weight = 0.5 * soil.unit_weight * width * failure * blade * Math.sin(rake + beta);
  const stuck = soil.cohesion * failure * Math.cos(phi) - soil.adhesion * blade * Math.cos(rake + beta + phi), lifted = Math.sin(beta + phi) * share;
  return [weight * lifted, width * stuck * share, surcharge * lifted];
}

// Angle of the plane of failure: the one that needs the least force.
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

// Parameters of the machine. g: the ground; turned: rotates a vector from the bucket to the world; origin: of the bucket; velocity: of the edge.
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
