/** The files of a tile: few, and each image in them is a Cloud Optimized GeoTIFF for other programs. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { writeLandsatLikeScene, writeSafe, writeSpectrometerLikeSeries } from '../../data-samples/index.js';
import { encodeCog, gdalName, readImage } from '../../src/raster/index.js';
import { filesOf, type TileRecord, tileFolder } from '../../src/storage/index.js';
import { writeEnvi } from '../raster/envi.js';
import { gdal, gdalPixels, needsGdal } from '../raster/gdal.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

/** Inputs by what they exercise: pixel sizes, quality bands in other files, detected clouds, cubes, masks of bands. */
const PRODUCTS: Record<string, (folder: string) => Promise<object>> = {
  'three sizes, quality at another size': async (folder) => {
    const { path } = await writeSafe(folder, { size: { width: 540, height: 540 } });
    return { href: path };
  },
  'two sizes': async (folder) => {
    await writeLandsatLikeScene(folder, { size: { width: 150, height: 150 } });
    return { href: folder };
  },
  'two sizes, detected clouds': async (folder) => {
    const { path } = await writeSafe(folder, { level: 'L1C', size: { width: 540, height: 540 } });
    return { href: path, cloudTest: true };
  },
  'a cube': async (folder) => {
    await writeSpectrometerLikeSeries(folder, { size: { width: 130, height: 90 }, dates: 1, bands: 20 });
    return { href: folder, collection: 'cubes' };
  },
  'a cube with a band of quality': async (folder) => {
    await mkdir(folder);
    const [width, height] = [130, 90];
    const bands = Array.from({ length: 18 }, (_, band) =>
      Array.from({ length: width * height }, (_, i) =>
        band === 0 ? 2 * Number(i % 7 === 0) : 1 + ((i * band) % 999),
      ),
    );
    const lines = [
      'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
      ...['acquisition time = 2024-06-01T10:00:00Z', 'wavelength units = nm', 'data ignore value = 0'],
      `wavelength = {${bands.map((_, band) => 400 + 20 * band).join()}}`,
    ];
    writeEnvi(join(folder, 'cube.bil'), { width, height, bands, type: 'uint16', interleave: 'bil', lines });
    return { href: folder, collection: 'cubes', maskBand: 1 };
  },
  'a mask for each band': async (folder) => {
    const [width, height] = [200, 180];
    const bands = [5, 7].map((seed) =>
      Uint8Array.from({ length: width * height }, (_, i) => (i * seed) % 251),
    );
    const masks = [1, 2].map((seed) => Uint8Array.from(bands[0]!, (_, i) => Number(i % (seed * 40) > 9)));
    const transform = { originX: 500_000, originY: 5_300_000, pixelWidth: 30, pixelHeight: 30 };
    await mkdir(folder);
    const path = join(folder, 'bytes.tif');
    const image = { width, height, dataType: 'uint8', epsg: 32633, transform, overviews: 'mean' } as const;
    await writeFile(path, encodeCog({ ...image, bands, masks }));
    return { href: path, collection: 'bytes', datetime: '2024-06-01T10:00:00Z', precision: 5 };
  },
};

const sizeOf = ({ width, height }: TileRecord['groups'][number]) => `${width} ${height}`;

for (const [name, write] of Object.entries(PRODUCTS))
  test(`${name}: one file for each pixel size, whose images GDAL opens`, needsGdal, async (t) => {
    const folder = await tempFolder(t);
    const node = await testNode(t, join(folder, 'data'));
    const { failed } = await ingest(node, await write(join(folder, 'input')));
    assert.deepEqual(failed, []);
    const { storage } = node;
    const tiles = await tilesOf(node);
    assert.ok(tiles.length > 0);
    for (const tile of tiles) {
      const files = filesOf(tile);
      assert.deepEqual(
        (await readdir(join(storage.dir, tileFolder(tile)))).sort(),
        files.map(({ path }) => path.slice(path.lastIndexOf('/') + 1)).sort(),
      );
      // With the folder, at most two inodes for one pixel size, and one more for each further size.
      assert.equal(files.length, new Set(tile.groups.map(sizeOf)).size);
      for (const { path, ...sum } of files) {
        const bytes = await readFile(join(storage.dir, path));
        assert.deepEqual({ bytes: bytes.length, crc32: crc32(bytes) }, sum);
      }
      const mask = tile.groups.at(-1)!;
      assert.equal(mask.role, 'mask');
      const finest = tile.groups.filter(({ role }) => role === 'data').map(({ width }) => width);
      assert.equal(mask.width, Math.max(...finest));
    }
    const [tile] = tiles.toSorted((a, b) => b.coverage - a.coverage) as [TileRecord];
    for (const group of tile.groups) {
      const image = storage.tileImage(tile, group.name);
      const info = JSON.parse(gdal('gdalinfo', '-json', gdalName(image)));
      assert.deepEqual(info.size, [group.width, group.height]);
      assert.equal(info.bands.length, group.bands.length);
      const { bands, header } = await readImage(image);
      assert.deepEqual(gdalPixels(gdalName(image), header.dataType), bands);
      const small = info.bands[0].overviews.at(-1).size;
      assert.ok(Math.max(...small) <= 64 && Math.max(...small) > 32, small.join(' x '));
      for (const band of info.bands) assert.deepEqual(band.overviews, info.bands[0].overviews);

      const { rawPayload } = await node.server.inject(`/tiles/${tile.id}/${group.name}.tif`);
      const { path, start, bytes } = image;
      assert.ok(rawPayload.equals((await readFile(path)).subarray(start, start + bytes)));
    }
  });
