/** What the harness may do to the clock and the disk of a server's process. */
export interface FaultInjection {
  /** Its clock is wrong by so much, ms. */
  clock?: number;
  /** Files below this path take longer by `delay` ms each operation, or, where it hangs, do not come back. */
  disk?: { under: string; delay: number; hangs?: boolean };
  answers?: LostAnswers;
}

/** Changes of files below a path are made, but some of them are reported as failed (EIO), as by a mount whose server goes away. */
export interface LostAnswers {
  under: string;
  /** Which ones: choices follow from this number. */
  seed: number;
  /** The share of the answers that are lost, from 0 to 1; more of those whose path contains `more`. */
  share: number;
  more: string;
  /** After a lost answer everything below the path fails for so long, ms. */
  outage: number;
}

/** Of the variable that names the address from which a process makes its connections. */
export const SOURCE = 'TILEWRIGHT_TEST_SOURCE';
