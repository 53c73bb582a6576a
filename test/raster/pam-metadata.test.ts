/** GDAL's `.aux.xml` beside a raster, as GDAL writes it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { sideFilesOf } from '../../src/ingest/index.js';
import { openRaster } from '../../src/raster/index.js';
import { readPam } from '../../src/raster/metadata.js';
import { writeRaster } from '../support/rasters.js';
import { tempFolder } from '../support/temp.js';
import { type EnviCube, headerOf } from './envi.js';
import { fixtures, gdal, needsGdal } from './gdal.js';

/** A raster with a PAM file, made by gdal_translate from a raster in EPSG:32633. */
async function translated(t: TestContext, name: string, args: string[]): Promise<string> {
  const folder = await tempFolder(t);
  const source = await writeRaster(join(folder, 'source.tif'));
  const path = join(folder, name);
  gdal('gdal_translate', '-q', '--config', 'GDAL_PAM_ENABLED', 'YES', ...args, source, path);
  return path;
}

const JPEG_2000 = ['-of', 'JP2OpenJPEG', '-co', 'REVERSIBLE=YES', '-co', 'QUALITY=100'];

test('the nodata value of JPEG 2000', needsGdal, async (t) => {
  const path = await translated(t, 'a.jp2', [...JPEG_2000, '-a_nodata', '7']);
  assert.equal((await openRaster(path)).nodata, 7);
});

test('the georeferencing of JPEG 2000 without its own', needsGdal, async (t) => {
  const path = await translated(t, 'a.jp2', [...JPEG_2000, '-co', 'GMLJP2=NO', '-co', 'GeoJP2=NO']);
  const { crs, transform, isDescribedOutside, warnings } = await openRaster(path);
  assert.deepEqual([crs.epsg, isDescribedOutside, warnings], [32633, true, []]);
  assert.deepEqual(transform, { originX: 500_000, originY: 5_300_000, xx: 10, xy: 0, yx: 0, yy: -10 });
});

test('the georeferencing of a GeoTIFF without its own', needsGdal, async (t) => {
  const path = await translated(t, 'a.tif', ['-co', 'PROFILE=BASELINE']);
  const { crs, transform, isDescribedOutside } = await openRaster(path);
  assert.deepEqual([crs.epsg, isDescribedOutside], [32633, true]);
  assert.deepEqual([transform.originX, transform.yy], [500_000, -10]);
});

const band = (number: number, value: string) =>
  `<PAMRasterBand band="${number}"><NoDataValue ${value}</NoDataValue></PAMRasterBand>`;

/** The header of a raster of two bands beside a PAM file of this content. */
async function withPam(t: TestContext, content: string, nodata?: number) {
  const path = join(await tempFolder(t), 'a.tif');
  const bands = [new Float64Array(64 * 64), new Float64Array(64 * 64)];
  await writeRaster(path, { dataType: 'float64', bands, nodata });
  await writeFile(`${path}.aux.xml`, content);
  return openRaster(path);
}

const OTHER_PLACE = '<GeoTransform>600000, 20, 0, 5200000, 0, -20</GeoTransform>';

for (const [driver, prefersPam] of [
  ['GTiff', true],
  ['JP2OpenJPEG', true],
  ['HFA', false],
] as const)
  test(
    `a position and nodata value that differ are those of GDAL, with a warning: ${driver}`,
    needsGdal,
    async (t) => {
      for (const [content, warning] of [
        [`<SRS>EPSG:32634</SRS>${OTHER_PLACE}`, /its position is that of .*aux\.xml, as in GDAL/],
        [OTHER_PLACE, /its position is that of/],
        ['<SRS>EPSG:32634</SRS>', /its position is that of/],
        ['<SRS>EPSG:32633</SRS>', /^$/],
        ['<GeoTransform>500000, 10, 0, 5300000, 0, -10</GeoTransform>', /^$/],
        [band(1, '>5'), /its nodata value is 5, that of .*, and not its own 9/],
        [band(1, '>5,0'), /its nodata value is 5/],
        [band(1, '>9'), /^$/],
        [band(1, '>none'), /nodata value "none" is not a number/],
      ] as const) {
        const isJpeg2000 = driver === 'JP2OpenJPEG';
        // GDAL reads no part of the position in JPEG 2000 if PAM has the other part, and no nodata value.
        if (isJpeg2000 && !(content.includes('SRS') && content.includes('Geo'))) continue;
        const options = isJpeg2000 ? JPEG_2000.slice(2) : ['-a_nodata', '9'];
        const path = await translated(t, isJpeg2000 ? 'a.jp2' : 'a.raster', ['-of', driver, ...options]);
        await writeFile(`${path}.aux.xml`, `<PAMDataset>${content}</PAMDataset>`);
        const { transform, crs, nodata, warnings, isDescribedOutside } = await openRaster(path);
        const info = JSON.parse(execFileSync('gdalinfo', ['-json', path], { encoding: 'utf8' }));
        const { originX, originY, xx, xy, yx, yy } = transform;
        assert.deepEqual([originX, xx, xy, originY, yx, yy], info.geoTransform, content);
        assert.match(info.coordinateSystem.wkt, new RegExp(`ID\\["EPSG",${crs.epsg}\\]\\]$`), content);
        if (!isJpeg2000 && !content.includes('none'))
          assert.equal(nodata, info.bands[0].noDataValue, content);
        assert.match(warnings!.join(), prefersPam ? warning : /^$/, content);
        if (/position is/.test(warnings!.join())) assert.equal(isDescribedOutside, true);
      }
    },
  );

/** A GeoTIFF of float64 with this text in the tag of GDAL's nodata value. */
async function withNodataText(path: string, text: string): Promise<string> {
  const placeholder = '-123456789';
  const bands = [new Float64Array(64 * 64)];
  await writeRaster(path, { dataType: 'float64', bands, nodata: Number(placeholder) });
  const bytes = await readFile(path);
  bytes.write(text.padEnd(placeholder.length, '\0'), bytes.indexOf(placeholder));
  await writeFile(path, bytes);
  return path;
}

test('a nodata value is read in every form that GDAL reads; other texts are named', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  for (const [i, text] of [
    ...['-9999', '-9999.0', ' -9999 ', '-9.999e3', '-9999,0', '5,25', '+5', '5.', '.5', '0x10', '-0', '1E20'],
    ...['nan', 'NaN', '-nan', 'nan(ind)', '1.#QNAN', '-1.#IND', 'inf', '-inf', '1.#INF', '-1.#INF'],
  ].entries()) {
    const path = await withNodataText(join(folder, `${i}.tif`), text);
    const { nodata, warnings } = await openRaster(path);
    const [{ noDataValue }] = JSON.parse(gdal('gdalinfo', '-json', path)).bands;
    assert.deepEqual([String(nodata).toLowerCase(), warnings], [String(noDataValue).toLowerCase(), []], text);
  }
  for (const [i, text] of ['none', 'n/a', '5 m', '-9999;', '1 2', '5abc', '1,000.5'].entries()) {
    const path = await withNodataText(join(folder, `other-${i}.tif`), text);
    const { nodata, warnings } = await openRaster(path);
    assert.deepEqual(
      [nodata, warnings],
      [undefined, [`its nodata value "${text}" is not a number and is not used (--nodata sets one)`]],
    );
  }
});

test('a nodata value is read exactly', async (t) => {
  const lowest = 'le_hex_equiv="FFFFFFFFFFFFEFFF">-1.79769313486232E+308';
  const pam = `<PAMDataset>${band(1, lowest)}${band(2, lowest)}</PAMDataset>`;
  assert.equal((await withPam(t, pam)).nodata, -Number.MAX_VALUE);
});

for (const [name, content, warning] of [
  ['different nodata values', `<PAMDataset>${band(1, '>5')}</PAMDataset>`, /differ between bands/],
  ['broken XML', '<PAMDataset><SRS>', /aux\.xml is not used: .*unclosed/],
  ['another document', '<html/>', /not PAMDataset/],
  ['a document type', '<!DOCTYPE a [<!ENTITY b "c">]><PAMDataset/>', /document type/],
  ['a wrong position', '<PAMDataset><GeoTransform>1, 2</GeoTransform></PAMDataset>', /not six numbers/],
] as const)
  test(`${name}: a warning, and the file is not used`, async (t) => {
    const { nodata, warnings } = await withPam(t, content);
    assert.equal(nodata, undefined);
    assert.match(warnings!.join(), warning);
  });

test('an ENVI raster has the same PAM file by its image as by its header', async (t) => {
  const path = join(await tempFolder(t), 'a');
  const cube: EnviCube = { width: 1, height: 1, bands: [[5]], type: 'uint8', interleave: 'bsq' };
  await writeFile(`${path}.hdr`, headerOf(cube));
  await writeFile(`${path}.img`, Uint8Array.of(5));
  await writeFile(`${path}.img.aux.xml`, `<PAMDataset>${band(1, '>5')}</PAMDataset>`);
  await writeFile(`${path}.hdr.aux.xml`, '<html/>');
  for (const name of [`${path}.img`, `${path}.hdr`]) {
    const { nodata, warnings } = await openRaster(name);
    assert.deepEqual([nodata, warnings], [5, []], name);
    assert.ok((await sideFilesOf(name)).includes(`${path}.img.aux.xml`), name);
  }
});

/** GeoKeyDirectoryTag. */
const GEO_KEYS = 34735;

/** A GeoTIFF without a coordinate system, beside a PAM file. */
async function withoutCrs(t: TestContext, pam: string): Promise<string> {
  const path = await writeRaster(join(await tempFolder(t), 'a.tif'));
  const bytes = await readFile(path);
  // The tag of the coordinate system becomes one that no reader knows.
  bytes.writeUInt16LE(GEO_KEYS + 1, bytes.indexOf(Uint8Array.of(GEO_KEYS & 255, GEO_KEYS >> 8)));
  await writeFile(path, bytes);
  await writeFile(`${path}.aux.xml`, pam);
  return path;
}

test('the error of a raster without georeferencing explains why its PAM file is not used', async (t) => {
  const path = await withoutCrs(t, '<PAMDataset><GeoTransform>1, 2</GeoTransform></PAMDataset>');
  await assert.rejects(
    openRaster(path),
    /is not georeferenced: .*\.aux\.xml is not used: its GeoTransform is not six numbers/,
  );
});

test('the system may be an EPSG code', async (t) => {
  const path = await withoutCrs(t, '<PAMDataset><SRS>EPSG:32633</SRS></PAMDataset>');
  assert.equal((await openRaster(path)).crs.epsg, 32633);
});

test('a link is not followed', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'));
  await writeFile(join(folder, 'b.xml'), `<PAMDataset>${band(1, '>5')}</PAMDataset>`);
  await symlink(join(folder, 'b.xml'), `${path}.aux.xml`);
  const { nodata, warnings } = await openRaster(path);
  assert.deepEqual([nodata, warnings], [undefined, []]);
});

test('a folder and a named pipe of this name are not PAM files', async (t) => {
  const folder = await tempFolder(t);
  for (const [name, make] of [
    ['a.tif', (path: string) => mkdir(path)],
    ['b.tif', async (path: string) => execFileSync('mkfifo', [path])],
  ] as const) {
    const path = await writeRaster(join(folder, name));
    await make(`${path}.aux.xml`);
    assert.deepEqual((await openRaster(path)).warnings, [], name);
  }
});

test('a link that takes the name of a PAM file while it is read is not followed', async (t) => {
  const folder = await tempFolder(t);
  const path = await writeRaster(join(folder, 'a.tif'));
  const [secret, pam] = [join(folder, 'b.xml'), `${path}.aux.xml`];
  await writeFile(secret, `<PAMDataset>${band(1, '>5')}</PAMDataset>`);
  let running = true;
  const exchange = async () => {
    while (running) {
      await writeFile(`${pam}.new`, '<PAMDataset/>');
      await rename(`${pam}.new`, pam);
      await symlink(secret, `${pam}.new`);
      await rename(`${pam}.new`, pam);
    }
  };
  const exchanged = exchange();
  try {
    for (let i = 0; i < 300; i++)
      assert.equal(await readPam(path, []).then((read) => read?.nodata.size ?? 0), 0);
  } finally {
    running = false;
    await exchanged;
  }
});

const bandWith = (content: string) =>
  `<PAMDataset><PAMRasterBand band="1">${content}</PAMRasterBand></PAMDataset>`;

/** Scale, offset and description of the first band as GDAL reads them. */
function tagsOfGdal(path: string) {
  const [first] = JSON.parse(execFileSync('gdalinfo', ['-json', path], { encoding: 'utf8' })).bands;
  return { scale: first.scale ?? 1, offset: first.offset ?? 0, description: first.description ?? '' };
}

async function assertTagsOfGdal(path: string, name: string, warning = /^$/) {
  const { bandTags, warnings } = await openRaster(path);
  const { scale = 1, offset = 0, description = '' } = bandTags[0]!;
  assert.deepEqual({ scale, offset, description }, tagsOfGdal(path), name);
  assert.match(warnings!.join(), warning, name);
}

test('scale, offset and description are those of GDAL', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  const own = { bandTags: [{ scale: 2, offset: 3 }] };
  const other = /scale and offset of band 1 in .* are not used: the file has its own/;
  for (const [i, [name, content, options, warning]] of (
    [
      ['all', '<Offset>5</Offset><Scale>0.01</Scale><Description>red &amp; blue</Description>'],
      ['scale alone', '<Scale>0.01</Scale>'],
      ['offset alone', '<Offset>-5e2</Offset>'],
      ['exponent and blanks', '<Scale> 1E-2\n</Scale>'],
      ['lower case', '<scale>0.01</scale>'],
      ['not in metadata', '<Metadata><MDI key="scale">0.01</MDI></Metadata>'],
      ['own scale', '<Offset>5</Offset><Scale>0.01</Scale>', own, other],
      ['own scale, other offset', '<Offset>5</Offset>', own, other],
      ['the same', '<Offset>3</Offset><Scale>2</Scale>', own],
    ] as [string, string, typeof own | undefined, RegExp?][]
  ).entries()) {
    const path = await writeRaster(join(folder, `${i}.tif`), options);
    await writeFile(`${path}.aux.xml`, bandWith(content));
    await assertTagsOfGdal(path, name, warning);
  }
  const jpeg2000 = await translated(t, 'a.jp2', [...JPEG_2000, '-a_scale', '0.01', '-a_offset', '7']);
  await assertTagsOfGdal(jpeg2000, 'JPEG 2000');
  assert.equal((await openRaster(jpeg2000)).bandTags[0]!.scale, 0.01);
});

test('a scale in an .aux.xml that is not a number is refused', async (t) => {
  for (const content of [
    '<Scale>0,01</Scale>',
    '<Offset>abc</Offset>',
    '<Scale>nan</Scale>',
    '<Scale/>',
    '<Scale>0.01 m</Scale>',
  ])
    await assert.rejects(
      withPam(t, bandWith(content)),
      { code: 'TW_RASTER_CORRUPT', message: /(scale|offset) of band 1 is/ },
      content,
    );
});

test('a scale for a layer of a file is named, because it is not read', async (t) => {
  const path = join(await tempFolder(t), 'a.nc');
  await copyFile(join(fixtures, 'hdf5/albers.nc'), path);
  assert.equal((await openRaster(path, '/cover')).warnings, undefined);
  await writeFile(
    `${path}.aux.xml`,
    `<PAMDataset><Subdataset name="cover">${bandWith('<Scale>2</Scale>')}</Subdataset></PAMDataset>`,
  );
  assert.match(
    (await openRaster(path, '/cover')).warnings!.join(),
    /scale and offset in .*a\.nc\.aux\.xml are not read/,
  );
});

const ITEMS_START = '<GDALMetadata>\n';

/** A GeoTIFF with this text in the tag of GDAL's metadata. */
async function withGdalMetadata(path: string, xml: string): Promise<string> {
  await writeRaster(path, { metadata: { PLACE: 'x'.repeat(1000) } });
  const bytes = await readFile(path);
  const at = bytes.indexOf(ITEMS_START);
  const length = bytes.indexOf('</GDALMetadata>', at) + '</GDALMetadata>'.length - at;
  bytes.write(xml.padEnd(length), at);
  await writeFile(path, bytes);
  return path;
}

const item = (text: string, attributes = 'sample="0" role="scale"') =>
  `${ITEMS_START}<Item name="SCALE" ${attributes}>${text}</Item></GDALMetadata>`;

test('scale and offset of a GeoTIFF are read in every form that GDAL reads', needsGdal, async (t) => {
  const folder = await tempFolder(t);
  for (const [i, xml] of [
    ...[
      '0.01',
      '0,01',
      '1E-2',
      '1e-02',
      '+0.01',
      '-0.01',
      '.01',
      '1.',
      ' 0.01 ',
      '\t0,01\n',
      '5',
      '0&#46;01',
      '0&amp;#46;01',
    ].map((text) => item(text)),
    '<![CDATA[0.01]]>'.replace(/^.*$/, (text) => item(text)),
    ...[
      'sample="0" role="SCALE"',
      'role="Scale" sample="0"',
      "sample='0' role='scale'",
      'sample=" 0" role="scale"',
      'sample="00" role = "scale"',
      'Sample="0" ROLE="scale"',
      'sample="0" role="Offset"',
      'sample="0" role="offset" domain="x"',
      'sample="0"',
      'sample="7" role="scale"',
    ].map((attributes) => item('0,25', attributes)),
    item('0.01').replaceAll('Item', 'ITEM'),
    item('0.01').replace('<Item', '<!-- <Item> --><Item'),
    `<?xml version="1.0"?>\n${item('0.01')}`,
    ` \n<?xml version="1.0" encoding="ISO-8859-1"?>\n${item('0.01')}`,
    item('0.01').replace('<Item', '<Item name="a">1 \u0002 2</Item><Item'),
    item('0.01').replace('<Item', '<Item name="a">1 & 2 &nbsp;</Item><Item'),
    item('0.01').replace(
      '</GDALMetadata>',
      '<Item name="SCALE" sample="0" role="scale">0.02</Item></GDALMetadata>',
    ),
    item('red', 'sample="0" role="Description"'),
  ].entries())
    await assertTagsOfGdal(await withGdalMetadata(join(folder, `${i}.tif`), xml), xml);
});

test('a stated scale or offset that cannot be read is refused, and other broken metadata are named', async (t) => {
  const path = join(await tempFolder(t), 'a.tif');
  for (const xml of [
    ...['abc', '', 'nan', 'inf', '1D-2', '0x10', '0.01 m', '1,000.5', '1.000,5', '0,0,1'].map((text) =>
      item(text),
    ),
    ...['role="scale"', 'sample="x" role="scale"', 'sample="0" role=" scale "', 'sample=0 role=offset'].map(
      (attributes) => item('0.01', attributes),
    ),
    item('0.01').replace('</Item>', ''),
    `<Metadata>${item('0.01')}</Metadata>`,
  ])
    await assert.rejects(
      openRaster(await withGdalMetadata(path, xml)),
      { code: 'TW_RASTER_CORRUPT', message: /scale/ },
      xml,
    );
  const { warnings, bandTags } = await openRaster(
    await withGdalMetadata(path, '<GDALMetadata><Item name="A">'),
  );
  assert.match(warnings!.join(), /GDAL metadata cannot be read: .*unclosed/);
  assert.deepEqual(bandTags, [{}]);
});
