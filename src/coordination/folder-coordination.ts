/** The coordination store of a single node, in its data folder. */
import { join } from 'node:path';
import { makeFolderDurably } from '../storage/index.js';
import type { CoordinationStore } from './coordination-store.js';
import { LevelStore } from './level-coordination-store.js';

/** Opens the coordination store in a data folder. LevelDB does not sync the entry of its folder in the parent folder. */
export async function openFolderStore(dataFolder: string): Promise<LevelStore> {
  const folder = join(dataFolder, 'coordination');
  await makeFolderDurably(folder);
  return LevelStore.open(folder);
}

/** Opens the store at its first use, because most commands do not need it. Invariant: the store is open at most once. */
export class FolderCoordination {
  private opened: Promise<LevelStore> | undefined;

  constructor(private readonly dataFolder: string) {}

  readonly open = (): Promise<CoordinationStore> => {
    this.opened ??= openFolderStore(this.dataFolder).catch((error) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  };

  async close(): Promise<void> {
    await (await this.opened)?.close();
  }
}
