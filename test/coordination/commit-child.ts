/** `node commit-child.js FOLDER FIRST`: commits numbers FIRST, FIRST + 1 ... to a store in a folder until it is killed. */
import { writeSync } from 'node:fs';
import { LevelStore } from '../../src/coordination/index.js';
import { acquireLock } from '../../src/dht/log/fenced-lock.js';
import { CommitLog } from '../../src/dht/log/log.js';

const [folder, first] = process.argv.slice(2);
if (folder !== undefined) {
  const store = await LevelStore.open(folder);
  const log = new CommitLog(store);
  for (let n = Number(first); ; n++) {
    const held = await acquireLock(store, `c/${n % 3}`, 'child');
    writeSync(1, `claimed ${n}\n`);
    const seq = await log.commit(held, { segment: `${n}`, slots: '' });
    if (seq !== n) throw new Error(`commit ${n} became ${seq}`);
    writeSync(1, `acknowledged ${n}\n`);
  }
}
