/** GDAL as a second implementation: found on PATH, or the tests that need it are skipped. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type DataType, type PixelArray, viewPixels } from '../../src/raster/index.js';
import { atEnd } from '../support/at-end.js';

const hasGdal = spawnSync('gdalinfo', ['--version']).status === 0;

const python = ['python3', '/usr/bin/python3'].find(
  (name) =>
    spawnSync(name, ['-c', 'import osgeo_utils.samples.validate_cloud_optimized_geotiff']).status === 0,
);

export const needsGdal = { skip: hasGdal ? false : 'GDAL is not installed' };
export const needsPythonGdal = { skip: python && hasGdal ? false : "GDAL's Python binding is not installed" };

/** Runs one of GDAL's programs without letting it write side files. */
export function gdal(program: string, ...args: string[]): string {
  const env = { ...process.env, GDAL_PAM_ENABLED: 'NO' };
  return execFileSync(program, args, {
    encoding: 'utf8',
    env,
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

export function gdalPython(...args: string[]): string {
  return execFileSync(python!, args, { encoding: 'utf8' });
}

/** All bands of a file as GDAL decodes them. */
export function gdalPixels(path: string, dataType: DataType): PixelArray[] {
  return withFolder((folder) => {
    const raw = join(folder, 'raw');
    gdal('gdal_translate', '-q', '-of', 'ENVI', '-co', 'INTERLEAVE=BSQ', path, raw);
    const info = JSON.parse(gdal('gdalinfo', '-json', path));
    const [width, height] = info.size;
    const bytes = new Uint8Array(readFileSync(raw));
    const bandBytes = bytes.length / info.bands.length;
    return info.bands.map((_: unknown, band: number) =>
      viewPixels(dataType, bytes.buffer, band * bandBytes, width * height),
    );
  });
}

function withFolder<T>(use: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-test-'));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A folder that is removed after the test. */
export function temporaryFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-test-'));
  atEnd(context, () => rmSync(folder, { recursive: true }));
  return folder;
}

export const repository = join(import.meta.dirname, '../../..');

/** Files made by GDAL; see make.py there. */
export const fixtures = join(repository, 'test/fixtures/raster');
