/**
 * `node job-child.js DIR [start]`: a node that works on the jobs of a folder, none of which ends, until it is killed. With
 * `start` it first creates one job that ends, one that cannot be resumed, and three that can.
 */
import { LocalJobService } from '../../src/jobs/index.js';
import { Storage } from '../../src/storage/index.js';
import { process as processOf } from './process.js';

const [dir, start] = process.argv.slice(2);
if (dir !== undefined) {
  const work = (hangs: boolean) => async (_context: unknown, inputs: unknown) => {
    console.log(`runs ${JSON.stringify(inputs)}`);
    if (hangs) await new Promise(() => setInterval(() => {}, 1000));
  };
  const resumable = processOf(work(true), { resumable: true });
  const storage = await Storage.open(dir);
  const jobs = await LocalJobService.open(storage, [resumable], { concurrency: start ? 2 : 1, resume: true });
  if (start) {
    const ended = await jobs.start(processOf(work(false), { id: 'ends' }), {});
    await jobs.wait(ended.id);
    const once = await jobs.start(processOf(work(true), { id: 'once' }), {});
    const ids = [ended.id, once.id];
    for (let n = 1; n <= 3; n++) ids.push((await jobs.start(resumable, { n })).id);
    console.log(`accepted ${ids.join(' ')}`);
  }
}
