/**
 * The HDF5 library is C compiled to WebAssembly. It accesses files through one object, two of whose functions are replaced
 * here. A hostile file then cannot make the library open other files (by external links, external storage or virtual
 * datasets), and its diagnostics become part of tilewright's errors instead of lines on stderr.
 */

/** The functions of Emscripten's `FS` that are replaced. */
export interface EmscriptenFs {
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

export class Hdf5Sandbox {
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
