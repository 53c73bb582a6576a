/** The Items of a search in a file, because those of a large search do not fit into memory. */
import { type FileHandle, open, rm } from 'node:fs/promises';
import type { RemoteItem } from '../../remote/index.js';
import { parseJson } from '../../utils/json-text.js';
import { writeFully } from './open-remote-copy.js';

export interface StoredItem {
  /** As messages name it. */
  label: string;
  read(): Promise<RemoteItem>;
}

export class StoredItems {
  private bytes = 0;

  private constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    private readonly checkSpace: (bytes: number) => Promise<void>,
  ) {}

  /** Creates the file, in place of one that an earlier process has left. `checkSpace` as in `CopyContext`. */
  static async create(path: string, checkSpace: StoredItems['checkSpace']): Promise<StoredItems> {
    return new StoredItems(path, await open(path, 'w+'), checkSpace);
  }

  /** Removes the file. No Item is read afterwards. */
  async remove(): Promise<void> {
    await this.file.close();
    await rm(this.path, { force: true });
  }

  async add(item: RemoteItem, label: string): Promise<StoredItem> {
    const bytes = Buffer.from(JSON.stringify(item));
    const position = this.bytes;
    this.bytes += bytes.length;
    await this.checkSpace(bytes.length);
    await writeFully(this.file, bytes, position);
    return { label, read: () => this.read(position, bytes.length) };
  }

  private async read(position: number, length: number): Promise<RemoteItem> {
    const bytes = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await this.file.read(bytes, done, length - done, position + done);
      if (bytesRead === 0) throw new Error(`${this.path} was shortened`);
      done += bytesRead;
    }
    return parseJson(bytes.toString()) as RemoteItem;
  }
}
