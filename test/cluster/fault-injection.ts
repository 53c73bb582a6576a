/** Faults that the harness can cause in the clock and the disk of a server process. */
export interface FaultInjection {
  /** Offset of its clock, ms. */
  clock?: number;
  /** Operations on files below this path take `delay` ms longer or, if it hangs, do not return. */
  disk?: { under: string; delay: number; hangs?: boolean };
  answers?: LostAnswers;
}

/** Changes of files below a path are made, but some are reported as failed (EIO), as by a mount whose server disappears. */
export interface LostAnswers {
  under: string;
  /** Seed of the choices. */
  seed: number;
  /** The fraction of lost answers, 0 to 1; higher for paths that contain `more`. */
  share: number;
  more: string;
  /** After a lost answer, everything below the path fails for this time, ms. */
  outage: number;
}

/** Name of the environment variable with the address from which a process connects. */
export const SOURCE = 'TILEWRIGHT_TEST_SOURCE';
