/** Headers of remote TIFF files that claim more than they should. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openRemoteCopy, WholeFiles } from '../../src/ingest/remote-copy.js';
import { HttpClient } from '../../src/remote/index.js';
import { rangeServer } from '../support/range-server.js';
import { tempFolder } from '../support/temp.js';

const START_BYTES = 32_768;
const BYTE = 1;
const BITS_PER_SAMPLE = 258;

/** A TIFF header with one field of `count` bytes at an offset. */
function header(count: number, offset: number): Buffer {
  const bytes = Buffer.alloc(START_BYTES);
  bytes.write('49492a0008000000', 'hex');
  bytes.writeUInt16LE(1, 8);
  bytes.writeUInt16LE(BITS_PER_SAMPLE, 10);
  bytes.writeUInt16LE(BYTE, 12);
  bytes.writeUInt32LE(count, 14);
  bytes.writeUInt32LE(offset, 18);
  return bytes;
}

/** Opens a file with this header, whose host claims the size. Returns the error, and the memory in bytes that the attempt took. */
async function refusal(t: TestContext, start: Buffer, size: number) {
  const folder = await tempFolder(t);
  const server = await rangeServer(t, folder);
  server.fault = (_, response) => {
    const headers = { 'content-range': `bytes 0-${START_BYTES - 1}/${size}`, etag: '"1"' };
    response.writeHead(206, headers).end(start);
    return true;
  };
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  const whole = await WholeFiles.open(join(folder, 'scene'));
  const context = { client, whole, checkSpace: async () => undefined };
  const before = process.memoryUsage().arrayBuffers;
  const error = await openRemoteCopy(context, `${server.url}/a.tif`, join(folder, 'scene', 'a.tif')).then(
    () => assert.fail('it was opened'),
    (reason) => reason as Error & { code: string },
  );
  const memory = process.memoryUsage().arrayBuffers - before;
  return { code: error.code, memory, requests: server.requests.length };
}

test('a header with a value of 120 MB is refused before memory for it is allocated', async (t) => {
  const { code, memory, requests } = await refusal(t, header(120e6, START_BYTES), 1e9);
  assert.deepEqual([code, requests], ['TW_REMOTE_TOO_LARGE', 1]);
  assert.ok(memory < 20e6, `${memory} bytes`);
});

test('a header with 2^31 numbers, or beyond the end of the file, is refused', async (t) => {
  for (const [count, size, expected] of [
    [2 ** 31, 2 ** 40, 'TW_RASTER_CORRUPT'],
    [2 ** 20, START_BYTES + 1000, 'TW_RASTER_TRUNCATED'],
  ] as const) {
    const { code, memory, requests } = await refusal(t, header(count, START_BYTES), size);
    assert.deepEqual([code, requests], [expected, 1]);
    assert.ok(memory < 20e6, `${memory} bytes`);
  }
});
