/**
 * Runs the commands of docs/tutorials/xarray.md and compares their output with the page. Skipped unless python3 has pystac-client and
 * odc-stac: `PATH=venv/bin:$PATH npm test -- conformance/xarray` uses a virtual environment.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSentinelLikeSeries } from '../../data-samples/index.js';
import { atEnd } from '../support/at-end.js';
import { finished, start, tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';
import { outputOf, pythonWith } from './python.js';

const PAGE = new URL('../../../docs/tutorials/xarray.md', import.meta.url);
const DOCUMENTED_SERVER = 'http://127.0.0.1:8080';

/** The code blocks of a language, without their fences; those without one have the language "". */
const blocksOf = (text: string, language: string) =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = '']) => code);

test('the commands of the xarray tutorial print what the page shows', async (t) => {
  const python = await pythonWith('odc.stac');
  if (!python || python !== (await pythonWith('pystac_client')))
    return t.skip('pystac-client and odc-stac are not installed');
  const page = await readFile(PAGE, 'utf8');
  const folder = await tempFolder(t);
  const data = join(folder, 'data');
  for (const { path } of await writeSentinelLikeSeries(join(folder, 'samples'))) {
    const [, year, month, day] = /(\d{4})(\d\d)(\d\d)\.tif$/.exec(path)!;
    const flags = ['--collection', 'fields', '--scale', '0.0001', '--mask-band', '5', '--data', data];
    const { code, stderr } = await tilewright(
      'ingest',
      path,
      '--datetime',
      `${year}-${month}-${day}T10:10:00Z`,
      ...flags,
    );
    assert.equal(code, 0, stderr);
  }
  const server = start(['serve', '--data', data, '--port', '0', '--format', 'json']);
  atEnd(t, async () => {
    const end = finished(server);
    server.kill('SIGTERM');
    await end;
  });
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, 'data')) as [string];
  const { url } = JSON.parse(first) as { url: string };
  const script = join(folder, 'tutorial.py');
  await writeFile(script, blocksOf(page, 'python').join('\n').replaceAll(DOCUMENTED_SERVER, url));
  const printed = await outputOf(python, [script], folder);
  assert.equal(printed, blocksOf(page, 'text').join(''));

  const [command = ''] = blocksOf(page, '');
  const [line = '', ...expected] = command.trimEnd().split('\n');
  const words = line.replace('$ npx tilewright ', '').split(' ');
  words[1] = join(folder, words[1]!);
  const { stdout } = await tilewright(...words, '--server', url);
  assert.equal(stdout.trimEnd(), expected.join('\n'));
});
