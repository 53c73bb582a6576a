import type { Readable } from 'node:stream';
import type { ClusterMetrics } from '../../metrics/index.js';
import type {
  Cancellable,
  Content,
  CopyOptions,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  ReadOptions,
} from './object-store.js';

/** An object store whose calls are measured: streams until they are open, lists until their first objects. */
export class MeasuredStore implements ObjectStore {
  constructor(
    private readonly store: ObjectStore,
    private readonly calls: ClusterMetrics['store'],
  ) {}

  get url(): string {
    return this.store.url;
  }

  put(name: string, content: Content, options?: PutOptions): Promise<void> {
    return this.calls.measure('put', () => this.store.put(name, content, options), options?.signal);
  }

  get(name: string, options?: ReadOptions): Promise<Buffer> {
    return this.calls.measure('get', () => this.store.get(name, options), options?.signal);
  }

  stream(name: string, options?: ReadOptions): Promise<Readable> {
    return this.calls.measure('stream', () => this.store.stream(name, options), options?.signal);
  }

  copyTo(name: string, file: string, options?: CopyOptions): Promise<void> {
    return this.calls.measure('copy', () => this.store.copyTo(name, file, options), options?.signal);
  }

  head(name: string, options?: Cancellable): Promise<ObjectInfo | undefined> {
    return this.calls.measure('head', () => this.store.head(name, options), options?.signal);
  }

  async *list(prefix: string, options?: Cancellable): AsyncGenerator<ObjectInfo> {
    const objects = this.store.list(prefix, options)[Symbol.asyncIterator]();
    try {
      let next = await this.calls.measure('list', () => objects.next(), options?.signal);
      for (; !next.done; next = await objects.next()) yield next.value;
    } finally {
      await objects.return?.();
    }
  }

  delete(names: string[], options?: Cancellable): Promise<void> {
    return this.calls.measure('delete', () => this.store.delete(names, options), options?.signal);
  }

  location(name: string): string {
    return this.store.location(name);
  }

  close(): void {
    this.store.close();
  }
}
