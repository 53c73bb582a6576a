/** Sentinel-2 metadata that is broken, hostile or merely odd. */
import assert from 'node:assert/strict';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { writeSafe } from '../../data-samples/index.js';
import { describeScenes } from '../../src/ingest/formats/registry.js';
import { tempFolder } from '../support/temp.js';
import { describeOne, SMALL } from './sentinel2-products.js';

test('names in the metadata never lead out of the product', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L1C', ...SMALL });
  const xml = await readFile(product.metadataPath, 'utf8');
  const outside = xml
    .replace(/<IMAGE_FILE>[^<]*_B02</, '<IMAGE_FILE>../../../../etc/passwd<')
    .replace(/<IMAGE_FILE>[^<]*_B03</, '<IMAGE_FILE>/etc/T33UVP_20230707T100621_B03<');
  await writeFile(product.metadataPath, outside);
  const scene = await describeOne(product.path);
  assert.match(scene.warnings.join('\n'), /outside of the product, which are not read: \.\.\/\.\./);
  for (const band of scene.groups.flatMap((group) => group.bands))
    assert.ok(band.header.path.startsWith(product.path));
});

test('hostile and damaged metadata is refused by name', async (t) => {
  const product = await writeSafe(await tempFolder(t), { level: 'L2A', ...SMALL });
  const good = await readFile(product.metadataPath, 'utf8');
  const [head, body] = [good.slice(0, good.indexOf('\n')), good.slice(good.indexOf('\n') + 1)];
  const bomb = `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">${'bcdefghi'
    .split('')
    .map((name, i) => `<!ENTITY ${name} "${`&${'abcdefgh'[i]};`.repeat(10)}">`)
    .join('')}]>`;
  const cases: Record<string, string | Buffer> = {
    'an entity bomb': `${head}${bomb}${body.replace('Level-2A<', '&i;<')}`,
    'an external entity': `${head}<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>${body}`,
    'an entity that nobody defines': good.replace('Sentinel-2A', '&bomb;'),
    truncated: good.slice(0, 3000),
    empty: '',
    'no XML': '{"not": "xml"}',
    deep: `${'<a>'.repeat(100_000)}${'</a>'.repeat(100_000)}`,
    'many elements': `<a>${'<b/>'.repeat(500_000)}</a>`,
    'another root': good.replaceAll('Level-2A_User_Product', 'Level-1B_User_Product'),
    'no quantification': good.replace(/<BOA_QUANTIFICATION_VALUE.*/, ''),
    'zero quantification': good.replace('>10000<', '>0<'),
    'an offset of an unknown band': good.replace('band_id="12"', 'band_id="99"'),
    'an offset that is no number': good.replace('band_id="3">-1000', 'band_id="3">minus'),
    'an offset that is missing for a band': good.replace(/<BOA_ADD_OFFSET band_id="3">.*/, ''),
    'an orbit that is none': good.replace('ORBIT_NUMBER>22<', 'ORBIT_NUMBER>-1<'),
    'a time that is none': good.replace(/(SENSING_START>)[^<]*/, '$1yesterday'),
    'UTF-16 without its mark': Buffer.from(good, 'utf16le'),
  };
  for (const [name, content] of Object.entries(cases)) {
    await writeFile(product.metadataPath, content);
    await assert.rejects(describeScenes(product.path, {}), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'TW_INGEST_BAD_METADATA', `${name}: ${error.stack}`);
      assert.ok(error.message.includes(product.metadataPath) && error.message.length < 1000, name);
      return true;
    });
  }
  await truncate(product.metadataPath, 100e6);
  await assert.rejects(describeScenes(product.path, {}), {
    code: 'TW_INGEST_BAD_METADATA',
    message: /larger than/,
  });

  const harmless = {
    'UTF-16 with its mark': Buffer.from(`\ufeff${good}`, 'utf16le'),
    'Latin-1 in a comment': Buffer.from(good.replace('?>', '?><!-- W/m\u00b2/\u00b5m -->'), 'latin1'),
    'NUL at the end': `${good}\0\0\0`,
  };
  for (const [name, content] of Object.entries(harmless)) {
    await writeFile(product.metadataPath, content);
    assert.equal((await describeOne(product.path)).id, product.sceneId, name);
  }
});
