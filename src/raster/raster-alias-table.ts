/** A table in which several names, separated by blanks, have one value. */
export function aliasTable<T>(rows: [value: T, names: string][]): Record<string, T> {
  return Object.fromEntries(rows.flatMap(([value, names]) => names.split(' ').map((name) => [name, value])));
}
