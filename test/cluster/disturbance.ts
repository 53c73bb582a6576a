/** What the harness may do to the clock and the disk of a server's process. */
export interface Disturbance {
  /** Its clock is wrong by so much, ms. */
  clock?: number;
  /** Files below this path take longer by `delay` ms each operation, or, where it hangs, do not come back. */
  disk?: { under: string; delay: number; hangs?: boolean };
}

/** Of the variable that names the address from which a process makes its connections. */
export const SOURCE = 'TILEWRIGHT_TEST_SOURCE';
