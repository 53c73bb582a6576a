/**
 * Assembles WebAssembly: each `.wat` under `src/` becomes a `.wasm` at the same place under `dist/src/`, and the generated loops of
 * training become two, of which one uses relaxed multiply-add. Tables (`.tsv`) are copied.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import wabt from 'wabt';
import { plainLoops, relaxedLoops } from './wat/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { parseWat } = await wabt();

function assemble(path: string, text: string): void {
  const parsed = parseWat(path, text, { simd: true, relaxed_simd: true });
  parsed.validate();
  const out = join(root, 'dist/src', path.replace(/\.wat$/, '.wasm'));
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, parsed.toBinary({}).buffer);
}

for (const path of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
  if (path.endsWith('.wat')) assemble(path, readFileSync(join(root, 'src', path), 'utf8'));
  if (path.endsWith('.tsv')) copyFileSync(join(root, 'src', path), join(root, 'dist/src', path));
}
const folder = 'engines/compute-primitives';
assemble(`${folder}/loops.wat`, plainLoops());
assemble(`${folder}/loops-relaxed.wat`, relaxedLoops());
