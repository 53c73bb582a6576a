/** Lists of names for messages about a name that does not exist. */

const MAX_LISTED = 20;

/** The names separated by commas, or the 20 names nearest to `wanted` and the number of others. */
export function listNearest(wanted: string, names: string[]): string {
  if (names.length <= MAX_LISTED) return names.join(', ');
  const distances = new Map(names.map((name) => [name, editDistance(wanted, name)]));
  const nearest = names.toSorted((a, b) => distances.get(a)! - distances.get(b)!).slice(0, MAX_LISTED);
  return `${nearest.join(', ')} and ${names.length - MAX_LISTED} more`;
}

/** Characters to insert, delete or replace between two texts (Levenshtein). */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...a].entries()) {
    const line = [row + 1];
    for (let column = 1; column < above.length; column++) {
      const replaced = above[column - 1]! + (letter === b[column - 1] ? 0 : 1);
      line.push(Math.min(replaced, above[column]! + 1, line[column - 1]! + 1));
    }
    above = line;
  }
  return above.at(-1)!;
}
