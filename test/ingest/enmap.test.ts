/** EnMAP products, built by the product specification: no real one is small enough to be here. */
import assert from 'node:assert/strict';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { Mask, readImage } from '../../src/raster/index.js';
import { ingest, testNode, tilesOf } from '../support/node.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';

const NAME = 'ENMAP01-____L2A-DT0000025905_20220724T104526Z_001_V010402_20230922T131734Z';
const SIDE = 40;
const COUNT = 20;

const bandId = (number: number, body: string) => `<bandID number="${number}">${body}</bandID>`;
const bands = (body: (number: number) => string) =>
  Array.from({ length: COUNT }, (_, i) => bandId(i + 1, body(i + 1))).join('');

/** Bands 1 to 10 of one detector, the others of another that begins below its end. Band 14 is not delivered, band 17 is empty. */
const metadata = (count = COUNT) => `<?xml version="1.0" encoding="UTF-8"?>
<level_X xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
 <base><temporalCoverage><startTime>2022-07-24T10:45:26.094Z</startTime><stopTime>2022-07-24T10:45:30.5Z</stopTime></temporalCoverage></base>
 <specific>
  <bandCharacterisation>${bands((number) =>
    number > count
      ? ''
      : `<wavelengthCenterOfBand>${number <= 10 ? 450 + 50 * number : 880 + 50 * (number - 10)}</wavelengthCenterOfBand><FWHMOfBand>${6 + number / 10}</FWHMOfBand><GainOfBand>0.0001</GainOfBand><OffsetOfBand>0</OffsetOfBand>`,
  )}</bandCharacterisation>
  <vnirProductQuality><expectedChannelsList>1,2,3,4,5,6,7,8,9,10</expectedChannelsList></vnirProductQuality>
  <swirProductQuality><expectedChannelsList>11,12,13,15,16,17,18,19,20</expectedChannelsList></swirProductQuality>
 </specific>
 <product><bandStatistics>${bands((number) => `<mean>${number === 17 ? -1000000 : 1500}</mean><stdDeviation>${number === 17 ? 0 : 300}</stdDeviation>`)}</bandStatistics></product>
</level_X>`;

/** Cloud in the first 10 columns, shadow in the next 10, snow, then clear land. */
async function product(folder: string): Promise<string> {
  const path = join(folder, NAME);
  await mkdir(path);
  const at = { pixel: 30, width: SIDE, height: SIDE };
  const file = (ending: string) => join(path, `${NAME}-${ending}`);
  await writeRaster(file('SPECTRAL_IMAGE.TIF'), {
    ...at,
    dataType: 'int16',
    nodata: -32768,
    bands: Array.from({ length: COUNT }, (_, band) =>
      Int16Array.from({ length: SIDE * SIDE }, () =>
        band === 13 || band === 16 ? -32768 : 1000 + 10 * band,
      ),
    ),
  });
  const codes = (value: (column: number) => number) => [
    Uint8Array.from({ length: SIDE * SIDE }, (_, i) => value(i % SIDE)),
  ];
  const rasters: Record<string, (column: number) => number> = {
    CLOUD: (column) => Number(column < 10),
    CLOUDSHADOW: (column) => Number(column >= 10 && column < 20),
    SNOW: (column) => Number(column >= 20 && column < 30),
    CIRRUS: () => 1,
    HAZE: () => 0,
    CLASSES: () => 1,
  };
  for (const [name, value] of Object.entries(rasters))
    await writeRaster(file(`QL_QUALITY_${name}.TIF`), { ...at, dataType: 'uint8', bands: codes(value) });
  await writeFile(file('METADATA.XML'), metadata());
  return path;
}

test('a product has its wavelengths, its bad bands, its time and its mask', async (t) => {
  const folder = await tempFolder(t);
  const path = await product(folder);
  const node = await testNode(t, join(folder, 'data'));
  const { scenes, failed } = await ingest(node, { href: path, precision: 5 });
  assert.deepEqual(failed, []);
  assert.deepEqual([scenes[0]!.collection, scenes[0]!.id.slice(0, 80)], ['enmap-l2a', NAME.slice(0, 80)]);
  assert.deepEqual(scenes[0]!.warnings, []);
  const [tile] = await tilesOf(node);
  assert.equal(tile!.platform, 'enmap');
  assert.equal(new Date(tile!.start).toISOString(), '2022-07-24T10:45:26.094Z');
  const cube = tile!.groups.find(({ role }) => role === 'data')!;
  const { wavelength, fwhm, scale } = cube.bands[10]!;
  assert.deepEqual([wavelength, fwhm, scale], [930, 7.1, 0.0001]);
  assert.deepEqual(
    cube.bands.flatMap(({ good }, i) => (good === false ? [i + 1] : [])),
    [14, 17],
  );
  assert.equal(cube.bands.find(({ commonName }) => commonName === 'red')!.wavelength, 650);

  const codes = (await readImage(node.storage.tileImage(tile!, 'mask'))).bands[0]!;
  const counts = new Map<number, number>();
  for (const code of codes) if (code !== Mask.nodata) counts.set(code, (counts.get(code) ?? 0) + 1);
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  assert.deepEqual([...counts.keys()].sort(), [Mask.clear, Mask.cloud, Mask.shadow, Mask.snow]);
  for (const count of counts.values()) assert.ok(Math.abs(count / all - 0.25) < 0.03, `${count} of ${all}`);
  assert.ok(Math.abs(tile!.cloudCover! - 25) < 3);
});

test('the metadata file identifies the product, even as a COG and with lower case names', async (t) => {
  const folder = await tempFolder(t);
  const path = await product(folder);
  const xml = join(path, `${NAME}-METADATA.xml`);
  await rename(join(path, `${NAME}-METADATA.XML`), xml);
  await rename(join(path, `${NAME}-SPECTRAL_IMAGE.TIF`), join(path, `${NAME}-SPECTRAL_IMAGE_COG.tiff`));
  const [scene] = await describeScenes(xml, {});
  assert.deepEqual(
    scene!.groups.map(({ role, bands }) => [role, bands.length]),
    [
      ['data', COUNT],
      ['qa', 6],
    ],
  );
  assert.equal(scene!.quality.length, 5);
});

test('damaged products are refused, and one without quality rasters has a warning', async (t) => {
  const folder = await tempFolder(t);
  const path = await product(folder);
  const xml = join(path, `${NAME}-METADATA.XML`);
  await writeFile(xml, metadata().replace(/<bandID number="20">.*?<\/bandID>/, ''));
  await assert.rejects(describeScenes(path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /lists 19 bands, and the cube has 20/,
  });
  await writeFile(xml, metadata(19));
  await assert.rejects(describeScenes(path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /band 20 has no wavelengthCenterOfBand/,
  });
  await writeFile(xml, metadata().replace(/<startTime>[^<]*/, '<startTime>'));
  await assert.rejects(describeScenes(path, {}), { code: 'TW_INGEST_BAD_METADATA', message: /startTime/ });
  await writeFile(xml, metadata());
  for (const name of ['CLOUD', 'CLOUDSHADOW', 'SNOW', 'CIRRUS', 'HAZE', 'CLASSES'])
    await rm(join(path, `${NAME}-QL_QUALITY_${name}.TIF`));
  const [scene] = await describeScenes(path, {});
  assert.match(scene!.warnings.join(), /no quality rasters/);
  await rm(join(path, `${NAME}-SPECTRAL_IMAGE.TIF`));
  await assert.rejects(describeScenes(path, {}), {
    code: 'TW_INGEST_MISSING_BAND',
    message: /SPECTRAL_IMAGE/,
  });
});
