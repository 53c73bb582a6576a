/**
 * `node open-child.js hold DIR`: opens the folder, announces a URL, and keeps it open until its input ends.
 * `node open-child.js write DIR UID`: writes a scene as user UID; prints the code of the error, or "written".
 */
import { once } from 'node:events';
import { TilewrightError } from '../../../src/errors.js';
import { Storage } from '../../../src/storage/index.js';
import { writeScene } from '../sample-scenes.js';

const [mode, dir, uid] = process.argv.slice(2);
if (mode === 'hold' && dir !== undefined) {
  const storage = await Storage.open(dir);
  await storage.folder.announce('http://127.0.0.1:8080');
  console.log('open');
  process.stdin.resume();
  await once(process.stdin, 'end');
  await storage.close();
}
if (mode === 'write' && dir !== undefined) {
  process.setuid?.(Number(uid));
  try {
    const storage = await Storage.open(dir);
    await writeScene(storage, 'a', 1);
    await storage.close();
    console.log('written');
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    console.log(error.code);
  }
}
