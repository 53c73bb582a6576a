import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toArray } from '../../../src/async/index.js';
import { decodeTiles, Storage, schemaOf, TileBatch } from '../../../src/storage/index.js';
import { atEnd } from '../../support/at-end.js';
import { tempFolder, writeDerived, writeScene } from '../sample-scenes.js';

test('sent records are unchanged, and have their schemas', async (t) => {
  const storage = await Storage.open(await tempFolder(t), { reserve: 0 });
  atEnd(t, () => storage.close());
  await writeScene(storage, 'scene-0', 1);
  await writeDerived(storage, 1);
  const stored = await toArray(storage.catalogue.tiles.values());
  // One that was not read from a catalogue, one with other bands, and one without files.
  const [first] = structuredClone(stored);
  const records = [
    ...stored,
    first!,
    { ...first!, groups: first!.groups.slice(1) },
    { ...first!, groups: [] },
  ];
  const list = new TileBatch(records);
  assert.equal(decodeTiles(list), records);
  const text = JSON.stringify(list);
  assert.equal(JSON.parse(text).layouts.length, 4);
  const [once, twice] = [decodeTiles(JSON.parse(text)), decodeTiles(JSON.parse(text))];
  assert.deepEqual(once, records);
  assert.ok(schemaOf(once[0]!));
  assert.equal(schemaOf(once[0]!), schemaOf(twice[0]!));
  assert.deepEqual(decodeTiles(JSON.parse(JSON.stringify(new TileBatch([])))), []);
});
