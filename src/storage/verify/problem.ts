/** What `verify` found wrong. */
export interface Problem {
  /**
   * `missing`: a record's file, a scene's tile or the layout of tiles is not there; `size`, `checksum`: a file is not what its record says;
   * `corrupt-record`: a record's own checksum does not fit; `no-scene`: a raw tile that no scene names; `index`: the
   * index in memory does not say of a tile what its record says.
   */
  kind: 'missing' | 'size' | 'checksum' | 'corrupt-record' | 'no-scene' | 'index';
  /** Path relative to the data folder, `<table> <key>`, or `object <name> of <table> <key>` of a shared store. */
  what: string;
}
