/** The files in deploy/ are valid by the schemas of their formats, and consistent with the program. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { atEnd } from '../support/at-end.js';
import { tempFolder } from '../support/temp.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const chart = join(root, 'deploy/helm/tilewright');
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
const tools = process.env.TILEWRIGHT_DEPLOY_TOOLS ?? join(cache, 'tilewright/deploy-tools');
const env = { ...process.env, PATH: [tools, process.env.PATH].join(delimiter) };

const hasHelm = spawnSync('helm', ['version'], { env }).status === 0;
const noHelm = hasHelm ? false : 'helm is missing; tools/install-deploy-tools.sh installs it';

/** Output of the check. Skips the test and returns undefined if a tool is missing. */
function check(t: TestContext, what: 'chart' | 'compose' | 'dockerfile'): string | undefined {
  const script = join(root, 'tools/check-deploy.sh');
  const { status, stdout, stderr } = spawnSync('bash', [script, what], { env, encoding: 'utf8' });
  if (status === 77) {
    t.skip(stderr.trim());
    return undefined;
  }
  assert.equal(status, 0, stdout + stderr);
  return stdout;
}

test('the chart is good by the schemas of Kubernetes', (t) => {
  check(t, 'chart');
});

test('the Dockerfile passes the linter', (t) => {
  check(t, 'dockerfile');
});

interface ComposeFile {
  services: Record<string, { depends_on?: object; volumes?: { source: string }[] }>;
  volumes: object;
}

test('the compose file is good by its schema, and names only what it has', (t) => {
  const printed = check(t, 'compose');
  if (printed === undefined) return;
  const { services, volumes }: ComposeFile = JSON.parse(printed);
  for (const [name, service] of Object.entries(services)) {
    for (const other of Object.keys(service.depends_on ?? {}))
      assert.ok(other in services, `${name} depends on ${other}`);
    for (const { source } of service.volumes ?? []) assert.ok(source in volumes, `${name} mounts ${source}`);
  }
});

function helm(values: string[]): { status: number | null; stdout: string; stderr: string } {
  const args = ['template', 'tilewright', chart, '--namespace', 'tiles', '--kube-version', '1.37', ...values];
  return spawnSync('helm', args, { env, encoding: 'utf8' });
}

/** The documents of the chart for one of its sets of values, by kind and name. */
function render(set: string, ...more: string[]): Map<string, string> {
  const { status, stdout, stderr } = helm(['--values', join(chart, `ci/${set}-values.yaml`), ...more]);
  assert.equal(status, 0, stderr);
  const named = stdout
    .split(/^---$/m)
    .map((text): [string, string] => [
      `${/^kind: (.*)$/m.exec(text)?.[1]}/${/^ {2}name: (.*)$/m.exec(text)?.[1]}`,
      text,
    ]);
  return new Map(named);
}

/** Value of an environment variable that is set as text. */
function variable(text: string | undefined, name: string): string | undefined {
  return new RegExp(`- name: ${name}\\n +value: "?([^"\\n]*)"?`).exec(text ?? '')?.[1];
}

test('a single node has a data folder and nothing of a cluster', { skip: noHelm }, () => {
  const documents = render('single');
  assert.deepEqual([...documents.keys()].filter((key) => key !== 'undefined/undefined').sort(), [
    'PodDisruptionBudget/tilewright',
    'Secret/tilewright-auth',
    'Service/tilewright',
    'Service/tilewright-nodes',
    'ServiceAccount/tilewright',
    'StatefulSet/tilewright',
  ]);
  const node = documents.get('StatefulSet/tilewright') ?? '';
  assert.equal(variable(node, 'TILEWRIGHT_DATA'), '/data');
  for (const name of ['ETCD', 'STORE', 'SECRET', 'CLUSTER_LISTEN', 'ADVERTISE', 'ZONE'])
    assert.ok(!node.includes(`TILEWRIGHT_${name}`), name);
});

test('Kubernetes puts no variables of its own beside those of the flags', { skip: noHelm }, () => {
  assert.match(render('single').get('StatefulSet/tilewright') ?? '', /enableServiceLinks: false/);
});

test('the chart has the alerts of deploy/prometheus, only if they are wanted', { skip: noHelm }, async () => {
  const rules = await readFile(join(root, 'deploy/prometheus/tilewright.rules.yml'), 'utf8');
  const document = render('cluster').get('PrometheusRule/tilewright') ?? '';
  const [, spec] = document.split('spec:\n');
  assert.equal(spec?.replaceAll(/^ {2}/gm, '').trim(), rules.trim());
  assert.match(document, /^ {4}release: prometheus$/m);
  assert.ok(!render('single').has('PrometheusRule/tilewright'));
});

test('the nodes look for etcd where its members are', { skip: noHelm }, () => {
  const documents = render('cluster');
  const asked = variable(documents.get('StatefulSet/tilewright'), 'TILEWRIGHT_ETCD')?.split(',');
  const etcd = documents.get('StatefulSet/tilewright-etcd') ?? '';
  const members = /--initial-cluster=(.*)/.exec(etcd)?.[1]?.split(',');
  const clients = members?.map((member) => member.replace(/^[^=]*=/, '').replace(':2380', ':2379'));
  assert.equal(asked?.length, 3);
  assert.deepEqual(asked, clients);
  assert.match(asked[0] ?? '', /^http:\/\/tilewright-etcd-0\.tilewright-etcd\.tiles\.svc:2379$/);
  assert.ok(documents.has('Service/tilewright-etcd'));
  assert.match(etcd, /--auto-compaction-retention=1h/);
  assert.match(etcd, /--quota-backend-bytes=2147483648/);
});

test('links name the ingress or the public URL, and only the given proxies are trusted', {
  skip: noHelm,
}, () => {
  const node = (set: string, ...more: string[]) => {
    const text = render(set, ...more).get('StatefulSet/tilewright');
    return [variable(text, 'TILEWRIGHT_PUBLIC_URL'), variable(text, 'TILEWRIGHT_TRUST_PROXY')];
  };
  assert.deepEqual(node('cluster'), ['https://tiles.example.org', '10.244.0.0/16']);
  assert.deepEqual(node('cluster', '--set', 'ingress.tlsSecret='), [
    'http://tiles.example.org',
    '10.244.0.0/16',
  ]);
  assert.deepEqual(node('existing'), ['https://example.org/tiles', '192.0.2.10,192.0.2.11']);
  assert.deepEqual(node('single'), [undefined, undefined]);
});

test('each node has an address of its own below the headless service', { skip: noHelm }, () => {
  const documents = render('cluster');
  const node = documents.get('StatefulSet/tilewright') ?? '';
  assert.equal(variable(node, 'TILEWRIGHT_CLUSTER_LISTEN'), '0.0.0.0:8081');
  assert.equal(variable(node, 'TILEWRIGHT_ADVERTISE'), 'http://$(POD).tilewright-nodes.tiles.svc:8081');
  assert.match(node, /serviceName: tilewright-nodes/);
  assert.match(documents.get('Service/tilewright-nodes') ?? '', /clusterIP: None/);
});

test('the zone comes from where the values say', { skip: noHelm }, () => {
  const node = (set: string) => render(set).get('StatefulSet/tilewright') ?? '';
  assert.equal(variable(node('mount'), 'TILEWRIGHT_ZONE'), 'north');
  assert.match(node('existing'), /- name: TILEWRIGHT_ZONE\n +valueFrom: .*topology\.kubernetes\.io\/zone/);
  assert.equal(variable(node('cluster'), 'TILEWRIGHT_CONFIG'), '/config/tilewright.json');
  assert.match(node('cluster'), /initContainers:/);
  assert.ok(!node('existing').includes('initContainers:'));
  assert.ok(render('cluster').has('ClusterRole/tiles-tilewright-zone'));
});

test('no secret is in a document that is not a Secret', { skip: noHelm }, () => {
  for (const [key, text] of render('cluster'))
    if (!key.startsWith('Secret/'))
      for (const secret of ['a-token', 'a-read-token', 'a-secret', 'a-secret-key'])
        assert.ok(!text.includes(`"${secret}"`), `${key} has ${secret}`);
});

test('values that do not go together are refused with what to do', { skip: noHelm }, () => {
  const set = (...pairs: string[]) => pairs.flatMap((pair) => ['--set', pair]);
  const refused: [string[], RegExp][] = [
    [set(), /set auth\.token or auth\.existingSecret/],
    [set('auth.token=a', 'replicaCount=2'), /set etcd\.endpoints, or etcd\.enabled, and store\.url/],
    [set('auth.token=a', 'etcd.enabled=true'), /set store\.url/],
    [set('auth.token=a', 'store.url=s3://b/p'), /set etcd\.endpoints or etcd\.enabled/],
    [set('auth.token=a', 'etcd.enabled=true', 'store.url=s3://b/p'), /set auth\.clusterSecret/],
    [set('auth.existingSecret=a', 'etcd.enabled=true', 'etcd.endpoints={http://e:2379}'), /set one of them/],
    [set('auth.token=a', 'store.s3.accessKeyId=k'), /or neither/],
    [set('auth.token=a', 'zone.from=value'), /set zone\.value/],
    [set('auth.token=a', 'ingress.enabled=true'), /set ingress\.host/],
    [set('auth.token=a', 'store.url=ftp://b'), /store\/url|store\.url/],
    [set('auth.token=a', 'replicas=3'), /replicas/],
    [set('auth.token=a', 'zone.from=moon'), /zone[./]from/],
  ];
  for (const [values, message] of refused) {
    const { status, stderr } = helm(values);
    assert.notEqual(status, 0, values.join(' '));
    assert.match(stderr, message);
  }
});

test('the version is that of the package everywhere', async () => {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  assert.match(await readFile(join(chart, 'Chart.yaml'), 'utf8'), new RegExp(`appVersion: "${version}"`));
  const compose = await readFile(join(root, 'deploy/compose.yaml'), 'utf8');
  assert.match(compose, new RegExp(`image: tilewright:${version}$`, 'm'));
});

test('what the Dockerfile copies is there and not ignored', async () => {
  const dockerfile = await readFile(join(root, 'deploy/Dockerfile'), 'utf8');
  const ignore = await readFile(join(root, 'deploy/Dockerfile.dockerignore'), 'utf8');
  const letIn = ignore.split('\n').flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));
  const copied = [...dockerfile.matchAll(/^COPY (?!--)(.*) \S+$/gm)].flatMap(([, paths = '']) =>
    paths.split(' '),
  );
  assert.deepEqual(copied.sort(), letIn.sort());
  const tracked = execFileSync('git', ['ls-files', ...copied], { cwd: root, encoding: 'utf8' }).split('\n');
  for (const path of copied)
    assert.ok(
      tracked.some((file) => file === path || file.startsWith(`${path}/`)),
      path,
    );
});

test('every variable that is set is a flag of serve', async (t) => {
  const main = join(root, 'dist/command/main.js');
  const help = execFileSync(process.execPath, [main, 'serve', '--help'], { encoding: 'utf8' });
  if (!help.includes('--etcd')) return t.skip('serve has no flags for clusters yet');
  const files = ['Dockerfile', 'compose.yaml', 'env.example', 'helm/tilewright/templates/statefulset.yaml'];
  for (const file of files) {
    const text = await readFile(join(root, 'deploy', file), 'utf8');
    for (const [name] of text.matchAll(/\bTILEWRIGHT_[A-Z_]+\b/g))
      assert.match(help, new RegExp(`\\b${name}\\b`), `${name} in ${file}`);
  }
});

/** Serves a Kubernetes API that knows one machine, and returns what the init container writes after querying it. */
async function askZone(t: TestContext, labels: object, machine = 'm1'): Promise<unknown> {
  const folder = await tempFolder(t);
  await writeFile(join(folder, 'token'), 'account-token\n');
  const server = createServer((request, response) => {
    const known =
      request.url === '/api/v1/nodes/m1' && request.headers.authorization === 'Bearer account-token';
    response.statusCode = known ? 200 : 403;
    response.end(JSON.stringify(known ? { metadata: { labels } } : { reason: 'Forbidden' }));
  }).listen(0, '127.0.0.1');
  atEnd(t, () => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const code = await readFile(join(chart, 'files/zone.mjs'), 'utf8');
  const OUTPUT = join(folder, 'config.json');
  const KUBERNETES = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], {
    env: { MACHINE: machine, KUBERNETES, ACCOUNT: folder, OUTPUT },
  });
  return JSON.parse(await readFile(OUTPUT, 'utf8'));
}

test('the init container writes the zone of the machine as configuration', async (t) => {
  assert.deepEqual(await askZone(t, { 'topology.kubernetes.io/zone': 'eu-1a' }), { zone: 'eu-1a' });
  assert.deepEqual(await askZone(t, {}), {});
  await assert.rejects(askZone(t, {}, 'm2'), /m2 answers 403/);
});

test('the chart accepts no user in the public URL', async () => {
  const schema = JSON.parse(await readFile('deploy/helm/tilewright/values.schema.json', 'utf8'));
  const pattern = new RegExp(schema.properties.proxy.properties.publicUrl.pattern);
  for (const url of ['', 'https://example.org', 'https://example.org:8443/tiles/@a'])
    assert.match(url, pattern);
  for (const url of [
    'https://user:password@example.org',
    'https://u@example.org/tiles',
    'https://a.example/?b',
  ])
    assert.doesNotMatch(url, pattern);
});
