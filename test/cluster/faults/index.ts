import { clock } from './clock.js';
import { etcdLeader } from './etcd-leader.js';
import type { Fault } from './fault.js';
import { kill } from './kill.js';
import { none } from './none.js';
import { partition } from './partition.js';
import { pause } from './pause.js';
import { placement } from './placement.js';
import { slowDisk } from './slow-disk.js';
import { storeAway, storeHangs } from './store.js';

export type { Fault } from './fault.js';

export const faults: Fault[] = [
  none,
  kill,
  pause,
  partition,
  slowDisk,
  storeAway,
  storeHangs,
  etcdLeader,
  clock,
  placement,
];
