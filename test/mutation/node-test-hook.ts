/** Gives `node-test.js` to files that import `node:test`. */
const STAND_IN = new URL('./node-test.js', import.meta.url).href;

interface Resolved {
  url: string;
  shortCircuit?: boolean;
}

export async function resolve(
  specifier: string,
  context: object,
  next: (specifier: string, context: object) => Promise<Resolved>,
): Promise<Resolved> {
  return specifier === 'node:test' ? { url: STAND_IN, shortCircuit: true } : next(specifier, context);
}
