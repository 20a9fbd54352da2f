// Builds the pages into the Python packages: one script, one style sheet and index.html each. The same sources give the same bytes.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));

/** Where each page is built to. tests/web/test_web_built.py reads this file's sources the same way. */
const pages = {
  controller: "../controller/api/page",
  lab: "../experiments/page",
};

/** What a page is made of, beside src/shared and src/<page>. */
const common = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];

async function filesBelow(folder) {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"));
}

/** SHA-256 over the names, lengths and bytes of all sources, in the order of their names. */
async function hashOf(page) {
  const names = [...common, ...(await filesBelow("src/shared")), ...(await filesBelow(`src/${page}`))].sort();
  const hash = createHash("sha256");
  for (const name of names) {
    const bytes = await readFile(join(root, name));
    hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

const wanted = process.argv.slice(2);
for (const [page, target] of Object.entries(pages)) {
  if (wanted.length > 0 && !wanted.includes(page)) continue;
  const outdir = join(root, target);
  await mkdir(outdir, { recursive: true });
  await build({
    absWorkingDir: root,
    entryPoints: { page: `src/${page}/main.tsx` },
    outdir,
    bundle: true,
    format: "esm",
    target: ["es2022"],
    minify: true,
    legalComments: "none",
    charset: "utf8",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  await copyFile(join(root, `src/${page}/index.html`), join(outdir, "index.html"));
  await copyFile(join(root, "src/shared/icon.svg"), join(outdir, "icon.svg"));
  await writeFile(join(outdir, "sources.sha256"), `${await hashOf(page)}\n`);
}
