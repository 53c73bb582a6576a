/** "1 place", "2 places". */
export const plural = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** A key that is the same for reasons that differ only in numbers. */
export const reasonKey = (reason: string) => reason.replace(/-?\d+(\.\d+)?(e[-+]?\d+)?/gi, '0');
