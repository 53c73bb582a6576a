/** Three real etcd servers that are killed and paused while nodes work. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { coordinationUnavailable, EtcdStore, outcomeUnknown } from '../../src/coordination/index.js';
import { compareAndSet } from '../../src/coordination/store.js';
import { acquireLock, type FencedLock } from '../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../src/dht/log/log.js';
import { listMembers, type Member, Membership, watchMembers } from '../../src/dht/membership.js';
import { PLACEMENT_KEY, readPlacement, watchPlacement } from '../../src/dht/placement-store.js';
import { entriesSince } from '../dht/commit-log/commit-log-contract.js';
import { member, noEvents } from '../dht/membership/membership-contract.js';
import { atEnd } from '../support/at-end.js';
import { EtcdCluster, noEtcd } from '../support/etcd.js';
import { eventually } from '../support/eventually.js';

const WRITERS = 4;

interface Setting {
  etcd: EtcdCluster;
  /** The store of another node. `first` is the server that it uses first. */
  node(first?: number): EtcdStore;
}

const servers = noEtcd ? undefined : EtcdCluster.start({ after }, 3);

/** Each test has its own keys, and starts with all three servers running. */
function withThree(name: string, run: (setting: Setting) => Promise<void>): void {
  test(name, { skip: noEtcd }, async (t) => {
    const etcd = (await servers)!;
    await etcd.allUp();
    const cluster = randomUUID();
    const node = (first = 0) => {
      const urls = [...etcd.urls.slice(first), ...etcd.urls.slice(0, first)];
      const store = new EtcdStore(urls, cluster);
      atEnd(t, () => store.close());
      return store;
    };
    await run({ etcd, node });
  });
}

/** Commits under one lock after another until `isOver`; returns the acknowledged numbers by segment. */
async function writeUntil(
  store: EtcdStore,
  writer: number,
  isOver: () => boolean,
): Promise<Map<string, number>> {
  const log = new CommitLog(store);
  const acknowledged = new Map<string, number>();
  for (let i = 0; !isOver(); i++) {
    const name = `${writer}/${i}`;
    const held = await acquireLock(store, name, `n${writer}`);
    acknowledged.set(name, await log.commit(held, { segment: name, slots: '' }));
  }
  return acknowledged;
}

/** The log has no gap and no duplicate commit, and has the acknowledged commits under their numbers. */
async function assertExact(log: CommitLog, acknowledged: Map<string, number>): Promise<void> {
  const entries = await entriesSince(log, 0);
  assert.deepEqual(
    entries.map(({ seq }) => seq),
    entries.map((_, i) => i + 1),
  );
  assert.deepEqual(new Map(entries.map(({ segment, seq }) => [segment, seq])), sortedBySeq(acknowledged));
}

const sortedBySeq = (seqs: Map<string, number>) => new Map([...seqs].sort(([, a], [, b]) => a - b));

/** Several writers commit during `disturb`; all commits succeed, each once. */
async function commitsGoOn({ node }: Setting, disturb: () => Promise<void>): Promise<void> {
  let isOver = false;
  const writers = Array.from({ length: WRITERS }, (_, writer) =>
    writeUntil(node(writer % 3), writer, () => isOver),
  );
  const disturbed = disturb().finally(() => {
    isOver = true;
  });
  const [acknowledged] = await Promise.all([Promise.all(writers), disturbed]);
  for (const seqs of acknowledged) assert.ok(seqs.size > 0);
  await assertExact(new CommitLog(node()), new Map(acknowledged.flatMap((seqs) => [...seqs])));
}

withThree('commits continue when the leader is killed, and members stay members', async (setting) => {
  const { etcd, node } = setting;
  const joined = await Membership.join(node(), member('a'), {
    ...noEvents,
    lost: () => assert.fail('the lease was lost'),
  });
  const changes: Member[][] = [];
  const watch = watchMembers(
    node(1),
    (members) => changes.push(members),
    () => undefined,
  );
  await commitsGoOn(setting, async () => {
    await sleep(500);
    const leader = await etcd.leader();
    await etcd.kill(leader);
    await sleep(3000);
    etcd.launch(leader);
    await sleep(500);
  });
  assert.deepEqual(await listMembers(node()), [member('a')]);
  assert.equal(changes.length, 1, 'nobody has left or joined');
  await joined.leave();
  watch.close();
});

withThree('commits continue after all servers are paused for two seconds', async (setting) => {
  const { etcd } = setting;
  await commitsGoOn(setting, async () => {
    await sleep(500);
    await Promise.all(etcd.members.map((server) => etcd.pause(server)));
    await sleep(2000);
    for (const server of etcd.members) etcd.resume(server);
    await sleep(500);
  });
});

withThree(
  'without a majority of the servers, reads continue, and commits wait and are then made once',
  async ({ etcd, node }) => {
    const stores = [node(0), node(1), node(2)];
    const logs = stores.map((store) => new CommitLog(store));
    await compareAndSet(stores[0]!, { key: PLACEMENT_KEY, value: 'before', revision: 0 });
    const claims: FencedLock[] = [];
    const acknowledged = new Map<string, number>();
    for (const [i, store] of stores.entries()) {
      const name = `first/${i}`;
      const first = await acquireLock(store, name, 'n');
      acknowledged.set(name, await logs[i]!.commit(first, { segment: name, slots: '' }));
      claims.push(await acquireLock(store, `later/${i}`, `n${i}`));
    }
    const entryOf = (i: number) => ({ segment: `later/${i}`, slots: '' });
    await etcd.pause(0);
    await etcd.kill(1);

    for (const store of stores) {
      const placement = await readPlacement(store, { serializable: true });
      assert.equal(placement?.value, 'before');
      await assert.rejects(store.read([{ key: 'x' }], { timeoutMs: 1000 }), {
        code: coordinationUnavailable.code,
        message: /nothing was written/,
      });
    }
    await Promise.all(
      logs.map((log, i) =>
        assert.rejects(log.commit(claims[i]!, entryOf(i), undefined, 2500), {
          code: coordinationUnavailable.code,
          message: /^the commit of later.*nothing was written/,
        }),
      ),
    );
    // A change that was sent may be made when the servers are running again.
    const put = { key: 'sent', value: '1', revision: 0 };
    await assert.rejects(compareAndSet(stores[2]!, put, 1500), { code: outcomeUnknown.code });
    const waiting = Promise.all(logs.map((log, i) => log.commit(claims[i]!, entryOf(i))));
    await sleep(1000);
    etcd.resume(0);
    etcd.launch(1);
    for (const [i, seq] of (await waiting).entries()) acknowledged.set(`later/${i}`, seq);
    await assertExact(new CommitLog(node()), acknowledged);
  },
);

withThree('if nothing could be sent, nothing is committed, and the error says so', async ({ etcd, node }) => {
  const store = node();
  const log = new CommitLog(store);
  const held = await acquireLock(store, 'c/s', 'n');
  const other = await acquireLock(store, 'c/other', 'n');
  assert.equal(await log.commit(other, { segment: 'a', slots: '' }), 1);
  await Promise.all(etcd.members.map((server) => etcd.kill(server)));
  // A request on an existing connection may have been sent.
  await assert.rejects(store.read([{ key: 'a' }], { timeoutMs: 1000 }));
  await assert.rejects(log.commit(held, { segment: 'b', slots: '' }, undefined, 1000), (error) =>
    coordinationUnavailable.is(error),
  );
  for (const server of etcd.members) etcd.launch(server);
  assert.equal(await log.commit(held, { segment: 'b', slots: '' }), 2);
});

withThree('a watch on a follower reports that a dead node has left', async ({ etcd, node }) => {
  const leader = await etcd.leader();
  const store = node((leader + 1) % 3);
  const changes: Member[][] = [];
  const watch = watchMembers(store, (members) => changes.push(members), assert.ifError);
  const lease = await store.grantLease(3);
  const { id, ...fields } = member('a');
  await store.transact({
    success: [{ op: 'put', key: `members/${id}`, value: JSON.stringify(fields), lease }],
  });
  await eventually('a has joined', () => changes.at(-1)?.length === 1);
  await eventually('a has left', () => changes.length > 1 && changes.at(-1)?.length === 0);
  watch.close();
});

withThree(
  'a watch whose server hangs continues at another one, even after history was compacted',
  async ({ etcd, node }) => {
    const [watcher, writer] = [node(0), node(1)];
    const texts: string[] = [];
    const watch = watchPlacement(
      watcher,
      ({ value }) => texts.push(value),
      () => undefined,
    );
    let { current } = await compareAndSet(writer, { key: PLACEMENT_KEY, value: 'one', revision: 0 });
    await eventually('the first', () => texts.includes('one'));
    await etcd.pause(0);
    for (const text of ['two', 'three'])
      ({ current } = await compareAndSet(writer, {
        key: PLACEMENT_KEY,
        value: text,
        revision: current!.modRevision,
      }));
    await etcd.ask(1, 'kv/compaction', { revision: `${current!.modRevision}` });
    await eventually('what was missed', () => texts.at(-1) === 'three');
    ({ current } = await compareAndSet(writer, {
      key: PLACEMENT_KEY,
      value: 'four',
      revision: current!.modRevision,
    }));
    await eventually('what comes after', () => texts.at(-1) === 'four');
    etcd.resume(0);
    watch.close();
  },
);
