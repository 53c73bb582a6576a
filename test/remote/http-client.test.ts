/** Requests, retries and parts of files, against a real server. */
import assert from 'node:assert/strict';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseRetryAfter, retryDelayMs } from '../../src/remote/client.js';
import { downloadFile, HttpClient, mergeRanges, RemoteFile } from '../../src/remote/index.js';
import { randomStream } from '../../src/utils/random.js';
import { rangeServer } from '../support/range-server.js';
import { tempFolder } from '../support/temp.js';

const SIZE = 300_000;

async function served(t: TestContext) {
  const folder = await tempFolder(t);
  const random = randomStream(7);
  const bytes = Buffer.from(Array.from({ length: SIZE }, () => Math.floor(256 * random.next())));
  const path = join(folder, 'scene.bin');
  await writeFile(path, bytes);
  const server = await rangeServer(t, folder);
  const client = new HttpClient({ hosts: [server.host], anyPublic: false });
  t.after(() => client.close());
  return { server, client, bytes, path, url: `${server.url}/scene.bin` };
}

async function readAll(file: RemoteFile, ranges: { offset: number; bytes: number }[]) {
  const parts: { offset: number; data: Buffer }[] = [];
  await file.readRanges(mergeRanges(ranges), async (data, offset) => {
    parts.push({ offset, data });
  });
  return parts.sort((a, b) => a.offset - b.offset);
}

const isRejectedWith = (code: string) => (error: { code: string }) => error.code === code;

test('near ranges are read by one request, and all bytes are those of the file', async (t) => {
  const { server, client, bytes, url } = await served(t);
  const file = await RemoteFile.open(client, url);
  assert.equal(file.size, SIZE);
  assert.deepEqual(file.start, bytes.subarray(0, file.start.length));
  const parts = await readAll(file, [
    { offset: 250_000, bytes: 1000 },
    { offset: 40_000, bytes: 2000 },
    { offset: 50_000, bytes: 3000 },
  ]);
  assert.deepEqual(
    parts.map(({ offset, data }) => [offset, data.length]),
    [
      [40_000, 13_000],
      [250_000, 1000],
    ],
  );
  for (const { offset, data } of parts) assert.deepEqual(data, bytes.subarray(offset, offset + data.length));
  assert.deepEqual(
    server.requests.map(({ method, status }) => [method, status]),
    [
      ['GET', 206],
      ['GET', 206],
      ['GET', 206],
    ],
  );
});

test('merged ranges cover all ranges, do not overlap, and keep the limits', () => {
  const random = randomStream(11);
  for (let round = 0; round < 200; round++) {
    const count = 1 + Math.floor(20 * random.next());
    const ranges = Array.from({ length: count }, () => ({
      offset: Math.floor(2e6 * random.next()),
      bytes: Math.floor(60_000 * random.next()),
    }));
    const merged = mergeRanges(ranges);
    for (const { offset, bytes } of ranges)
      assert.ok(
        bytes === 0 || merged.some((one) => one.offset <= offset && offset + bytes <= one.offset + one.bytes),
      );
    for (const [i, one] of merged.slice(1).entries())
      assert.ok(one.offset >= merged[i]!.offset + merged[i]!.bytes);
  }
});

test('transient errors are repeated, and Retry-After is kept', async (t) => {
  const { server, client, bytes, url } = await served(t);
  const faults: ((response: import('node:http').ServerResponse) => void)[] = [
    (response) => response.writeHead(503).end(),
    (response) => response.writeHead(429, { 'retry-after': '1' }).end(),
    (response) => response.destroy(),
    (response) => {
      response.writeHead(206, { 'content-range': `bytes 0-32767/${SIZE}`, 'content-length': 32_768 });
      response.write(bytes.subarray(0, 100), () => response.destroy());
    },
  ];
  const times: number[] = [];
  server.fault = (_, response) => {
    times.push(performance.now());
    const fault = faults.shift();
    fault?.(response);
    return fault !== undefined;
  };
  const file = await RemoteFile.open(client, url);
  assert.deepEqual(file.start, bytes.subarray(0, file.start.length));
  assert.equal(server.requests.length, 5);
  assert.ok(times[2]! - times[1]! >= 990, 'the pause that the server has asked for');
});

test('a host that always fails is given up, and 404 is not repeated', async (t) => {
  const { server, client, url } = await served(t);
  await assert.rejects(RemoteFile.open(client, `${url}.missing`), isRejectedWith('TW_REMOTE_REFUSED'));
  assert.equal(server.requests.length, 1);
  server.fault = (_, response) => {
    response.writeHead(503, { 'retry-after': '0', 'content-type': 'text/plain' }).end('down for maintenance');
    return true;
  };
  await assert.rejects(RemoteFile.open(client, url), (error: Error) => {
    assert.match(error.message, /503 \(down for maintenance\)/);
    return true;
  });
  assert.equal(server.requests.length, 7);
});

test('a file that is replaced while it is read is refused', async (t) => {
  const { server, client, path, url } = await served(t);
  const file = await RemoteFile.open(client, url);
  await utimes(path, 1, 1);
  await assert.rejects(readAll(file, [{ offset: 100_000, bytes: 10 }]), isRejectedWith('TW_REMOTE_CHANGED'));
  // A host that ignores If-Match is noticed by the ETag of its answer.
  server.fault = (request) => {
    delete request.headers['if-match'];
    return false;
  };
  await assert.rejects(readAll(file, [{ offset: 100_000, bytes: 10 }]), isRejectedWith('TW_REMOTE_CHANGED'));
});

test('a part whose connection breaks is read again from its start', async (t) => {
  const { server, client, bytes, url } = await served(t);
  const file = await RemoteFile.open(client, url);
  server.requests.length = 0;
  let cuts = 0;
  server.fault = (_, response, { range }) => {
    if (cuts === 2) return false;
    const [from, to] = /(\d+)-(\d+)/.exec(range!)!.slice(1).map(Number) as [number, number];
    response.writeHead(206, {
      ...{ 'content-range': `bytes ${from}-${to}/${SIZE}`, 'content-length': to - from + 1 },
      etag: file.version,
    });
    // The second connection breaks after its last byte, at the end of the part.
    const end = cuts++ === 0 ? from + 50_000 : to;
    // A proxy adds a message to the answer that breaks.
    const sent = Buffer.concat([bytes.subarray(from, end - 100), Buffer.alloc(100)]);
    response.write(sent, () => response.destroy());
    return true;
  };
  const parts = await readAll(file, [{ offset: 100_000, bytes: 150_000 }]);
  const read = Buffer.alloc(150_000);
  for (const { offset, data } of parts) data.copy(read, offset - 100_000);
  assert.ok(read.equals(bytes.subarray(100_000, 250_000)));
  assert.deepEqual(
    server.requests.map(({ range }) => range),
    Array(3).fill('bytes=100000-249999'),
  );
});

/** Downloads a file into memory. */
async function download(client: HttpClient, url: string) {
  const starts: (number | undefined)[] = [];
  let data = Buffer.alloc(0);
  const size = await downloadFile(
    client,
    url,
    {
      start: async (file) => {
        starts.push(file.size);
        return true;
      },
      write: async (chunk, position) => {
        data = Buffer.concat([data.subarray(0, position), chunk]);
      },
    },
    { maxBytes: 1e6 },
  );
  return { starts, data, size };
}

test('a broken download continues if the host can, and otherwise starts again', async (t) => {
  const { server, client, bytes, url } = await served(t);
  for (const [name, etag, cut, second] of [
    ['strong ETag', '"1"', 200_000, 206],
    ['all bytes, but no end', '"1"', SIZE, 206],
    ['the host ignores ranges', '"1"', 200_000, 200],
    ['weak ETag', 'W/"1"', 200_000, 200],
  ] as const) {
    const ranges: (string | undefined)[] = [];
    server.fault = (_, response, { range, headers }) => {
      ranges.push(range);
      if (ranges.length === 1) {
        // The length is not known, so an end of the connection is an error even after the last byte.
        response.writeHead(200, { etag });
        response.write(bytes.subarray(0, cut), () => response.destroy());
        return true;
      }
      const from = second === 206 ? Number(/\d+/.exec(range!)![0]) : 0;
      if (second === 206) {
        assert.equal(headers['if-range'], etag);
        response.setHeader('content-range', `bytes ${from}-${SIZE - 1}/${SIZE}`);
      }
      response.writeHead(second, { etag, 'content-length': SIZE - from }).end(bytes.subarray(from));
      return true;
    };
    const { starts, data, size } = await download(client, url);
    assert.deepEqual([size, data.equals(bytes)], [SIZE, true], name);
    assert.deepEqual(starts, second === 206 ? [undefined] : [undefined, SIZE], name);
    assert.equal(ranges[0], undefined);
    assert.equal(ranges[1] === undefined, etag.startsWith('W'), name);
  }
});

test('a download that breaks after its first byte starts again, and one that ends too early is refused', async (t) => {
  const { server, client, bytes, url } = await served(t);
  const ranges: (string | undefined)[] = [];
  let sent = 1;
  server.fault = async (_, response, { range }) => {
    ranges.push(range);
    const from = Number(/\d+/.exec(range ?? '')?.[0] ?? 0);
    if (range) response.setHeader('content-range', `bytes ${from}-${SIZE - 1}/${SIZE}`);
    response.writeHead(range ? 206 : 200, { etag: '"1"' });
    const isFirst = ranges.length === 1;
    if (!isFirst) response.end(bytes.subarray(from, range ? SIZE - 10 : SIZE));
    // The client must get the bytes before the connection breaks.
    else response.write(bytes.subarray(0, sent), () => setTimeout(() => response.destroy(), 100));
    return true;
  };
  assert.equal((await download(client, url)).size, SIZE);
  assert.deepEqual(ranges, [undefined, undefined]);
  ranges.length = 0;
  sent = 100_000;
  await assert.rejects(download(client, url), isRejectedWith('TW_REMOTE_BAD_RANGE'));
  assert.deepEqual(ranges, [undefined, 'bytes=34464-']);
});

test('a download of which another version follows is refused', async (t) => {
  const { server, client, bytes, url } = await served(t);
  let requests = 0;
  server.fault = (_, response, { range }) => {
    if (requests++ === 0) {
      response.writeHead(200, { etag: '"1"', 'content-length': SIZE });
      response.write(bytes.subarray(0, 100_000), () => response.destroy());
    } else {
      const from = Number(/\d+/.exec(range!)![0]);
      response.setHeader('content-range', `bytes ${from}-${SIZE - 1}/${SIZE}`);
      response.writeHead(206, { etag: '"2"' }).end(bytes.subarray(from));
    }
    return true;
  };
  await assert.rejects(download(client, url), isRejectedWith('TW_REMOTE_CHANGED'));
});

test('answers with other bytes than requested are refused', async (t) => {
  const { server, client, bytes, url } = await served(t);
  const file = await RemoteFile.open(client, url);
  const etag = file.version!;
  const wrong: [string, Record<string, string>, Buffer][] = [
    ['another range', { 'content-range': `bytes 0-9/${SIZE}` }, bytes.subarray(0, 10)],
    ['too few bytes', { 'content-range': `bytes 100000-100004/${SIZE}` }, bytes.subarray(0, 5)],
    ['no range', {}, bytes.subarray(0, 10)],
    [
      'gzip',
      { 'content-range': `bytes 100000-100009/${SIZE}`, 'content-encoding': 'gzip' },
      bytes.subarray(0, 10),
    ],
  ];
  for (const [name, headers, body] of wrong) {
    server.fault = (_, response) => {
      response.writeHead(206, { etag, ...headers }).end(body);
      return true;
    };
    await assert.rejects(
      readAll(file, [{ offset: 100_000, bytes: 10 }]),
      isRejectedWith('TW_REMOTE_BAD_RANGE'),
      name,
    );
  }
});

test('a host without ranges is reported', async (t) => {
  const { server, client, url } = await served(t);
  server.fault = (request) => {
    delete request.headers.range;
    return false;
  };
  await assert.rejects(RemoteFile.open(client, url), isRejectedWith('TW_REMOTE_NO_RANGES'));
});

test('redirects are checked like the first address', async (t) => {
  const { server, client, url } = await served(t);
  const other = await rangeServer(t, await tempFolder(t));
  const to = (location: string) => {
    server.fault = (request, response) => {
      if (request.url !== '/scene.bin') return false;
      response.writeHead(302, { location }).end();
      return true;
    };
  };
  to(`${other.url}/secret`);
  await assert.rejects(RemoteFile.open(client, url), isRejectedWith('TW_REMOTE_HOST_NOT_ALLOWED'));
  assert.equal(other.requests.length, 0);
  to('/scene.bin');
  await assert.rejects(RemoteFile.open(client, url), /redirected too often/);
  to('/./x/../other.bin');
  await assert.rejects(RemoteFile.open(client, url), /404/);
});

test('at most eight requests run at the same time', async (t) => {
  const { server, client, url } = await served(t);
  const file = await RemoteFile.open(client, url);
  let running = 0;
  let most = 0;
  server.fault = async (_, response) => {
    most = Math.max(most, ++running);
    response.on('finish', () => running--);
    await new Promise((resolve) => setTimeout(resolve, 20));
    return false;
  };
  await Promise.all(Array.from({ length: 40 }, (_, i) => readAll(file, [{ offset: 1000 * i, bytes: 10 }])));
  assert.equal(most, 8);
});

test('an aborted signal ends a request and its retries', async (t) => {
  const { server, client, url } = await served(t);
  server.fault = (_, response) => {
    response.writeHead(503, { 'retry-after': '60' }).end();
    return true;
  };
  const reason = new Error('stopped');
  await assert.rejects(
    RemoteFile.open(client, url, AbortSignal.any([abortSoon(reason)])),
    (error) =>
      error === reason || (error as Error).cause === reason || (error as Error).name === 'AbortError',
  );
});

function abortSoon(reason: Error): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 100);
  return controller.signal;
}

test('delays grow to a limit, and Retry-After is seconds or a date', () => {
  assert.deepEqual(
    [0, 1, 3, 20].map((attempt) => retryDelayMs(attempt, 1)),
    [200, 400, 1600, 30_000],
  );
  const now = Date.parse('2026-01-01T00:00:00Z');
  assert.equal(parseRetryAfter('7', now), 7000);
  assert.equal(parseRetryAfter('Thu, 01 Jan 2026 00:00:05 GMT', now), 5000);
  assert.equal(parseRetryAfter('soon', now), undefined);
});
