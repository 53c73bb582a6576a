/** Assembles WebAssembly text: each `.wat` under `src/` becomes a `.wasm` at the same place under `dist/src/`. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';

const root = fileURLToPath(new URL('..', import.meta.url));
const { parseWat } = await wabt();

for (const path of readdirSync(join(root, 'src'), { recursive: true })) {
  if (!path.endsWith('.wat')) continue;
  const parsed = parseWat(path, readFileSync(join(root, 'src', path), 'utf8'), { simd: true });
  parsed.validate();
  const out = join(root, 'dist/src', path.replace(/\.wat$/, '.wasm'));
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, parsed.toBinary({}).buffer);
}
