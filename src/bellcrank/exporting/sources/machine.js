const DONE = 0, SWAPPED = 16, FINISHED = 1, BAD_STEP = 8; // reasons why the loop returned, and status codes of a run
const FOREVER = 1n << 40n;

async function bytes(source) {
  if (source instanceof WebAssembly.Module || source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const url = new URL(source ?? about.file, import.meta.url);
  if (url.protocol === "file:" && typeof process === "object") return (await import("node:fs/promises")).readFile(url);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

/** Load the module from the file beside this one, or from bytes, a URL or a compiled module. Each call creates another instance. */
export async function load(source) {
  const found = await bytes(source);
  const made = found instanceof WebAssembly.Module ? found : await WebAssembly.compile(found);
  return new Machine(await WebAssembly.instantiate(made, { env: Math }));
}

export class Machine {
  constructor(instance) {
    this.code = instance.exports;
    let free = about.heap;
    const room = (n) => { const at = free; free += 8 * Math.max(1, n); return new Float64Array(this.code.memory.buffer, at, Math.max(1, n)); };
    this.work = room(about.slots).byteOffset;
    this.calls = about.functions.map((f) => ({ ...f, arrays: [...f.inputs, ...f.outputs].map((x) => room(x.size)) }));
    const own = about.machine;
    if (!own) return;
    [this.now, this.spare] = [room(own.first.length), room(own.first.length)];
    [this.u, this.p, this.seen, this.moved] = [own.inputs, own.parameters, own.outputs, own.states].map((x) => room(x.length));
    this.counts = room(1);
    this.at = new Map();
    const named = (names, array, first = 0) => names.forEach((name, k) => this.at.has(name) || this.at.set(name, [array, first + k]));
    named(own.states, "now", 1); named(own.inputs, "u"); named(own.parameters, "p"); named(own.outputs, "seen");
    this.reset();
  }

  /** Reset to the initial state, default inputs and default parameters. */
  reset() {
    const own = about.machine;
    this.now.set(own.first); this.u.set(own.usual); this.p.set(own.nominal);
    this.start();
  }

  /** Reset the integrator's memory; call it after you changed the state. */
  start() {
    const at = (array) => array.byteOffset;
    this.code.begin(at(this.now), at(this.spare), at(this.p), at(this.u), this.work);
    [this.now, this.spare] = [this.spare, this.now];
    this.stale = true;
  }

  get t() { return this.now[0]; }
  get names() { return [...this.at.keys()]; }

  place(name) {
    const found = this.at.get(name);
    if (!found) throw new Error(`there is no "${name}"; there are ${this.names.join(", ")}`);
    return found;
  }

  /** Return a state, an input, a parameter or an output. */
  get(name) {
    const [array, k] = this.place(name);
    if (array === "seen" && this.stale) this.observe();
    return this[array][k];
  }

  /** Set a state (then call start), an input or a parameter. */
  set(name, value) {
    const [array, k] = this.place(name);
    if (array === "seen") throw new Error(`"${name}" is an output and cannot be set`);
    this[array][k] = value;
    if (array !== "now" && about.machine.fresh >= 0) this.now[about.machine.fresh] = 1; // the integrator's memory belongs to the old values
    this.stale = true;
  }

  /** Compute all outputs, in the order of their names. */
  observe() {
    this.hand("see", this.seen);
    this.stale = false;
    return this.seen;
  }

  /** Compute the time derivatives of the states, in their order. */
  rates() {
    this.hand("slope", this.moved);
    return this.moved;
  }

  hand(word, result) {
    const given = { t: this.now.byteOffset, y: this.now.byteOffset + 8, u: this.u.byteOffset, p: this.p.byteOffset };
    this.code[word](this.work, ...about.machine.arguments[word].map((x) => given[x]), result.byteOffset);
  }

  /** Take `count` steps. Return 0, or a status code: 2 a number is not finite, 4 an event, 6 the loops cannot be closed ... */
  step(count = 1) {
    if (!Number.isInteger(count) || count < 0 || count > about.machine.most) throw new RangeError(`step: ${count} steps; expected a whole number from 0 to ${about.machine.most}`);
    this.stale = true;
    if (!about.machine.watched) return this.ticked(BigInt(count));
    for (let k = 0; k < count; k++) {
      const at = about.machine.places, s = this.now, step = s[at.step];
      const end = s[at.begin] + (s[at.grid] + 1) * step;
      if (!(end > s[0])) return BAD_STEP;
      s[at.end] = end; s[at.tried] = 0;
      const status = this.ticked(FOREVER);
      if (status !== 0 && status !== FINISHED) return status;
      this.now[at.grid] += 1;
    }
    return 0;
  }

  ticked(ticks) {
    const at = (array) => array.byteOffset, places = about.machine.places;
    this.now[places.live] = 1; this.now[places.status] = 0;
    const why = Number(this.code.run(ticks, at(this.now), at(this.spare), at(this.p), at(this.counts), at(this.u), 0n, at(this.counts), at(this.counts), 0n, 0n, at(this.counts), this.work));
    if (why & SWAPPED) [this.now, this.spare] = [this.spare, this.now];
    return (why & 15) === DONE ? this.now[places.status] : 0;
  }

  /** Copy the complete state, inputs and parameters; restore sets them again, exactly. */
  save() { return [this.now, this.u, this.p].map((x) => x.slice()); }
  restore(saved) { [this.now, this.u, this.p].forEach((x, k) => x.set(saved[k])); this.stale = true; }

  /** Call a function with numbers and arrays. Return arrays by name, stored by rows; the next call overwrites them. */
  call(name, ...given) {
    const f = this.calls.find((x) => x.name === name);
    if (!f) throw new Error(`there is no function "${name}"; there are ${this.calls.map((x) => x.name).join(", ")}`);
    if (given.length !== f.inputs.length) throw new Error(`${name}: ${given.length} arguments; expected ${f.inputs.map((x) => x.name).join(", ")}`);
    f.inputs.forEach((x, k) => {
      const value = typeof given[k] === "number" ? [given[k]] : given[k];
      if (value.length !== x.size) throw new Error(`${name}: ${x.name} has ${value.length} numbers; expected ${x.size}`);
      f.arrays[k].set(value);
    });
    this.code[f.symbol](this.work, ...f.arrays.map((x) => x.byteOffset));
    return Object.fromEntries(f.outputs.map((x, k) => [x.name, f.arrays[f.inputs.length + k]]));
  }
}
