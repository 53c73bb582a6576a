/** Opens HDF5 files in the calling thread. Only requested data is read from the disk. */

import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Dataset, File, Metadata } from 'h5wasm/node';
import { messageOf, TilewrightError } from '../../errors.js';
import { corrupt, rasterUnreadable } from '../errors.js';

/** The functions of Emscripten's `FS` that are replaced. */
interface EmscriptenFs {
  open(path: string, ...rest: unknown[]): unknown;
  write(
    stream: { fd: number },
    buffer: Uint8Array,
    offset: number,
    length: number,
    ...rest: unknown[]
  ): number;
  ErrnoError: new (errno: number) => Error;
}

/** EACCES in the numbering of WASI, which Emscripten uses. */
const PERMISSION_DENIED = 2;
const STDERR = 2;
/** An error prints at most a few hundred lines; a hostile file may cause many errors. */
const MAX_DIAGNOSTICS_LENGTH = 64_000;

/**
 * The HDF5 library is C compiled to WebAssembly. It accesses files through one object, two of whose functions are replaced
 * here. A hostile file then cannot make the library open other files (by external links, external storage or virtual
 * datasets), and its diagnostics become part of tilewright's errors instead of lines on stderr.
 */
class Hdf5Sandbox {
  /** The only file that may be opened; null between calls. */
  private allowed: string | null = null;
  private diagnostics = '';

  constructor(files: EmscriptenFs) {
    const { open, write } = files;
    files.open = (path, ...rest) => {
      if (path !== this.allowed) throw new files.ErrnoError(PERMISSION_DENIED);
      return open(path, ...rest);
    };
    files.write = (stream, buffer, offset, length, ...rest) => {
      if (stream.fd !== STDERR) return write(stream, buffer, offset, length, ...rest);
      if (this.diagnostics.length < MAX_DIAGNOSTICS_LENGTH)
        this.diagnostics += Buffer.from(buffer.subarray(offset, offset + length)).toString('latin1');
      return length;
    };
  }

  /** Runs `work`, during which the library may open only `path`. */
  withAllowedFile<T>(path: string, work: () => T): T {
    this.allowed = path;
    try {
      return work();
    } finally {
      this.allowed = null;
      this.diagnostics = '';
    }
  }

  /** Discards earlier diagnostics, such as those of queries that may fail. */
  clearDiagnostics(): void {
    this.diagnostics = '';
  }

  /** The innermost cause of errors since the last `clear`; undefined if there was none. */
  lastFault(): string | undefined {
    if (!this.diagnostics) return undefined;
    // Matches lines such as " #007: src/H5Z.c line 1435 in H5Z_pipeline(): required filter 'lzf' is not registered".
    const first = this.diagnostics.split('HDF5-DIAG')[1] ?? this.diagnostics;
    const causes = [...first.matchAll(/^\s*#\d+: .*?\(\): (.*)$/gm)].map(([, cause]) => cause);
    return (
      causes.find((cause) => /filter|truncated|checksum|signature/.test(cause)) ?? causes.at(-1) ?? 'unknown'
    );
  }
}

interface Hdf5Library {
  guard: Hdf5Sandbox;
  /** The library may open only `path`, and only during `Hdf5Sandbox.allowing`. */
  open(path: string): File;
  attributeMetadata(file: File, path: string, name: string): Metadata;
}

let loadedLibrary: Promise<Hdf5Library> | undefined;

/** Loads the library once for each thread, on first use: it is large, and few files need it. */
function loadHdf5Library(): Promise<Hdf5Library> {
  loadedLibrary ??= createLibrary();
  return loadedLibrary;
}

async function createLibrary(): Promise<Hdf5Library> {
  const { File, ready } = await import('h5wasm/node');
  const module = await ready;
  return {
    guard: new Hdf5Sandbox(module.FS as unknown as EmscriptenFs),
    open: (path) => new File(path, 'r'),
    attributeMetadata: (file, path, name) => module.get_attribute_metadata(file.file_id, path, name),
  };
}

/** Text, or numbers; a single number is an array of one. */
export type AttributeValue = string | number[];
export type Attributes = Record<string, AttributeValue>;

/** Classes of HDF5 types (H5T_class_t). */
export const TypeClass = { integer: 0, float: 1, string: 3, enum: 8 } as const;

/** Limit of the number of objects. Real products have far fewer, but a hostile file may declare any number. */
const MAX_ATTRIBUTE_BYTES = 2 ** 20;
const MAX_TEXT_BYTES = 2 ** 24;
const MAX_OBJECTS = 100_000;

/**
 * Opens a file, lets `use` read from it and closes it. `use` must be synchronous: the library works on one file at a time.
 * Throws TW_RASTER_UNREADABLE and _CORRUPT, and the errors of `use`.
 */
export async function withHdf5<T>(path: string, use: (file: Hdf5File) => T): Promise<T> {
  await stat(path).catch((error) => {
    throw rasterUnreadable.because(error, path, error);
  });
  const library = await loadHdf5Library();
  const absolute = resolve(path);
  return library.guard.withAllowedFile(absolute, () => {
    const file = library.open(absolute);
    const fault = library.guard.lastFault();
    if (fault) throw corrupt(path, fault);
    try {
      return use(new Hdf5File(path, file, library));
    } catch (error) {
      if (error instanceof TilewrightError) throw error;
      throw corrupt.because(error, path, messageOf(error));
    } finally {
      file.close();
    }
  });
}

/** An open file, valid only within `withHdf5`. Paths are full paths within the file. */
export class Hdf5File {
  constructor(
    readonly path: string,
    private readonly file: File,
    private readonly library: Hdf5Library,
  ) {}

  /** Paths of the datasets, sorted. External links are not followed. */
  datasets(): string[] {
    const paths = this.callLibrary(() => this.file.paths());
    if (paths.length > MAX_OBJECTS) throw corrupt(this.path, `it has ${paths.length} groups and datasets`);
    return paths
      .map((path) => `/${path}`)
      .filter((path) => this.dataset(path))
      .sort();
  }

  /** Undefined if no dataset has this path. */
  dataset(path: string): Dataset | undefined {
    const entity = this.entity(path);
    return entity && 'type' in entity && String(entity.type) === 'Dataset' ? (entity as Dataset) : undefined;
  }

  metadata(dataset: Dataset): Metadata {
    return this.callLibrary(() => dataset.metadata);
  }

  filters(dataset: Dataset): { id: number; name: string }[] {
    return this.callLibrary(() => dataset.filters);
  }

  /** Paths of the scales attached to each dimension (HDF5 Dimension Scales), such as netCDF's coordinate variables. */
  dimensionScales(dataset: Dataset): string[][] {
    const { shape } = this.metadata(dataset);
    return (shape ?? []).map((_, i) => this.callLibrary(() => dataset.get_attached_scales(i)));
  }

  /** Stored numbers of a hyperslab, [from, to) along each dimension, the last dimension fastest. */
  slice(dataset: Dataset, ranges: [from: number, to: number][]): ArrayLike<number | bigint> {
    return this.callLibrary(() => dataset.slice(ranges)) as ArrayLike<number | bigint>;
  }

  /** The text of a string dataset, with all its elements joined; undefined if there is none. */
  text(path: string): string | undefined {
    return this.texts(path)?.join('');
  }

  /** The elements of a string dataset; undefined if there is none. */
  texts(path: string): string[] | undefined {
    const dataset = this.dataset(path);
    if (!dataset) return undefined;
    const { type, size, total_size: count } = this.metadata(dataset);
    if (type !== TypeClass.string) return undefined;
    if (size * count > MAX_TEXT_BYTES) throw corrupt(this.path, `the text ${path} has ${size * count} bytes`);
    return textOf(this.callLibrary(() => dataset.value));
  }

  /** The attributes of a group or dataset that are text or numbers; references and structures are left out. */
  attributes(path: string): Attributes {
    const entity = path === '/' ? this.file : this.entity(path);
    if (!entity || !('attrs' in entity)) return {};
    const attributes: Attributes = {};
    for (const name of this.callLibrary(() => Object.keys(entity.attrs))) {
      const metadata = this.callLibrary(() => this.library.attributeMetadata(this.file, path, name));
      if (!isTextOrNumber(metadata)) continue;
      const bytes = metadata.size * metadata.total_size;
      if (bytes > MAX_ATTRIBUTE_BYTES) throw corrupt(this.path, `the attribute ${name} has ${bytes} bytes`);
      const value: unknown = this.callLibrary(() => entity.get_attribute(name, true));
      attributes[name] =
        metadata.type === TypeClass.string ? textOf(value).join(', ') : [value].flat().map(Number);
    }
    return attributes;
  }

  /** True if the netCDF library (version 4.4.1 or later) wrote the file. */
  get isNetcdf(): boolean {
    return this.attributes('/')._NCProperties !== undefined;
  }

  /** True if a group or dataset has the attribute, of any type. */
  hasAttribute(path: string, name: string): boolean {
    const entity = path === '/' ? this.file : this.entity(path);
    return !!entity && 'attrs' in entity && this.callLibrary(() => Object.hasOwn(entity.attrs, name));
  }

  /** Bytes of a floating point number of an attribute; 0 if the attribute is missing or of another type. */
  floatBytes(path: string, name: string): number {
    if (!this.hasAttribute(path, name)) return 0;
    const { type, size } = this.callLibrary(() => this.library.attributeMetadata(this.file, path, name));
    return type === TypeClass.float ? size : 0;
  }

  private entity(path: string) {
    // A missing path is a valid answer, but the library reports a diagnostic for it.
    const entity = this.file.get(path);
    const absent = this.library.guard.lastFault() !== undefined;
    this.library.guard.clearDiagnostics();
    return absent ? null : entity;
  }

  /** Calls the library and throws its diagnostics, because its return value alone does not show errors. */
  private callLibrary<T>(question: () => T): T {
    const { guard } = this.library;
    guard.clearDiagnostics();
    const answer = question();
    const fault = guard.lastFault();
    if (fault) throw corrupt(this.path, fault);
    return answer;
  }
}

function isTextOrNumber({ type, size, shape }: Metadata): boolean {
  if (!shape) return false;
  if (type === TypeClass.float) return size === 4 || size === 8;
  return type === TypeClass.string || type === TypeClass.integer;
}

/** Text ends at the first NUL. */
function textOf(value: unknown): string[] {
  return [value ?? ''].flat().map((text) => String(text).split('\0', 1)[0]);
}
