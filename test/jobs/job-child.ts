/** `node job-child.js DIR`: one job that ends, one that runs and two that wait, until it is killed. */
import { Jobs } from '../../src/jobs/index.js';
import { Catalogue } from '../../src/storage/index.js';

const [dir] = process.argv.slice(2);
if (dir !== undefined) {
  const jobs = await Jobs.open(await Catalogue.open(dir));
  const first = await jobs.start('fill', {}, async () => 'done');
  console.log(`accepted ${first.id}`);
  await jobs.wait(first.id);
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { id } = await jobs.start('fill', {}, () => new Promise(() => {}));
    console.log(`accepted ${id}`);
    ids.push(id);
  }
  setInterval(() => {}, 1000);
  await jobs.subscribe(ids[0]!, (job) => {
    if (job.status === 'running') console.log('running');
  });
}
