/**
 * Bundles the command into `dist/command`: `main.js`, and a file for each part that it loads on demand. Node starts a few files much
 * faster than a thousand. Packages stay outside, and workers run from `dist/src`.
 */
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const dist = fileURLToPath(new URL('..', import.meta.url));
const outdir = join(dist, 'command');

/** Keeps the URL of each source file, because workers, WebAssembly and tables lie beside it. */
const keepUrls: Plugin = {
  name: 'keep-urls',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const url = `new URL('${relative(outdir, path).split(sep).join('/')}', import.meta.url).href`;
      return { contents: text.replaceAll('import.meta.url', url), resolveDir: dirname(path) };
    });
  },
};

// Names of files contain hashes, so files of an earlier build would stay.
await rm(outdir, { recursive: true, force: true });
await build({
  entryPoints: [join(dist, 'src/cli/main.js')],
  outdir,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  packages: 'external',
  sourcemap: true,
  logLevel: 'warning',
  plugins: [keepUrls],
});
