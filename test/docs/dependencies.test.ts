/** docs/development/dependencies.md names each dependency, and none of them needs a later Node than the package declares. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

interface Package {
  version: string;
  dev?: boolean;
  engines?: { node?: string };
}

const read = (path: string) => readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');
const readJson = async (path: string) => JSON.parse(await read(path));

/** Numbers of a version; missing ones are 0. */
const numbersOf = (version: string) =>
  [...version.replace(/^v/, '').split('.'), '0', '0'].slice(0, 3).map(Number);

const compare = (a: number[], b: number[]) => a.map((number, i) => number - b[i]!).find((n) => n !== 0) ?? 0;

/** True if a version is in a range of npm: comparators, carets, tildes, plain versions, joined by blanks and `||`. */
function isInRange(version: string, range: string): boolean {
  const at = numbersOf(version);
  const fulfils = (comparator: string) => {
    const [, operator, text = ''] = /^(>=|<=|>|<|\^|~|=)?(.*)$/.exec(comparator)!;
    if (text === '' || /^[x*]/.test(text)) return true;
    const bound = numbersOf(text.replace(/\.[x*]/g, ''));
    const order = compare(at, bound);
    switch (operator) {
      case '>=':
        return order >= 0;
      case '>':
        return order > 0;
      case '<':
        return order < 0;
      case '<=':
        return order <= 0;
      case '^':
        return order >= 0 && at[0] === bound[0];
      case '~':
        return order >= 0 && at[0] === bound[0] && (at[1] === bound[1] || !text.includes('.'));
      default:
        return text
          .replace(/^v/, '')
          .split('.')
          .filter((part) => !/^[x*]$/.test(part))
          .every((part, i) => Number(part) === at[i]);
    }
  };
  return range.split('||').some((all) =>
    all
      .trim()
      .replace(/(>=|<=|>|<|\^|~)\s+/g, '$1')
      .split(/\s+/)
      .every(fulfils),
  );
}

test('ranges of versions are read as by npm', () => {
  for (const [range, inside, outside] of [
    ['>=20', '20.0.0', '19.9.9'],
    ['>=22', '22.0.0', '20.20.2'],
    ['18 || 20 || >=22', '20.15.0', '21.0.0'],
    ['^20.17.0 || >=22.9.0', '20.20.2', '20.15.0'],
    ['>= 14.16', '20.0.0', '14.15.0'],
    ['>=12 <21', '20.0.0', '21.0.0'],
    ['>=v12.22.7', '12.22.7', '12.22.6'],
    ['20.x', '20.3.0', '22.0.0'],
    ['*', '20.0.0', undefined],
    ['~20.15', '20.15.9', '20.16.0'],
  ] as const) {
    assert.ok(isInRange(inside, range), `${inside} in ${range}`);
    if (outside) assert.ok(!isInRange(outside, range), `${outside} in ${range}`);
  }
});

test('every dependency runs on the Node that the package declares, in the repository and from its tarball', async () => {
  const { engines, overrides } = await readJson('package.json');
  assert.equal(overrides, undefined, 'npm applies them to this folder alone');
  const least = /^>=([\d.]+)$/.exec(engines.node)![1]!;
  const { packages } = (await readJson('package-lock.json')) as { packages: Record<string, Package> };
  const refused = Object.entries(packages).flatMap(([path, { version, dev, engines }]) =>
    // Development needs the latest Node 20.
    isInRange(dev ? '20.20.0' : least, engines?.node ?? '*') ? [] : [`${path} ${version}: ${engines?.node}`],
  );
  assert.deepEqual(refused, []);
});

test('docs/development/dependencies.md has a row for each dependency', async () => {
  const { dependencies, optionalDependencies, devDependencies } = await readJson('package.json');
  const text = await read('docs/development/dependencies.md');
  const rows = text.split('\n').flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1]?.split(', ') ?? []);
  let scope = '';
  const named = rows.map((name) => {
    scope = name.startsWith('-/') || name.startsWith('-') ? scope : name;
    // "@types/leaflet, -/node" and "@tensorflow/tfjs-core, -layers".
    if (name.startsWith('-/')) return `${scope.split('/')[0]}/${name.slice(2)}`;
    return name.startsWith('-') ? scope.replace(/-[a-z]+$/, name) : name;
  });
  const missing = Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies }).filter(
    (name) => !named.includes(name),
  );
  assert.deepEqual(missing, []);
});
