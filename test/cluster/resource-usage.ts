/** Resource usage of the processes and folders of a cluster. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestCluster, TestNode } from './cluster.js';

/** Values by column; undefined if a value is unknown at the moment. */
export type Sample = Record<string, number | undefined>;

const MB = 1e6;

export async function sample(cluster: TestCluster): Promise<Sample> {
  const { etcd, etcdName, store } = cluster;
  const values: Sample = {};
  for (const node of cluster.nodes) Object.assign(values, await ofNode(node));
  const root = `/tilewright/${etcdName}/`;
  const all = await countKeys(cluster, root);
  const jobs = await countKeys(cluster, `${root}jobs/`);
  values['etcd keys'] = all === undefined || jobs === undefined ? undefined : all - jobs;
  values['etcd keys of jobs'] = jobs;
  const status = await etcd.ask<{ dbSize: string }>(0, 'maintenance/status', {});
  values['etcd database MB'] = status && Number(status.dbSize) / MB;
  const objects = await filesIn(store);
  const ofJobs = objects.filter((name) => name.startsWith('jobs/')).length;
  values['store objects'] = objects.length - ofJobs;
  values['store objects of jobs'] = ofJobs;
  return values;
}

/** Memory, descriptors and threads of a server (proc(5)), and the size of its data folder. */
async function ofNode({ name, data, server }: TestNode): Promise<Sample> {
  const proc = `/proc/${server.pid}`;
  const status = await readFile(`${proc}/status`, 'utf8').catch(() => '');
  const number = (key: string) => {
    const found = new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const megabytes = (key: string) => {
    const kilobytes = number(key);
    return kilobytes && (kilobytes * 1024) / MB;
  };
  const descriptors = await readdir(`${proc}/fd`).catch(() => undefined);
  const files = await filesIn(data);
  let bytes = 0;
  for (const file of files) bytes += (await stat(join(data, file)).catch(() => undefined))?.size ?? 0;
  return {
    [`${name} RSS MB`]: megabytes('VmRSS'),
    [`${name} RSS of files MB`]: megabytes('RssFile'),
    [`${name} main heap MB`]: server.memory && server.memory.heapUsed / MB,
    [`${name} main buffers MB`]: server.memory && server.memory.external / MB,
    [`${name} descriptors`]: descriptors?.length,
    [`${name} threads`]: number('Threads'),
    [`${name} files`]: files.length,
    [`${name} files MB`]: bytes / MB,
  };
}

/** Paths of all files below a folder, relative to it. */
async function filesIn(folder: string): Promise<string[]> {
  const found: string[] = [];
  const walk = async (at: string): Promise<void> => {
    // Files may be removed in the meantime.
    for (const entry of await readdir(join(folder, at), { withFileTypes: true }).catch(() => [])) {
      const name = join(at, entry.name);
      if (entry.isDirectory()) await walk(name);
      else found.push(name);
    }
  };
  await walk('');
  return found;
}

async function countKeys({ etcd }: TestCluster, prefix: string): Promise<number | undefined> {
  const text = (key: string) => Buffer.from(key).toString('base64');
  const end = `${prefix.slice(0, -1)}0`;
  const answer = await etcd.ask<{ count?: string }>(0, 'kv/range', {
    key: text(prefix),
    range_end: text(end),
    count_only: true,
  });
  return answer && Number(answer.count ?? 0);
}
