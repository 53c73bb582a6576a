/** The dashboard and the alert rules of deploy/: they use metrics that nodes have, and each alert has a runbook. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openNode } from '../../src/node.js';
import { freePort, storeOf } from '../dht/server-processes.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { eventually } from '../support/eventually.js';
import { noPrometheus, PrometheusServer, SCRAPE_TIMEOUT_MS } from '../support/prometheus-server.js';
import { tempFolder } from '../support/temp.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const rulesFile = join(root, 'deploy/prometheus/tilewright.rules.yml');
const readRoot = (path: string) => readFile(join(root, path), 'utf8');

interface Dashboard {
  panels: { id: number; type: string; title: string; targets?: { expr: string }[] }[];
}

async function dashboardQueries(): Promise<string[]> {
  const { panels }: Dashboard = JSON.parse(await readRoot('deploy/grafana/tilewright.json'));
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  return panels
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .map((expr) => expr.replaceAll(/\$(job|instance)\b/g, '.*').replaceAll('$__rate_interval', '1m'));
}

const metricsIn = (text: string) => new Set(text.match(/\b(tilewright|nodejs|process)_[a-z0-9_]+\b/g));

test('every alert has a runbook', async () => {
  const rules = await readFile(rulesFile, 'utf8');
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
  assert.ok(alerts.length > 10);
  const links = [...rules.matchAll(/runbook_url: docs\/how-to\/respond-to-alerts\.md#(\w+)/g)].map(
    ([, anchor]) => anchor,
  );
  assert.deepEqual(
    links,
    alerts.map((name) => name.toLowerCase()),
  );
  assert.equal(rules.match(/^ {10}summary: ".+"$/gm)?.length, alerts.length);
  const runbook = await readRoot('docs/how-to/respond-to-alerts.md');
  const sections = [...runbook.matchAll(/^## (Tilewright\w+)$/gm)].map(([, name]) => name);
  assert.deepEqual(sections, alerts);
});

test('the rules are valid, and fire when they should', { skip: noPrometheus }, () => {
  for (const args of [
    ['check', 'rules', rulesFile],
    ['test', 'rules', join(root, 'deploy/prometheus/tilewright.rules.test.yml')],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  }
});

test('nodes have every metric that the dashboard and the rules use, and the docs describe theirs', {
  skip: noPrometheus || noEtcd,
}, async (t) => {
  const folder = await tempFolder(t);
  await mkdir(join(folder, 'store'));
  const etcd = await EtcdCluster.start(t);
  const shared = {
    store: storeOf(folder),
    etcd: etcd.urls,
    name: 'test',
    zone: 'z',
    weight: 1,
    secrets: ['s'],
  };
  const urls: string[] = [];
  for (const name of ['a', 'b']) {
    const port = await freePort();
    const cluster = { ...shared, advertise: `http://127.0.0.1:${port}` };
    const data = join(folder, name);
    const node = await openNode({ data, memory: 128e6, cores: 1, cluster, cache: 1e9 });
    atEnd(t, () => node.close());
    urls.push(await node.listen('127.0.0.1', port));
  }
  const prometheus = await PrometheusServer.start(t, urls, rulesFile);
  const queries = await dashboardQueries();
  assert.ok(queries.length > 30);
  const used = metricsIn([...queries, await readFile(rulesFile, 'utf8')].join('\n'));
  assert.ok(used.size > 30);
  for (const name of used) {
    // The first node has all slots for a minute, so it sends no request whose answer would show the clock of the other.
    const nodes = name === 'tilewright_clock_offset_seconds' ? 1 : 2;
    await eventually(
      `${name} of ${nodes} nodes`,
      async () => (await prometheus.count(`count by (instance) (${name})`)) >= nodes,
      SCRAPE_TIMEOUT_MS,
    );
  }
  for (const query of queries) await prometheus.count(query);
  const isEvaluated = async () => (await prometheus.rules()).every(({ health }) => health !== 'unknown');
  await eventually('all rules are evaluated', isEvaluated, SCRAPE_TIMEOUT_MS);
  for (const { name, health, lastError } of await prometheus.rules())
    assert.equal(health, 'ok', `${name}: ${lastError}`);

  const docs = await readRoot('docs/how-to/monitor.md');
  const text = await (await fetch(`${urls[0]}/metrics`)).text();
  const exported = [...text.matchAll(/^# TYPE tilewright_(\w+) /gm)].map(([, name]) => name!);
  assert.ok(exported.length > 30);
  for (const name of exported)
    assert.match(docs, new RegExp(`\`${name}[{\`]`), `the docs do not describe tilewright_${name}`);
});
