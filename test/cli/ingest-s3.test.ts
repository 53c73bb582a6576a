/** The command reads objects of S3 with the variables of the AWS tools. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { tilewright } from '../support/command.js';
import { remoteCatalog } from '../support/remote-catalog.js';
import { CREDENTIALS, S3Server, s3SkipReason, setEnvironment } from '../support/s3.js';

test('an Item of a file on the disk, and a single file, are read from S3', {
  skip: s3SkipReason,
}, async (t) => {
  const server = await S3Server.start(t);
  const { endpoint } = server;
  setEnvironment(t, { ...CREDENTIALS, AWS_ENDPOINT_URL_S3: endpoint, AWS_REGION: 'us-east-1' });
  const { folder, items } = await remoteCatalog(t);
  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  t.after(() => s3.destroy());
  const assets = items[0]!.assets as Record<string, { href: string }>;
  for (const name of ['red', 'scl']) {
    const Body = await readFile(join(folder, 'a', `${name}.tif`));
    await s3.send(new PutObjectCommand({ Bucket: 'tiles', Key: `eo/${name}.tif`, Body }));
    assets[name]!.href = `s3://tiles/eo/${name}.tif`;
  }
  const item = join(folder, 'item.json');
  await writeFile(item, JSON.stringify(items[0]));
  const run = (...words: string[]) =>
    tilewright(
      ...['ingest', ...words, '--data', join(folder, 'data'), '--allow-host', `127.0.0.1:${server.port}`],
      ...['--bbox', '15.03,47.75,15.12,47.8', '--precision', '5'],
    );
  const one = await run('--from-stac', item, '--bands', 'red,scl');
  assert.equal(one.code, 0, one.stderr);
  assert.match(one.stdout, /^sentinel-2-l2a {2}a {2}6 tiles\n/);
  const file = ['--collection', 'one', '--datetime', '2024-06-01'];
  const two = await run('s3://tiles/eo/red.tif', ...file);
  assert.equal(two.code, 0, two.stderr);
  const missing = await run('s3://tiles/eo/missing.tif', ...file);
  assert.match(missing.stderr, /^error: s3:\/\/tiles\/eo\/missing.tif answered 404 \(NoSuchKey\)/m);
  setEnvironment(t, { AWS_SECRET_ACCESS_KEY: 'wrong' });
  const refused = await run('s3://tiles/eo/scl.tif', ...file);
  assert.match(
    refused.stderr,
    /answered 403 \(SignatureDoesNotMatch\); the request was signed: check the keys/,
  );
});
