/** Copies of the entries of the commit log in the tile store. */
import { mapConcurrent } from '../../async/index.js';
import { type ObjectStore, storeExists } from '../../storage/index.js';
import { parseJsonOr } from '../../utils/json-text.js';
import { archivedEntryDamaged, conflictingWriter } from '../errors.js';
import type { CommitLog, CommittedEntry } from './log.js';

const ENTRIES_FOLDER = 'catalogue/log/';
const CONCURRENT_ENTRIES = 16;

/** The name of the copy of a log entry. */
export const archivedEntryName = (seq: number) => `${ENTRIES_FOLDER}${`${seq}`.padStart(16, '0')}`;

/**
 * The archive of the log: copies of its entries in the tile store. The log can be rebuilt from them and the manifest of a checkpoint.
 *
 * Invariant: an entry is archived only after all entries before it that are not in a checkpoint, so the archive has no gap after a
 * checkpoint.
 */
export class LogArchive {
  /** All entries up to this one are archived. */
  private archivedUpTo = 0;
  /** Set once the archive contains an entry of another cluster; this node must then stop committing. */
  private conflict: Error | undefined;

  constructor(
    private readonly log: CommitLog,
    private readonly objects: ObjectStore,
  ) {}

  /** Throws TW_DHT_OTHER_WRITER if another cluster was found to write its entries to this store. */
  requireNoConflictingWriter(): void {
    if (this.conflict) throw this.conflict;
  }

  /** Archives an entry and earlier missing ones, whose writers were killed or have not finished. TW_DHT_OTHER_WRITER. */
  async archive(entry: CommittedEntry): Promise<void> {
    await this.archiveUpTo(entry.seq - 1);
    await this.put(entry);
  }

  async archiveUpTo(seq: number): Promise<void> {
    const first = await this.firstMissing(seq);
    for (let last = first - 1; last < seq; ) {
      const page = await this.log.readSince(last);
      // The writer of the checkpoint has archived its entries.
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

  /** All nodes write the same bytes. */
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

/** The numbers of the archived entries, ascending. */
export async function listArchived(objects: ObjectStore): Promise<number[]> {
  const numbers: number[] = [];
  for await (const { name } of objects.list(ENTRIES_FOLDER)) {
    const seq = Number(name.slice(ENTRIES_FOLDER.length));
    if (archivedEntryName(seq) === name) numbers.push(seq);
  }
  return numbers;
}

/** Reads the archived entries after number `since` up to `last`. Throws TW_STORE_NOT_FOUND, TW_DHT_COPY_DAMAGED. */
export function readArchived(objects: ObjectStore, since: number, last: number): Promise<CommittedEntry[]> {
  const numbers = Array.from({ length: last - since }, (_, i) => since + 1 + i);
  return mapConcurrent(numbers, CONCURRENT_ENTRIES, (seq) => readArchivedEntry(objects, seq));
}

async function readArchivedEntry(objects: ObjectStore, seq: number): Promise<CommittedEntry> {
  const name = archivedEntryName(seq);
  const text = (await objects.get(name)).toString();
  const entry = parseJsonOr<Partial<CommittedEntry>>(text, (cause) =>
    archivedEntryDamaged.because(cause, name, 'it is not JSON'),
  );
  const { segment, slots, claim, fence } = entry;
  if (entry.seq !== seq || typeof segment !== 'string' || typeof slots !== 'string')
    throw archivedEntryDamaged(name, 'it is the entry of another number');
  if (typeof claim !== 'string' || typeof fence !== 'number')
    throw archivedEntryDamaged(name, 'it does not name its lock');
  return { seq, segment, slots, claim, fence };
}
