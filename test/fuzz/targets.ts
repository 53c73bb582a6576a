/** Parts that read input which nobody has checked. A target ends normally or by a coded error; anything else is a finding. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { WorkerPool } from '../../src/async/index.js';
import { parseMtl } from '../../src/ingest/formats/landsat-mtl.js';
import { parseXml } from '../../src/ingest/formats/metadata.js';
import { readItemInFolder } from '../../src/ingest/formats/stac-sidecar.js';
import { unpackArchive } from '../../src/ingest/unpack.js';
import { readCql2Json, readCql2Text } from '../../src/query/cql2/json.js';
import { openRaster, withGdalSignal } from '../../src/raster/index.js';
import { DiskReserve } from '../../src/storage/disk.js';
import { repository } from '../raster/gdal.js';
import { zip } from '../support/archives.js';
import { httpTarget } from './http.js';
import { mutateBytes, mutateJson, mutateText, pick, type Random } from './mutate.js';
import { readPixels } from './read-pixels.js';

export interface Target {
  /** Reads one input. `folder` is its own, and empty. Throws what the product throws. */
  run(random: Random, folder: string): Promise<void> | void;
  close?(): Promise<void>;
}

/** Time for one HDF5 input. Ingest gives a scene minutes. */
const HDF5_LIMIT_MS = 2_000;
/** Time for one JPEG 2000 input. Ingest gives a header two minutes. */
const GDAL_LIMIT_MS = 3_000;

const fixtures = join(repository, 'test/fixtures/raster');

function filesOf(folder: string, pattern: RegExp, most = 65_536): Buffer[] {
  const names = readdirSync(folder).filter((name) => pattern.test(name));
  return names.map((name) => readFileSync(join(folder, name))).filter(({ length }) => length <= most);
}

/** A target whose inputs are files. */
function fileTarget(name: string, seeds: Buffer[], read: (path: string) => Promise<void>): Target {
  if (seeds.length === 0) throw new Error(`there is no seed for ${name}`);
  return {
    async run(random, folder) {
      const path = join(folder, name);
      writeFileSync(path, mutateBytes(random, pick(random, seeds), pick(random, seeds)));
      await read(path);
    },
  };
}

function textTarget(seeds: string[], words: string[], read: (text: string) => unknown): Target {
  return {
    run(random) {
      read(mutateText(random, pick(random, seeds), words));
    },
  };
}

const tiff = () =>
  fileTarget('input.tif', filesOf(fixtures, /\.tif$/), async (path) => readPixels(await openRaster(path)));

/** Read in a thread with a limit of time, as ingest does. */
function hdf5(): Target {
  const pool = new WorkerPool<string, null>(new URL('./hdf5-worker.js', import.meta.url), 1, HDF5_LIMIT_MS);
  const target = fileTarget('input.h5', filesOf(join(fixtures, 'hdf5'), /\.(nc|h5)$/), async (path) => {
    await pool.run(path);
  });
  return { ...target, close: () => pool.close() };
}

/** Made by GDAL, which also reads the inputs, each in two processes with a limit of time, as in ingest. */
async function jp2(scratch: string): Promise<Target> {
  mkdirSync(scratch, { recursive: true });
  const path = join(scratch, 'seed.jp2');
  execFileSync('gdal_translate', ['-q', '-of', 'JP2OpenJPEG', join(fixtures, 'lzw2-uint8.tif'), path]);
  return fileTarget('input.jp2', [readFileSync(path)], (input) =>
    withGdalSignal(AbortSignal.timeout(GDAL_LIMIT_MS), async () => readPixels(await openRaster(input))),
  );
}

const ITEM = {
  ...{ type: 'Feature', stac_version: '1.0.0', id: 'flight-7', collection: 'drone', links: [] },
  geometry: {
    type: 'Polygon',
    coordinates: [
      [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 0],
      ],
    ],
  },
  properties: {
    datetime: '2023-05-06T07:08:09Z',
    start_datetime: null,
    platform: 'ebee',
    license: 'CC-BY-4.0',
  },
  assets: {
    image: {
      href: './a.tif',
      'eo:bands': [{ name: 'R', common_name: 'red' }, { name: 'N' }],
      'raster:bands': [{ nodata: 9, scale: 0.5, offset: 1 }, { nodata: 'nan' }],
      bands: [{ name: 'R', data_type: 'uint8', 'classification:classes': [{ value: 1, name: 'water' }] }],
    },
  },
};

const item: Target = {
  async run(random, folder) {
    const text = JSON.stringify(mutateJson(random, ITEM)) ?? '';
    writeFileSync(join(folder, 'item.json'), random() < 0.2 ? mutateText(random, text, []) : text);
    await readItemInFolder(folder, ['item.json', 'a.tif']);
  },
};

function archives(): Target {
  const files = [
    { name: 'scene/a.tif', content: Buffer.alloc(3000, 7) },
    { name: 'scene/b.json', content: '{"a": 1}', store: true },
    { name: 'scene/link', content: 'a.tif', mode: 0o120777 },
  ];
  const tar = Buffer.concat([
    tarEntry('a/b.tif', Buffer.alloc(700, 3)),
    tarEntry('a/c', Buffer.from('c')),
    Buffer.alloc(1024),
  ]);
  const seeds = [zip(files.slice(0, 2)), zip(files), tar, gzipSync(tar)];
  return {
    async run(random, folder) {
      const path = join(folder, 'input');
      writeFileSync(path, mutateBytes(random, pick(random, seeds), pick(random, seeds)));
      const out = join(folder, 'out');
      await unpackArchive(path, out, { reserve: new DiskReserve(folder, 0) }).finally(() =>
        rmSync(out, { recursive: true, force: true }),
      );
    },
  };
}

/** POSIX.1-1988 header and content, padded. */
function tarEntry(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write('0000644\0', 100);
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('00000000000\0        0', 136);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

const XML = [
  '<?xml version="1.0" encoding="UTF-8"?><n1:Level-2A_User_Product xmlns:n1="https://x"><n1:General_Info><Product_Info><PRODUCT_START_TIME>2020-01-02T03:04:05.678Z</PRODUCT_START_TIME></Product_Info></n1:General_Info></n1:Level-2A_User_Product>',
  '<a b="c&amp;d"><!-- x --><![CDATA[ <y> ]]><z/>text</a>',
];
const MTL = [
  'GROUP = LANDSAT_METADATA_FILE\n  GROUP = PRODUCT_CONTENTS\n    LANDSAT_PRODUCT_ID = "LC08_L2SP_195028_20200801_20200908_02_T1"\n    FILE_NAME_BAND_1 = "B1.TIF"\n  END_GROUP = PRODUCT_CONTENTS\n  GROUP = IMAGE_ATTRIBUTES\n    CLOUD_COVER = 1.5\n    DATE = (1, 2, "x")\n  END_GROUP = IMAGE_ATTRIBUTES\nEND_GROUP = LANDSAT_METADATA_FILE\nEND\n',
];
const CQL2_TEXT = [
  "eo:cloud_cover < 20 AND platform LIKE 'sent%'",
  "T_DURING(datetime, INTERVAL('2020-01-01', '..')) OR NOT (gsd IN (10, 20))",
  'S_INTERSECTS(geometry, POLYGON((0 0, 10 0, 10 10, 0 10, 0 0)))',
  "collection = 'a' AND eo:cloud_cover BETWEEN 1 AND 2 AND platform IS NOT NULL",
  "CASEI(platform) = casei('X') AND eo:cloud_cover * 2 + 1 > 3 ^ 2",
];
const CQL2_WORDS = [
  ...[
    'AND',
    'OR',
    'NOT',
    'LIKE',
    'IN',
    'BETWEEN',
    'IS NULL',
    'T_AFTER(',
    'S_WITHIN(',
    'INTERVAL(',
    'CASEI(',
    'ACCENTI(',
  ],
  ...[
    'datetime',
    'eo:cloud_cover',
    'geometry',
    "DATE('2020-01-01')",
    "TIMESTAMP('2020-01-01T00:00:00Z')",
    'POINT(0 0)',
    '*',
    '%',
    'div',
  ],
];
const CQL2_JSON = [
  {
    op: 'and',
    args: [
      { op: '<', args: [{ property: 'eo:cloud_cover' }, 20] },
      { op: 'like', args: [{ property: 'platform' }, 'a%'] },
    ],
  },
  { op: 't_during', args: [{ property: 'datetime' }, { interval: ['2020-01-01', '..'] }] },
  {
    op: 's_intersects',
    args: [
      { property: 'geometry' },
      {
        type: 'MultiPolygon',
        coordinates: [
          [
            [
              [0, 0],
              [9, 0],
              [9, 9],
              [0, 0],
            ],
          ],
        ],
      },
    ],
  },
  { op: 'in', args: [{ property: 'collection' }, ['a', 'b']] },
];

const PAM =
  '<PAMDataset><SRS dataAxisToSRSAxisMapping="1,2">PROJCS["UTM",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["central_meridian",15],PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],UNIT["metre",1]]</SRS><GeoTransform> 5e5, 30, 0, 5.3e6, 0, -30</GeoTransform><PAMRasterBand band="1"><NoDataValue le_hex_equiv="0000000000000000">0</NoDataValue></PAMRasterBand></PAMDataset>';

/** The file `.aux.xml` beside a GeoTIFF without a position. */
function pam(scratch: string): Target {
  mkdirSync(scratch, { recursive: true });
  const path = join(scratch, 'input.tif');
  const words = ['<SRS>', 'GEOGCS[', 'UNIT["x",0]', 'nan', '1e999', 'band="-1"', 'le_hex_equiv="ff"'];
  writeFileSync(path, readFileSync(join(fixtures, 'lzw2-uint8.tif')));
  return {
    async run(random) {
      writeFileSync(`${path}.aux.xml`, mutateText(random, PAM, words));
      await readPixels(await openRaster(path));
    },
  };
}

export type TargetName = keyof typeof TARGETS;

/** Makes a target. `scratch` is a folder of its own for as long as it runs. */
export const TARGETS = {
  tiff,
  hdf5,
  jp2,
  pam,
  archives,
  item: () => item,
  xml: () =>
    textTarget(XML, ['<a>', '</a>', '<?', '?>', 'xmlns:x="y"'], (text) => parseXml(text, 'input.xml')),
  mtl: () => textTarget(MTL, ['GROUP = ', 'END_GROUP = ', 'END', '= (', '"""'], parseMtl),
  'cql2-text': () => textTarget(CQL2_TEXT, CQL2_WORDS, readCql2Text),
  'cql2-json': (): Target => ({
    run: (random) => void readCql2Json(mutateJson(random, pick(random, CQL2_JSON))),
  }),
  http: httpTarget,
} satisfies Record<string, (scratch: string) => Target | Promise<Target>>;

/** Shares of the inputs by which every target gets about the same time. */
export const SHARES: Record<TargetName, number> = {
  ...{ tiff: 0.23, pam: 0.02, hdf5: 0.02, jp2: 0.002, archives: 0.05, item: 0.1, xml: 0.15, mtl: 0.1 },
  ...{ 'cql2-text': 0.15, 'cql2-json': 0.1, http: 0.078 },
};

/** Targets that can run here. */
export function availableTargets(): TargetName[] {
  const hasGdal = spawnSync('gdal_translate', ['--version']).status === 0;
  return (Object.keys(TARGETS) as TargetName[]).filter((name) => name !== 'jp2' || hasGdal);
}
