import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { type DemoReport, renderReport, shownTiles } from '../../src/demo-report/index.js';
import { chromium, needsChromium } from '../support/chromium.js';
import { tempFolder } from '../support/temp.js';
import { fakeReport } from './fake-report.js';
import { assertWellFormed, elementsOf } from './markup.js';

const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** A copy in which `change` is applied to every string at any depth. */
function mapStrings<T>(value: T, change: (text: string) => string): T {
  if (typeof value === 'string') return change(value) as T;
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change)) as T;
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapStrings(item, change)])) as T;
}

test('summarises the run in words and numbers', () => {
  const report = fakeReport();
  const page = renderReport(report);
  assertWellFormed(page);
  for (const text of [
    '<h1>A season of fields north of the river</h1>',
    '4 scenes became 96 tiles of 24 places on the geohash grid (precision 5)',
    `The search selected ${report.query.matched} of the 96 tiles.`,
    'tfjs-node 4.22.0 (oneDNN)',
    'B09 is missing: the scene is cut without it',
    'only 31 clear patches of 16 x 16 pixels, 40 are needed',
    '18 Apr 2024',
  ]) {
    assert.ok(page.includes(text), text);
  }
  const words = page.replaceAll(/<[^>]*>/g, '');
  for (const command of [report.query.command, ...report.next]) assert.ok(words.includes(command), command);
  for (const { geocode, metrics } of report.training.models) {
    assert.ok(
      page.includes(
        `Predicted against true NDVI of place ${geocode}: R2 ${metrics.validation.r2.toFixed(2)}`,
      ),
    );
    assert.ok(page.includes(`Loss of place ${geocode} over 40 epochs`));
  }
});

test('no string of the data becomes markup', () => {
  const clean = elementsOf(renderReport(fakeReport({ preview: () => PIXEL })));
  const hostile = renderReport(
    mapStrings(
      fakeReport({ preview: () => PIXEL }),
      (text) => `${text}<script>alert("1")</script><b title='x' "`,
    ),
  );
  assertWellFormed(hostile);
  const elements = elementsOf(hostile);
  assert.equal(elements.filter((name) => name === 'script').length, 1);
  // Invalid times become separate days and invalid pictures are omitted; no other element may differ.
  const counted = (names: string[], name: string) => names.filter((other) => other === name).length;
  for (const name of ['b', 'h2', 'section', 'figure', 'svg', 'pre', 'li', 'table', 'style']) {
    assert.equal(counted(elements, name), counted(clean, name), name);
  }
  assert.ok(hostile.includes('&lt;script&gt;'));
});

test('the page is well-formed with any text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', minLength: 1 }), (text) => {
      const page = renderReport(mapStrings(fakeReport({ columns: 2, rows: 2, models: 2 }), () => text));
      assertWellFormed(page);
    }),
    { seed: 42, numRuns: 100 },
  );
});

test('loads no external resources', () => {
  const page = renderReport(fakeReport({ preview: () => PIXEL }));
  assert.doesNotMatch(page, /https?:|\/\/[a-z]/i);
  assert.doesNotMatch(page, /@import|url\(|<link|<iframe|<object|<embed/i);
  const sources = [...page.matchAll(/\s(?:src|href|srcset|action|poster)="([^"]*)"/g)].map(
    ([, source]) => source!,
  );
  assert.equal(sources.length, 24);
  assert.deepEqual(new Set(sources), new Set([PIXEL]));
});

test('a preview that is not an embedded picture is not shown', () => {
  for (const preview of [
    'http://example.org/a.png',
    '//a/b.png',
    'data:image/svg+xml;base64,AAAA',
    'a.png',
  ]) {
    const page = renderReport(fakeReport({ columns: 2, preview: () => preview }));
    assert.ok(!elementsOf(page).includes('img'), preview);
    assert.ok(!page.includes(preview), preview);
  }
});

test('the map shows the newest picked tile of a place, else the least cloudy', () => {
  const [tile] = fakeReport({ columns: 1, rows: 1 }).tiles;
  const tiles = [
    { ...tile!, id: 'old', time: '2024-01-01T00:00:00Z', picked: true, cloudCover: 0 },
    { ...tile!, id: 'new', time: '2024-02-01T00:00:00Z', picked: true, cloudCover: 9 },
    { ...tile!, id: 'not picked', time: '2024-03-01T00:00:00Z', picked: false, cloudCover: 0 },
    { ...tile!, geocode: 'u33zz', id: 'cloudy', picked: false, cloudCover: 80 },
    { ...tile!, geocode: 'u33zz', id: 'clear', picked: false, cloudCover: 30 },
    { ...tile!, geocode: 'u33zz', id: 'unknown', picked: false, cloudCover: null },
  ];
  assert.deepEqual(new Set(shownTiles(tiles).map(({ id }) => id)), new Set(['new', 'clear']));
});

test('cells are drawn at their boxes, even across the antimeridian', () => {
  const report = fakeReport({ columns: 2, rows: 1, times: ['2024-04-18T00:00:00Z'], models: 0 });
  report.tiles[0]!.bbox = [179, 10, 180, 11];
  report.tiles[1]!.bbox = [-180, 10, -179, 11];
  const page = renderReport(report);
  const places = [...page.matchAll(/style="left:([\d.]+)%;top:([\d.]+)%;width:([\d.]+)%;height:([\d.]+)%/g)];
  assert.deepEqual(
    places.map((match) => match.slice(1).map(Number)).sort((a, b) => a[0]! - b[0]!),
    [
      [0, 0, 50, 100],
      [50, 0, 50, 100],
    ],
  );
  const ratio = Number(page.match(/aspect-ratio:1\/([\d.]+)/)![1]);
  assert.ok(Math.abs(ratio - 1 / (2 * Math.cos((10.5 * Math.PI) / 180))) < 1e-3);
});

test('names the places where the model does not beat the baselines', () => {
  const withErrors = (errors: [model: number, linear: number, mean: number][]): DemoReport => {
    const report = fakeReport({ models: errors.length });
    report.training.models.forEach(({ metrics, baseline }, i) => {
      [metrics.validation.mse, baseline.linear.mse, baseline.mean.mse] = errors[i]!;
    });
    return report;
  };
  const all = renderReport(
    withErrors([
      [1, 2, 3],
      [1, 2, 3],
    ]),
  );
  assert.match(all, /lower error than ridge regression in all 2 places/);
  assert.match(all, /Here it does so everywhere/);

  const some = withErrors([
    [1, 2, 3],
    [2, 1, 3],
    [4, 2, 3],
    [Number.NaN, 2, 3],
  ]);
  const names = some.training.models.map(({ geocode }) => geocode);
  const page = renderReport(some);
  assert.match(page, /lower error than ridge regression in 1 of 4 places; in the other 3 it does not/);
  assert.match(page, /In 2 places it is no better than always answering the training mean/);
  assert.ok(page.includes(`Here it does not in ${names[1]}, ${names[2]}, ${names[3]}.`));

  const none = renderReport(withErrors([[2, 2, 3]]));
  assert.match(none, /does not beat ridge regression/);
  assert.match(none, /Here it does so nowhere/);

  const worse = withErrors([[1, 2, 3]]);
  worse.training.pooled!.model.mse = 0.003;
  worse.training.pooled!.linear.mse = 0.002;
  assert.match(renderReport(worse), /its error is 50 % higher than that of ridge/);
});

const EDGES: Record<string, () => DemoReport> = {
  'no models': () => fakeReport({ models: 0 }),
  'one tile': () => fakeReport({ columns: 1, rows: 1, times: ['2024-04-18T10:20:31Z'] }),
  'no tiles': () => fakeReport({ columns: 0, rows: 0 }),
  'unknown cloud': () => {
    const report = fakeReport();
    for (const tile of report.tiles) tile.cloudCover = null;
    return report;
  },
  '300 places': () => fakeReport({ columns: 20, rows: 15, models: 300 }),
  'one date': () => fakeReport({ times: ['2024-04-18T10:20:31Z'] }),
  'one epoch, one patch, no error at all': () => {
    const report = fakeReport({ models: 1 });
    const [model] = report.training.models;
    model!.losses = [{ epoch: 1, train: 0, validation: 0 }];
    model!.predictions = { truth: [0.5], predicted: [0.5] };
    model!.metrics.validation = { mse: 0, r2: 1 };
    model!.baseline.linear = { mse: 0, r2: 1 };
    return report;
  },
  'figures that are no numbers': () => {
    const report = fakeReport({ models: 2 });
    const [model] = report.training.models;
    model!.losses[3]!.train = Number.NaN;
    model!.metrics.validation = { mse: Number.NaN, r2: Number.NEGATIVE_INFINITY };
    model!.predictions.predicted[0] = Number.NaN;
    return report;
  },
};

for (const [name, make] of Object.entries(EDGES)) {
  test(`renders with ${name}`, () => {
    const page = renderReport(make());
    assertWellFormed(page);
    assert.doesNotMatch(page, /NaN|Infinity|undefined|\[object/);
  });
}

test('a cell of unknown cloud shows a dash, never 0', () => {
  const report = fakeReport({ columns: 1, rows: 1, times: ['2024-04-18T10:20:31Z'], models: 0 });
  report.tiles[0]!.cloudCover = null;
  const page = renderReport(report);
  assert.match(page, /<span class="sr">cloud <\/span>–/);
  assert.match(page, /cloud not assessed/);
});

test('a browser shows the page without errors and runs its script', needsChromium, async (t) => {
  const folder = await tempFolder(t);
  const file = join(folder, 'report.html');
  // The probe moves the pointer over a cell and a loss curve, and writes the tooltips into the page.
  const probe = `<script>
      window.addEventListener('error', (event) => document.body.dataset.failed = event.message);
      document.addEventListener('securitypolicyviolation', (event) => document.body.dataset.failed = event.violatedDirective);
      addEventListener('load', () => {
        const tip = document.getElementById('tip');
        const hover = (selector) => {
          const target = document.querySelector(selector);
          const box = target.getBoundingClientRect();
          target.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top }));
          return tip.textContent;
        };
        document.body.dataset.cell = hover('.cell');
        document.body.dataset.loss = hover('.hit');
        document.body.dataset.pictures = [...document.images].filter((image) => image.naturalWidth > 0).length;
        document.body.dataset.scrolls = document.documentElement.scrollWidth > innerWidth;
      });
    </script></body>`;
  await writeFile(file, renderReport(fakeReport({ preview: () => PIXEL })).replace('</body>', probe));
  const { stdout, stderr } = await promisify(execFile)(
    chromium!,
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--enable-logging=stderr',
      '--v=0',
      `--user-data-dir=${join(folder, 'profile')}`,
      '--window-size=500,900',
      '--dump-dom',
      pathToFileURL(file).href,
    ],
    { timeout: 60_000, maxBuffer: 1e8 },
  );
  assert.deepEqual(
    stderr.split('\n').filter((line) => line.includes('CONSOLE')),
    [],
  );
  const body = stdout.match(/<body[^>]*>/)![0];
  assert.doesNotMatch(body, /data-failed/);
  assert.match(body, /data-cell="u337h, /);
  assert.match(body, /data-loss="epoch 2[01]: train [\d.]+, validation [\d.]+"/);
  assert.match(body, /data-pictures="24"/);
  assert.match(body, /data-scrolls="false"/);
});
