/**
 * Builds the oneDNN addon if this machine has the requirements: training is two to three times as fast with it, and works without. Runs
 * after `npm install`, where it never fails; `npm run onednn` runs it again and reports errors.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
const built = join(folder, 'build', 'onednn.node');
const temporary = join(folder, 'build', `onednn-${process.pid}.node`);
const isRequired = process.argv.includes('--required');
const NEEDS = 'apt-get install g++ libdnnl-dev';

/** Returns the reason why the addon cannot be built; undefined if it was built. */
function build() {
  if (process.platform !== 'linux') return `on Linux only, and this is ${process.platform}`;
  const require = createRequire(import.meta.url);
  const headers = require('node-api-headers').include_dir;
  mkdirSync(join(folder, 'build'), { recursive: true });
  // No flags for this processor: oneDNN detects its features, and the file may be copied to another machine.
  const flags = ['-std=c++17', '-O3', '-fno-trapping-math', '-shared', '-fPIC', '-I', headers];
  const compiler = process.env.CXX ?? 'g++';
  const arguments_ = [...flags, join(folder, 'onednn.cc'), '-ldnnl', '-o', temporary];
  const { status, error, stderr } = spawnSync(compiler, arguments_, { encoding: 'utf8', timeout: 300_000 });
  if (error) return error.code === 'ENOENT' ? `there is no ${compiler}` : error.message;
  if (status !== 0) return stderr.split('\n').find((line) => /error|cannot find/.test(line)) ?? stderr.trim();
  const loads = spawnSync(process.execPath, ['-p', `require(${JSON.stringify(temporary)}).version`], {
    encoding: 'utf8',
  });
  if (loads.status !== 0)
    return `it does not load: ${loads.stderr.split('\n').find((line) => line.includes('Error'))}`;
  renameSync(temporary, built);
  process.stdout.write(`oneDNN ${loads.stdout.trim()}: its training engine is built\n`);
  return undefined;
}

let reason;
try {
  reason = build();
} catch (error) {
  reason = error.message;
}
rmSync(temporary, { force: true });
if (reason !== undefined) {
  // Removes an addon of an older version, which might have another interface.
  rmSync(built, { force: true });
  process.stderr.write(
    `the training engine on oneDNN was not built: ${reason}\nTraining works without it, on WASM. For it: ${NEEDS}, then npm run onednn\n`,
  );
  process.exitCode = isRequired ? 1 : 0;
}
