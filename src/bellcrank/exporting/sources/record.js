// Recording of a page without a server: a row for every picture, for replays and for a file.

const MOST = 36000; // rows: ten minutes of sixty pictures a second
const ROWS = 3600; // of a replay: one minute at 60 rows a second

export class Memory {
  constructor() { this.clear(); }

  clear() { this.rows = []; }

  add(t, values) {
    if (this.rows.length && t <= this.rows[this.rows.length - 1].t) return;
    this.rows.push({ t, values });
    if (this.rows.length > MOST + ROWS) this.rows.splice(0, ROWS);
  }

  // Rows of a part of the run; query: the part of an address after the question mark.
  part(query) {
    const given = new URLSearchParams(query), [from, to] = [["from", -Infinity], ["to", Infinity]].map(([key, otherwise]) => (given.has(key) ? Number(given.get(key)) : otherwise));
    return this.rows.filter(({ t }) => t >= from && t <= to);
  }

  // Replay data in the format of cockpit/scene_poses.py.
  replay(query, ground) {
    const all = this.part(query), every = Math.max(1, Math.ceil(all.length / ROWS)), rows = all.filter((_, k) => k % every === 0);
    const n = rows.length, width = n ? rows[0].values.length : 0;
    const { base, changes } = ground && n ? ground.between(rows[0].t, rows[n - 1].t) : { base: [], changes: [] }, m = changes.length;
    const data = new ArrayBuffer(16 + 8 * (n + m) + 4 * (n * width + base.length + 3 * m + m));
    let at = 0;
    const put = (kind, count) => { const made = new kind(data, at, count); at += made.byteLength; return made; };
    put(Uint32Array, 4).set([n, width, m, base.length]);
    put(Float64Array, n).set(rows.map(({ t }) => t));
    put(Float64Array, m).set(changes.map((x) => x[0]));
    const numbers = put(Float32Array, n * width);
    rows.forEach(({ values }, k) => numbers.set(values, k * width));
    put(Float32Array, base.length).set(base);
    for (const k of [1, 2, 3]) put(Float32Array, m).set(changes.map((x) => x[k]));
    put(Uint32Array, m).set(changes.map((x) => x[4]));
    return data;
  }

  // CSV table with the column names `names`; the first `poses` numbers of a row are poses and are left out.
  csv(query, names, poses) {
    // A quote prevents a spreadsheet from evaluating a name as a formula.
    const plain = (name) => (/^[=+\-@\t\r]/.test(name) ? `'${name}` : name), quoted = (name) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
    const lines = [["t", ...names].map(plain).map(quoted).join(","), ...this.part(query).map(({ t, values }) => [t, ...values.subarray(poses)].join(","))];
    return new TextEncoder().encode(`${lines.join("\n")}\n`).buffer;
  }
}
