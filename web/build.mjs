// Bundles the page into the Python package: two scripts (the line to the server has a thread of its own), one style sheet, one HTML file, and a script for pages of records. Nothing is fetched from elsewhere.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const target = `${here}../src/bellcrank/cockpit/static`;
await mkdir(target, { recursive: true });
await build({
  entryPoints: { cockpit: `${here}src/main.ts`, line: `${here}src/line.ts` },
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "eof", // the licences of three and uPlot stay with them
  logLevel: "warning",
});
// For pages of records, which carry it with them (view/record_page.py).
await build({
  entryPoints: { report: `${here}src/report.ts` },
  outdir: target,
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "BellcrankReport",
  target: "es2022",
  legalComments: "eof",
  logLevel: "warning",
});
await copyFile(`${here}src/index.html`, `${target}/index.html`);
