/** Module hooks of the runner: test files get its stand-ins for `node:test` and `fast-check`. */
const STAND_INS = new Map([
  ['node:test', new URL('./node-test.js', import.meta.url).href],
  ['fast-check', new URL('./few-runs.js', import.meta.url).href],
]);

interface Resolved {
  url: string;
  shortCircuit?: boolean;
}

export async function resolve(
  specifier: string,
  context: { parentURL?: string },
  next: (specifier: string, context: object) => Promise<Resolved>,
): Promise<Resolved> {
  const url = STAND_INS.get(specifier);
  return url === undefined || url === context.parentURL
    ? next(specifier, context)
    : { url, shortCircuit: true };
}
