import { bursts } from './burst.js';
import { checkpoints } from './checkpoints.js';
import { clock } from './clock.js';
import { etcdAnswers } from './etcd-answers.js';
import { etcdLeader } from './etcd-leader.js';
import { etcdOutages } from './etcd-outages.js';
import type { Fault } from './fault.js';
import { fullDisk } from './full-disk.js';
import { kill } from './kill.js';
import { killChildren } from './kill-children.js';
import { none } from './none.js';
import { partition } from './partition.js';
import { longPause, pause } from './pause.js';
import { placement } from './placement.js';
import { restore } from './restore.js';
import { slowDisk } from './slow-disk.js';
import { storeAway, storeHangs } from './store.js';
import { storeAnswers } from './store-answers.js';

export type { Fault } from './fault.js';

export const faults: Fault[] = [
  none,
  kill,
  killChildren,
  pause,
  longPause,
  partition,
  slowDisk,
  fullDisk,
  storeAway,
  storeHangs,
  storeAnswers,
  etcdLeader,
  etcdAnswers,
  etcdOutages,
  restore,
  clock,
  placement,
  bursts,
  checkpoints,
];
