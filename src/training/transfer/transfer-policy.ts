/**
 * Whose model a place starts from. `none`: it starts fresh. `random`: that of a place of another cluster, as a measure of the others. `similar`: of
 * the place of its cluster that looks most like it. `probe`: of some places that look like it, or fresh, whichever is best on some of its patches.
 */
export const TRANSFER_POLICIES = ['none', 'random', 'similar', 'probe'] as const;
export type TransferPolicy = (typeof TRANSFER_POLICIES)[number];
