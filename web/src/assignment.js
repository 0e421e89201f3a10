// Assignment of the axes of all connected gamepads and joysticks to the axes of the two sticks.
//
// A gamepad has both sticks. Two joysticks are a stick each, the first one left. Where a mode assigns levers to the axes
// of two joysticks (`joysticks`), and one of them has three axes or more, these axes move the levers directly.
//
// This file is JavaScript without imports, so that a test runs it in Node (tests/unit/test_joysticks.py).

const AXES = ["left.x", "left.y", "right.x", "right.y"];
const DEVICE_AXES = 3; // of a joystick in a mode with levers of its own

// Devices in the order of the browser: their calibrated values in the order x, y, third and fourth axis, their number
// of axes, and whether they are standard gamepads, which have two sticks. pattern: lever and direction of each axis of
// the sticks, or null. joysticks: for both joysticks a lever and a direction for each axis.
export function combined(devices, pattern, joysticks) {
  const out = Object.fromEntries(AXES.map((axis) => [axis, 0]));
  const pair = devices.filter((device) => !device.standard).slice(0, 2);
  if (pair.length < 2 || devices[0].standard) {
    const single = devices.find((device) => device.count >= 2) ?? devices[0];
    if (single) AXES.forEach((axis, i) => { out[axis] = single.values[i] ?? 0; });
    return out;
  }
  const large = pair.find((device) => device.count >= DEVICE_AXES);
  if (!joysticks || !pattern || !large) {
    AXES.forEach((axis, i) => { out[axis] = pair[i < 2 ? 0 : 1].values[i % 2] ?? 0; });
    return out;
  }
  const small = pair.find((device) => device !== large);
  [large, small].forEach((device, k) => joysticks[k].forEach(([lever, direction], i) => {
    const axis = AXES.find((name) => pattern[name][0] === lever);
    if (axis) out[axis] = value(device, i, joysticks[k].length) * direction * pattern[axis][1];
  }));
  return out;
}

// A joystick for one lever is pushed forward, or moved in its only direction.
function value(device, i, count) {
  return device.values[count === 1 && device.count >= 2 ? 1 : i] ?? 0;
}
