/** `node crash-child.js DIR FIRST`: writes deliveries FIRST, FIRST + 1 ... of three scenes in turn until it is killed. */
import { writeSync } from 'node:fs';
import { Storage } from '../../../src/storage/index.js';
import { writeScene } from '../sample-scenes.js';

const [dir, first] = process.argv.slice(2);
if (dir !== undefined) {
  const storage = await Storage.open(dir, { sweepDelay: 20, snapshotAfter: 20 });
  for (let n = Number(first); ; n++) {
    await writeScene(storage, `scene-${n % 3}`, n, (step) => writeSync(1, `${step}\n`));
    writeSync(1, `acknowledged ${n}\n`);
  }
}
