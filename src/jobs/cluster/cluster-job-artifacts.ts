/** The objects of a job in the object store: its inputs and, after its end, its record, log and files. */
import { toArray } from '../../async/index.js';
import { type JobRecord, newVersion, type ObjectStore, storeExists } from '../../storage/index.js';
import type { LogLine } from '../job-log.js';
import type { JobFile } from '../job-service.js';

/** The inputs of a job as requested and as prepared. */
export type JobInputs = Pick<JobRecord, 'inputs' | 'given'>;

const folderOf = (id: string) => `jobs/${id}/`;
const inputsName = (id: string) => `${folderOf(id)}asked.json`;
const preparedName = (id: string) => `${folderOf(id)}prepared.json`;

export class JobArtifacts {
  constructor(private readonly objects: ObjectStore) {}

  async putInputs(id: string, { inputs, given }: JobInputs): Promise<void> {
    await this.objects.put(inputsName(id), Buffer.from(JSON.stringify({ inputs, given })));
  }

  /** Undefined if the object is missing. */
  async inputs(id: string): Promise<JobInputs | undefined> {
    if (!(await this.objects.head(inputsName(id)))) return undefined;
    const asked = await this.read<JobInputs>(inputsName(id));
    if (!(await this.objects.head(preparedName(id)))) return asked;
    return { ...asked, given: await this.read(preparedName(id)) };
  }

  /** Stores inputs that `Process.prepare` has completed. Returns the inputs that an earlier leader has stored, if there are any. */
  async putPrepared(id: string, given: unknown): Promise<unknown> {
    try {
      await this.objects.put(preparedName(id), Buffer.from(JSON.stringify(given)));
      return given;
    } catch (error) {
      if (!storeExists.is(error)) throw error;
      return this.read(preparedName(id));
    }
  }

  async removeInputs(id: string): Promise<void> {
    await this.objects.delete([inputsName(id)]);
  }

  /** A new folder for the record and the log of a job that has ended. */
  endFolder(id: string): string {
    return `${folderOf(id)}${newVersion()}`;
  }

  async putEnd(folder: string, job: JobRecord, lines: LogLine[]): Promise<void> {
    const log = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    await this.objects.put(`${folder}/record.json`, Buffer.from(JSON.stringify(job)));
    await this.objects.put(`${folder}/log.ndjson`, Buffer.from(log));
  }

  async record(folder: string): Promise<JobRecord> {
    return JSON.parse((await this.objects.get(`${folder}/record.json`)).toString()) as JobRecord;
  }

  async log(folder: string): Promise<LogLine[]> {
    const text = (await this.objects.get(`${folder}/log.ndjson`)).toString();
    const lines = text.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** A result file of a job; undefined if it does not exist. */
  async file(name: string): Promise<JobFile | undefined> {
    const info = await this.objects.head(name);
    return info && { bytes: info.bytes, open: () => this.objects.stream(name) };
  }

  private async read<T>(name: string): Promise<T> {
    return JSON.parse((await this.objects.get(name)).toString()) as T;
  }

  /** Removes all objects of a job. */
  async remove(id: string): Promise<void> {
    const names = (await toArray(this.objects.list(folderOf(id)))).map(({ name }) => name);
    await this.objects.delete(names);
  }
}
