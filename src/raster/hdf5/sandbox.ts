/**
 * The HDF5 library is C in WebAssembly that sees the file system through one object. Two of its functions are replaced, so
 * that a hostile file cannot make the library open other files (by external links, external storage or virtual datasets), and so that its
 * diagnostics become part of our errors instead of lines on stderr.
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
/** An error prints a few hundred lines at most; a hostile file may cause many errors. */
const MAX_DIAGNOSTICS_LENGTH = 64_000;

export class Hdf5Sandbox {
  /** The only file that may be opened now; null between uses. */
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

  /** Runs `work`, during which the library may open `path` and nothing else. */
  withAllowedFile<T>(path: string, work: () => T): T {
    this.allowed = path;
    try {
      return work();
    } finally {
      this.allowed = null;
      this.diagnostics = '';
    }
  }

  /** Forgets earlier diagnostics: of questions to which "no" is a fair answer. */
  clearDiagnostics(): void {
    this.diagnostics = '';
  }

  /** The innermost cause of what failed since the last `clear`; undefined where nothing did. */
  lastFault(): string | undefined {
    if (!this.diagnostics) return undefined;
    // Lines such as "  #007: src/H5Z.c line 1435 in H5Z_pipeline(): required filter 'lzf' is not registered".
    const first = this.diagnostics.split('HDF5-DIAG')[1] ?? this.diagnostics;
    const causes = [...first.matchAll(/^\s*#\d+: .*?\(\): (.*)$/gm)].map(([, cause]) => cause);
    return (
      causes.find((cause) => /filter|truncated|checksum|signature/.test(cause)) ?? causes.at(-1) ?? 'unknown'
    );
  }
}
