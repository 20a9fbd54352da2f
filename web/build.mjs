// Builds the pages into the Python packages: index.html, one script, one style sheet and the licences of what is in them. The same
// sources give the same bytes.

import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));

/** Where each page is built to. tests/web/test_built.py reads this file's sources the same way. */
const pages = {
  controller: { target: "../controller/api/page", title: "MSTCP controller" },
  lab: { target: "../experiments/page", title: "MSTCP lab" },
};

/** What a page is made of, beside src/shared and src/<page>. */
const common = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];

async function filesBelow(folder) {
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"));
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

/** The licence of each package that the bundle holds a part of, which their copies must carry. */
async function licensesOf(inputs) {
  const packages = new Set(
    Object.keys(inputs).flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  const texts = [];
  for (const name of [...packages].sort()) {
    const folder = join(root, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).sort().find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no file with its licence: look at how it may be copied`);
    texts.push(`${name} ${version} (${license})\n\n${(await readFile(join(folder, file), "utf8")).trim()}\n`);
  }
  return texts.join(`\n${"-".repeat(100)}\n\n`);
}

const wanted = process.argv.slice(2);
for (const [page, { target, title }] of Object.entries(pages)) {
  if (wanted.length > 0 && !wanted.includes(page)) continue;
  const outdir = join(root, target);
  await mkdir(outdir, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { page: `src/${page}/main.tsx` },
    outdir,
    bundle: true,
    metafile: true,
    format: "esm",
    target: ["es2022"],
    minify: true,
    legalComments: "none",
    charset: "utf8",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  const html = await readFile(join(root, "src/shared/index.html"), "utf8");
  await writeFile(join(outdir, "index.html"), html.replace("{title}", title));
  await copyFile(join(root, "src/shared/icon.svg"), join(outdir, "icon.svg"));
  await writeFile(join(outdir, "licenses.txt"), await licensesOf(metafile.inputs));
  await writeFile(join(outdir, "sources.sha256"), `${await hashOf(page)}\n`);
}
