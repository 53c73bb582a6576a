/** A fault that `verify` reports. */
export interface Problem {
  /**
   * `missing`: a record's file, a scene's tile or the schema of tiles is missing; `size`, `checksum`: a file differs from its record;
   * `corrupt-record`: a record does not match its own checksum; `no-scene`: no scene names a raw tile; `index`: the
   * index in memory and the record of a tile differ.
   */
  kind: 'missing' | 'size' | 'checksum' | 'corrupt-record' | 'no-scene' | 'index';
  /** Path relative to the data folder, `<table> <key>`, or `object <name> of <table> <key>` of an object store. */
  what: string;
}
