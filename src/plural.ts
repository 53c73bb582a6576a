/** "1 place", "2 places". */
export const plural = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** Reasons that differ in their numbers alone are of one kind. */
export const reasonKey = (reason: string) => reason.replace(/-?\d+(\.\d+)?(e[-+]?\d+)?/gi, '0');
