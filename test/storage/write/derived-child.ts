/** `node derived-child.js DIR FIRST`: writes batches FIRST, FIRST + 1 ... of derived tiles until it is killed. */
import { writeSync } from 'node:fs';
import { Storage } from '../../../src/storage/index.js';
import { writeDerived } from '../sample-scenes.js';

const [dir, first] = process.argv.slice(2);
if (dir !== undefined) {
  const storage = await Storage.open(dir, { sweepDelay: 20 });
  for (let n = Number(first); ; n++) {
    await writeDerived(storage, n, (step) => writeSync(1, `${step}\n`));
    writeSync(1, `acknowledged ${n}\n`);
  }
}
