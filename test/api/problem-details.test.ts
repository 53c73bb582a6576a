/** Every error is a problem document with a code, even before a request is routed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNode } from '../../src/node.js';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';

test('malformed requests are answered with problem documents', async (t) => {
  const node = await openNode({ data: join(await tempFolder(t), 'data'), memory: 256e6, cores: 1 });
  atEnd(t, () => node.close());
  const { port } = new URL(await node.listen('127.0.0.1', 0));
  const speak = async (text: string) => {
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
    let answer = '';
    socket.on('data', (more) => {
      answer += more;
    });
    socket.write(text);
    await once(socket, 'close');
    return answer;
  };
  const HOST = 'host: localhost\r\nconnection: close\r\n';
  const json = (length: number) =>
    `${HOST}content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  // A colormap with as many entries as there may be.
  const colours = Array.from({ length: 1024 }, (_, i) => `"${i}":"#fff"`);
  const address = encodeURIComponent(`{${colours}}`);
  const cases: [request: string, status: number, code: string, detail?: RegExp][] = [
    [`GET /collections/%ff HTTP/1.1\r\n${HOST}\r\n`, 400, 'TW_API_BAD_REQUEST'],
    [`GET /collections/${'x'.repeat(600)} HTTP/1.1\r\n${HOST}\r\n`, 414, 'TW_API_BAD_REQUEST'],
    [`GET /preview/none.png?colormap=${address} HTTP/1.1\r\n${HOST}\r\n`, 404, 'TW_API_NOT_FOUND'],
    [`PATCH /collections HTTP/1.1\r\n${HOST}\r\n`, 405, 'TW_API_METHOD'],
    [`PROPFIND / HTTP/1.1\r\n${HOST}\r\n`, 405, 'TW_API_METHOD'],
    [`PATCH /nowhere HTTP/1.1\r\n${HOST}\r\n`, 404, 'TW_API_NOT_FOUND'],
    ['GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'TW_API_NO_HOST'],
    [`BREW / HTTP/1.1\r\n${HOST}\r\n`, 400, 'TW_API_BAD_REQUEST'],
    ['what is this\r\n\r\n', 400, 'TW_API_BAD_REQUEST'],
    [`GET / HTTP/1.1\r\n${HOST}x: ${'y'.repeat(70_000)}\r\n\r\n`, 431, 'TW_API_BAD_REQUEST'],
    [`POST /search HTTP/1.1\r\n${json(1)}{`, 400, 'TW_API_BAD_REQUEST'],
    [`POST /search HTTP/1.1\r\n${json(2_000_000)}{`, 413, 'TW_API_TOO_LARGE'],
    [`POST /processes/store-model/execution HTTP/1.1\r\n${json(9_000_000)}{`, 413, 'TW_API_TOO_LARGE'],
    [
      `POST /search HTTP/1.1\r\n${HOST}content-type: a/b\r\ncontent-length: 1\r\n\r\nx`,
      415,
      'TW_API_BAD_REQUEST',
      /the Content-Type "a\/b" is not accepted: send application\/json$/,
    ],
    [
      `POST /ingest HTTP/1.1\r\n${HOST}content-length: 1\r\n\r\nx`,
      415,
      'TW_API_BAD_REQUEST',
      /it has no Content-Type: send application\/json or application\/octet-stream$/,
    ],
    [
      `POST /ingest?filename=a&nodata=abc HTTP/1.1\r\n${HOST}content-type: application/octet-stream\r\ncontent-length: 1\r\n\r\nx`,
      400,
      'TW_API_BAD_REQUEST',
      /: querystring\/nodata must be number or be nan$/,
    ],
    [`POST /ingest HTTP/1.1\r\n${HOST}content-length: 0\r\n\r\n`, 400, 'TW_API_BAD_REQUEST'],
    [`GET /health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n`, 403, 'TW_API_FOREIGN_HOST'],
  ];
  for (const [request, status, code, detail = /./] of cases) {
    const answer = await speak(request);
    const what = `${request.slice(0, 60)} -> ${answer}`;
    assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), what);
    assert.match(answer, /\r\ncontent-type: application\/problem\+json/i, what);
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
    assert.deepEqual([problem.code, problem.status], [code, status], what);
    assert.match(problem.detail, detail);
  }
});

test('a request to a stopping server gets 503', async (t) => {
  const node = await openNode({ data: join(await tempFolder(t), 'data'), memory: 256e6, cores: 1 });
  const { port } = new URL(await node.listen('127.0.0.1', 0));
  const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
  const head =
    'POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n';
  let answer = '';
  socket.on('data', (more) => {
    answer += more;
  });
  // The connection is busy with a first request, so that stopping waits for it.
  socket.write(`${head}\r\n{`);
  while (!(await connections(node.server.server))) await new Promise((resolve) => setImmediate(resolve));
  const closed = node.close();
  socket.write(`}${head}\r\n{}`);
  await Promise.all([closed, once(socket, 'close')]);
  for (const part of answer.split(/(?=HTTP\/1\.1 )/))
    assert.match(part, /^HTTP\/1\.1 (200|503 [\s\S]*application\/problem\+json[\s\S]*TW_API_STOPPING)/);
});

function connections(server: { getConnections(done: (error: Error | null, count: number) => void): void }) {
  return new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}
