/**
 * Copies of log entries in the tile store: with them and the manifest of a checkpoint the log can be rebuilt.
 *
 * Invariant: an entry is copied only after all before it, as far as no checkpoint holds them; so the copies after a checkpoint have no gap.
 */
import { mapConcurrent } from '../../async/index.js';
import { type ObjectStore, storeExists } from '../../storage/index.js';
import { archivedEntryDamaged, conflictingWriter } from '../errors.js';
import type { CommitLog, CommittedEntry } from './commit-log.js';

const PREFIX = 'catalogue/log/';
const CONCURRENCY = 16;

/** The copy of a log entry. */
export const archivedEntryName = (seq: number) => `${PREFIX}${`${seq}`.padStart(16, '0')}`;

export class LogArchive {
  /** Entries up to here are copied. */
  private archivedUpTo = 0;
  /** Once it was found, this node must not go on after the other's entries. */
  private conflict: Error | undefined;

  constructor(
    private readonly log: CommitLog,
    private readonly objects: ObjectStore,
  ) {}

  /** Throws TW_DHT_OTHER_WRITER where another cluster was found to write its entries here. */
  requireNoConflictingWriter(): void {
    if (this.conflict) throw this.conflict;
  }

  /** Copies an entry, and those before it that nobody has copied: who made them was killed, or is just doing it. TW_DHT_OTHER_WRITER. */
  async archive(entry: CommittedEntry): Promise<void> {
    await this.archiveUpTo(entry.seq - 1);
    await this.put(entry);
  }

  async archiveUpTo(seq: number): Promise<void> {
    const first = await this.firstMissing(seq);
    for (let last = first - 1; last < seq; ) {
      const page = await this.log.readSince(last);
      // Who wrote the checkpoint has copied what it holds.
      if (page.kind === 'checkpoint') {
        last = page.checkpoint.seq;
        continue;
      }
      for (const entry of page.entries.filter((one) => one.seq <= seq)) await this.put(entry);
      last = page.entries.at(-1)?.seq ?? seq;
    }
    this.archivedUpTo = Math.max(this.archivedUpTo, seq);
  }

  private async firstMissing(seq: number): Promise<number> {
    const isMissing = async (at: number) =>
      at > this.archivedUpTo && !(await this.objects.head(archivedEntryName(at)));
    if (!(await isMissing(seq))) return seq + 1;
    const covered = (await this.log.readCheckpoint())?.seq ?? 0;
    let first = seq;
    while (first - 1 > covered && (await isMissing(first - 1))) first--;
    return first;
  }

  /** The same bytes, whoever writes them. */
  private async put({ seq, segment, slots, claim, fence }: CommittedEntry): Promise<void> {
    const copy: CommittedEntry = { seq, segment, slots, claim, fence };
    const bytes = Buffer.from(JSON.stringify(copy));
    await this.objects.put(archivedEntryName(seq), bytes, { ifAbsent: true }).catch((error) => {
      if (!storeExists.is(error)) throw error;
      this.conflict = conflictingWriter.because(error, seq, this.objects.url);
      throw this.conflict;
    });
    if (this.archivedUpTo === seq - 1) this.archivedUpTo = seq;
  }
}

/** The numbers of the copies in the store, ascending. */
export async function listArchived(objects: ObjectStore): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { name } of objects.list(PREFIX)) {
    const seq = Number(name.slice(PREFIX.length));
    if (archivedEntryName(seq) === name) numbers.push(seq);
  }
  return numbers;
}

/** Entries by their copies. Throws TW_STORE_NOT_FOUND, TW_DHT_COPY_DAMAGED. */
export function readArchived(objects: ObjectStore, numbers: number[]): Promise<CommittedEntry[]> {
  return mapConcurrent(numbers, CONCURRENCY, (seq) => readArchivedEntry(objects, seq));
}

async function readArchivedEntry(objects: ObjectStore, seq: number): Promise<CommittedEntry> {
  const name = archivedEntryName(seq);
  const text = (await objects.get(name)).toString();
  let found: Partial<CommittedEntry>;
  try {
    found = JSON.parse(text) as Partial<CommittedEntry>;
  } catch (error) {
    throw archivedEntryDamaged.because(error, name, 'it is no JSON');
  }
  const { segment, slots, claim, fence } = found;
  if (found.seq !== seq || typeof segment !== 'string' || typeof slots !== 'string')
    throw archivedEntryDamaged(name, 'it is not the entry of its number');
  if (typeof claim !== 'string' || typeof fence !== 'number')
    throw archivedEntryDamaged(name, 'it does not name its claim');
  return { seq, segment, slots, claim, fence };
}
