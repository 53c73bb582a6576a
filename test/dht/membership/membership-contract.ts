import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CoordinationStore } from '../../../src/coordination/store.js';
import { nodeIdTaken } from '../../../src/dht/index.js';
import {
  listMembers,
  type Member,
  Membership,
  type MembershipEvents,
  watchMembers,
} from '../../../src/dht/membership.js';
import type { OpenStore } from '../../coordination/kv-store-contract.js';
import { eventually } from '../../support/eventually.js';

export const member = (id: string): Member => ({
  id,
  url: `http://${id}:8080`,
  zone: 'z1',
  weight: 1,
  software: '1.0.0',
  format: 1,
});

export const noEvents: MembershipEvents = {
  lost() {},
  back() {},
  failed(error) {
    throw error;
  },
};

const fail = (error: unknown) => {
  throw error;
};

const leaseOf = async (store: CoordinationStore, id: string) =>
  (await store.read([{ key: `members/${id}` }])).gets[0]!.kvs[0]!.lease;

export function membershipContract(open: OpenStore): void {
  test('members join and leave, and watchers see it', async (t) => {
    const node = await open(t);
    const changes: Member[][] = [];
    const a = await Membership.join(node(), member('a'), noEvents);
    const watch = watchMembers(node(), (members) => changes.push(members), fail);
    await eventually('the members at first', () => changes.length === 1);
    const b = await Membership.join(node(), member('b'), noEvents);
    await eventually('b', () => changes.length === 2);
    assert.deepEqual(await listMembers(node()), [member('a'), member('b')]);
    assert.deepEqual(await listMembers(node(), { serializable: true }), [member('a'), member('b')]);
    await a.leave();
    await eventually('without a', () => changes.length === 3);
    await sleep(1500);
    await b.leave();
    await eventually('nobody', () => changes.length === 4);
    watch.close();
    watch.close();
    assert.deepEqual(
      changes.map((members) => members.map(({ id }) => id).join()),
      ['a', 'a,b', 'b', ''],
    );
  });

  test('a member outlives its first lease; no other process gets its id', async (t) => {
    const node = await open(t);
    const first = await Membership.join(node(), member('a'), noEvents);
    await assert.rejects(Membership.join(node(), { ...member('a'), url: 'http://x' }, noEvents), {
      code: nodeIdTaken.code,
      message: /http:\/\/a:8080/,
    });
    assert.deepEqual(await listMembers(node()), [member('a')]);
    await first.leave();
  });

  test('a restarted node waits for the end of its old lease', async (t) => {
    const node = await open(t);
    const store = node();
    const old = await store.grantLease(3);
    const { id, ...fields } = member('a');
    await store.transact({
      success: [{ op: 'put', key: `members/${id}`, value: JSON.stringify(fields), lease: old }],
    });
    const again = await Membership.join(store, member('a'), noEvents);
    assert.notEqual(await leaseOf(store, 'a'), old);
    await again.leave();
  });

  test('a member that has lost its lease is notified and rejoins', async (t) => {
    const node = await open(t);
    const [store, other] = [node(), node()];
    const events: string[] = [];
    const membership = await Membership.join(store, member('a'), {
      lost: () => events.push('lost'),
      back: () => events.push('back'),
      failed: fail,
    });
    const changes: Member[][] = [];
    const watch = watchMembers(other, (members) => changes.push(members), fail);
    await eventually('a', () => changes.length > 0);
    await other.revokeLease(await leaseOf(other, 'a'));
    await eventually('a is back', () => events.includes('back'));
    assert.deepEqual(events, ['lost', 'back']);
    await eventually('a has joined again', () => changes.length > 1 && changes.at(-1)!.length === 1);
    assert.deepEqual(await listMembers(other), [member('a')]);
    watch.close();
    await membership.leave();
  });
}
