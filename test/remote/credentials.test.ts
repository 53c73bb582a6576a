/** Credentials of requests, against real servers: each is sent to its own host only, and renewed once. */
import assert from 'node:assert/strict';
import { chmod, copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { parseNetrc } from '../../src/remote/credential-rules.js';
import {
  type CredentialRules,
  openRemoteClient,
  RemoteFile,
  readCredentialRules,
} from '../../src/remote/index.js';
import { type RangeServer, rangeServer } from '../support/range-server.js';
import { CREDENTIALS, S3Server, s3SkipReason } from '../support/s3.js';
import { tempFolder } from '../support/temp.js';

const CODE = (code: string) => (error: { code: string }) => error.code === code;
const NONE: CredentialRules = { bearer: [], sas: [], s3: [], logins: new Map() };

async function archive(t: TestContext): Promise<RangeServer> {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'scene.tif'), 'the pixels');
  return rangeServer(t, folder);
}

async function clientOf(
  t: TestContext,
  rules: Partial<CredentialRules>,
  servers: { host: string }[],
  catalog?: string,
) {
  const policy = { hosts: servers.map(({ host }) => host), anyPublic: false };
  const { client } = await openRemoteClient(
    { policy, readRules: async () => ({ ...NONE, ...rules }) },
    catalog,
  );
  t.after(() => client.close());
  return client;
}

const GET = { maxBytes: 1000 };

test('a bearer token is sent to its host, and not where that host redirects to', async (t) => {
  const [own, other] = [await archive(t), await archive(t)];
  const client = await clientOf(t, { bearer: [{ hosts: [own.host], token: 'secret-1' }] }, [own, other]);
  own.fault = (_request, response) => {
    response.writeHead(307, { location: `${other.url}/scene.tif` }).end();
    return true;
  };
  const { body } = await client.request(`${own.url}/scene.tif`, GET);
  assert.equal(body.toString(), 'the pixels');
  assert.equal(own.requests[0]?.headers.authorization, 'Bearer secret-1');
  assert.equal(other.requests[0]?.headers.authorization, undefined);
});

test('a login of .netrc answers for its machine alone, and its session is used for later requests', async (t) => {
  const [data, login] = [await archive(t), await archive(t)];
  // A login belongs to a name, and the servers differ only by port, so one of them gets another name of this machine.
  const loginUrl = login.url.replace('127.0.0.1', 'localhost');
  const hosts = [data, login, { host: login.host.replace('127.0.0.1', 'localhost') }];
  const logins = new Map([['localhost', { login: 'ann', password: 'pass word' }]]);
  const client = await clientOf(t, { logins }, hosts);
  data.fault = ({ url = '', headers }, response) => {
    if (url.startsWith('/callback')) {
      response.writeHead(302, {
        'set-cookie': ['session=abc; Path=/; HttpOnly', 'other=; Max-Age=0'],
        location: '/scene.tif',
      });
      response.end();
      return true;
    }
    if (headers.cookie === 'session=abc') return false;
    response.writeHead(302, { location: `${loginUrl}/authorize` }).end();
    return true;
  };
  login.fault = ({ headers }, response) => {
    if (headers.authorization === `Basic ${Buffer.from('ann:pass word').toString('base64')}`)
      response.writeHead(302, { location: `${data.url}/callback?code=1` }).end();
    else response.writeHead(401).end();
    return true;
  };
  const file = await RemoteFile.open(client, `${data.url}/scene.tif`);
  assert.equal(file.start.toString(), 'the pixels');
  await file.readRanges([{ offset: 4, bytes: 6 }], async (bytes) => {
    assert.equal(bytes.toString(), 'pixels');
  });
  assert.equal(login.requests.length, 1);
  assert.ok(data.requests.every(({ headers }) => headers.authorization === undefined));
  assert.ok(login.requests.every(({ headers }) => headers.cookie === undefined));
});

test('a page that asks for a login is not taken for a file', async (t) => {
  const server = await archive(t);
  const client = await clientOf(t, {}, [server]);
  server.fault = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<form>'.repeat(20_000));
    return true;
  };
  await assert.rejects(RemoteFile.open(client, `${server.url}/scene.tif`), {
    code: 'TW_REMOTE_LOGIN',
    message: /: the address may be wrong, or the host needs a login, .*--remote-credentials/,
  });
});

test('a refusal says if a credential was sent', async (t) => {
  const server = await archive(t);
  server.fault = (_request, response) => {
    response.writeHead(403).end();
    return true;
  };
  const refusal = async (hosts: string[], path = 'scene.tif') => {
    const client = await clientOf(t, { bearer: [{ hosts, token: 'abc' }] }, [server]);
    const error: Error = await client.request(`${server.url}/${path}`, GET).then(
      () => assert.fail('it was not refused'),
      (reason) => reason,
    );
    return error.message;
  };
  const without = `no credential was sent: if ${server.host} needs one, add an entry for it to the file of --remote-credentials`;
  assert.ok((await refusal(['other.example.org'])).endsWith(`/scene.tif answered 403; ${without}`));
  const sent =
    '/scene.tif answered 403; a credential was sent: check that it is valid and may read this address';
  assert.ok((await refusal([server.host])).endsWith(sent));
  const signed = await refusal(['other.example.org'], 'scene.tif?sv=1&sig=secret');
  assert.ok(signed.endsWith(sent), signed);
});

/** A container whose files need a token, and the service that makes tokens. */
async function signedArchive(t: TestContext, { minutes = 60 } = {}) {
  const [files, service] = [await archive(t), await archive(t)];
  let made = 0;
  let valid = '';
  service.fault = (_request, response) => {
    valid = `sv=1&sig=token-${++made}`;
    const expiry = new Date(Date.now() + 60_000 * minutes).toISOString();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ 'msft:expiry': expiry, token: valid }));
    return true;
  };
  files.fault = ({ url = '' }, response) => {
    if (url.endsWith(`?${valid}`)) return false;
    response.writeHead(403).end();
    return true;
  };
  const sas = [{ hosts: [files.host], tokenUrl: `${service.url}/token` }];
  return {
    ...{ files, service, sas },
    expire: () => {
      valid = 'none';
    },
  };
}

test('one token signs all files of a container, and a refused one is replaced', async (t) => {
  const { files, service, sas, expire } = await signedArchive(t);
  const client = await clientOf(t, { sas }, [files, service]);
  const url = `${files.url}/scene.tif`;
  const read = () => client.request(url, GET);
  await Promise.all([read(), read(), read()]);
  assert.deepEqual(
    service.requests.map(({ path }) => path),
    ['/token/127/scene.tif'],
  );
  expire();
  await read();
  assert.equal(service.requests.length, 2);
  files.fault = (_request, response) => {
    response.writeHead(403).end();
    return true;
  };
  await assert.rejects(read(), (error: Error & { code: string }) => {
    assert.equal(error.code, 'TW_REMOTE_REFUSED');
    assert.doesNotMatch(error.message, /token-/);
    return true;
  });
  assert.equal(service.requests.length, 3, 'a second refusal is final');
});

test('a token that is about to expire is replaced before it is used', async (t) => {
  const { files, service, sas } = await signedArchive(t, { minutes: -1 });
  const client = await clientOf(t, { sas }, [files, service]);
  await client.request(`${files.url}/scene.tif`, GET);
  await client.request(`${files.url}/scene.tif`, GET);
  assert.equal(service.requests.length, 2);
});

test('a rule with a catalog signs only the files of that catalog', async (t) => {
  const { files, service, sas } = await signedArchive(t);
  const rules = { sas: [{ ...sas[0]!, catalog: 'catalog.example.org' }] };
  const read = async (catalog: string) =>
    (await clientOf(t, rules, [files, service], catalog)).request(`${files.url}/scene.tif`, GET);
  await assert.rejects(read('https://other.example.org/stac'), CODE('TW_REMOTE_REFUSED'));
  assert.equal(service.requests.length, 0);
  await read('https://catalog.example.org/stac');
});

test('objects of S3 are read with the keys of their bucket', { skip: s3SkipReason }, async (t) => {
  const server = await S3Server.start(t);
  const key = 'a folder/scene (1)+é.tif';
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = CREDENTIALS;
  const { endpoint } = server;
  const s3 = new S3Client({
    ...{ endpoint, region: 'us-east-1', forcePathStyle: true },
    credentials: { accessKeyId, secretAccessKey },
  });
  t.after(() => s3.destroy());
  await s3.send(new PutObjectCommand({ Bucket: 'tiles', Key: key, Body: 'the pixels' }));
  const rule = { buckets: ['tiles'], endpoint, region: 'us-east-1', accessKeyId, secretAccessKey };
  const read = async (s3: CredentialRules['s3']) => {
    const client = await clientOf(t, { s3 }, [{ host: `127.0.0.1:${server.port}` }]);
    const file = await RemoteFile.open(client, `s3://tiles/${key}`);
    let rest = '';
    await file.readRanges([{ offset: 4, bytes: 6 }], async (bytes) => {
      rest = bytes.toString();
    });
    return [file.start.toString(), rest];
  };
  assert.deepEqual(await read([rule]), ['the pixels', 'pixels']);
  await assert.rejects(read([{ ...rule, secretAccessKey: 'wrong' }]), (error: Error & { code: string }) => {
    assert.equal(error.code, 'TW_REMOTE_REFUSED');
    assert.match(error.message, /^s3:\/\/tiles\/.*answered 403.*the request was signed: .*AWS_REQUEST_PAYER/);
    assert.doesNotMatch(error.message, /tester|wrong/);
    return true;
  });
  await assert.rejects(read([{ ...rule, buckets: ['other'] }]), CODE('TW_REMOTE_HOST_NOT_ALLOWED'));
});

async function rulesOf(t: TestContext, text: string, environment?: NodeJS.ProcessEnv, mode = 0o600) {
  const path = join(await tempFolder(t), 'credentials.json');
  await writeFile(path, text);
  await chmod(path, mode);
  return readCredentialRules(path, environment);
}

test('the file of credentials is checked, and messages do not quote it', async (t) => {
  const bad = async (text: string, mode?: number) => {
    await assert.rejects(rulesOf(t, text, undefined, mode), (error: Error & { code: string }) => {
      assert.equal(error.code, 'TW_REMOTE_CREDENTIALS');
      assert.doesNotMatch(`${error.message} ${error.cause ?? ''}`, /hush/);
      return true;
    });
  };
  await bad('{"bearer": [{"token": "hush"}]}');
  await bad('{"bearer": "hush"}');
  await bad('{"beerer": ["hush"]}');
  await bad('{"s3": [{"buckets": ["b"], "accessKeyId": "hush"}]}');
  await bad('hush');
  await bad('{}', 0o644);
  await assert.rejects(readCredentialRules('/does/not/exist', undefined), CODE('TW_REMOTE_CREDENTIALS'));
  const { bearer } = await rulesOf(t, '{"bearer": [{"hosts": ["*.example.org"], "token": "hush"}]}');
  assert.deepEqual(bearer, [{ hosts: ['*.example.org'], token: 'hush' }]);
});

test('only a process of the user takes credentials from the environment', async (t) => {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'netrc'), 'machine urs.earthdata.nasa.gov login ann password hush', {
    mode: 0o600,
  });
  await copyFile(join(folder, 'netrc'), join(folder, 'copy'));
  const environment = {
    NETRC: join(folder, 'netrc'),
    EARTHDATA_TOKEN: 'hush',
    AWS_REQUEST_PAYER: 'requester',
    AWS_REGION: 'eu-central-1',
  };
  const own = await rulesOf(t, '{}', environment);
  assert.equal(own.bearer[0]?.token, 'hush');
  assert.deepEqual([...own.logins.keys()], ['urs.earthdata.nasa.gov']);
  assert.equal(own.s3[0]?.requesterPays, true);
  const server = await rulesOf(t, '{}');
  assert.deepEqual([server.bearer, server.s3, server.logins.size], [[], [], 0]);
});

test('netrc: the first entry of a machine counts; default and macros are ignored', () => {
  const text = `# comment
machine one.example.org
  login ann
  password hush
macdef init
  machine evil.example.org login a password b

machine two.example.org login bob account x password pw
machine one.example.org login other password other
machine half.example.org login nobody
default login anonymous password guest
`;
  assert.deepEqual(
    [...parseNetrc(text)],
    [
      ['one.example.org', { login: 'ann', password: 'hush' }],
      ['two.example.org', { login: 'bob', password: 'pw' }],
    ],
  );
});
