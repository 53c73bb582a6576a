/** The map page: its files, and its behaviour in a real browser. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { openNode, type TilewrightNode } from '../../src/node.js';
import { nodeWithScenes, pictureOf } from '../imagery/maps.js';
import { writeEnvi } from '../raster/envi.js';
import { random } from '../raster/images.js';
import { atEnd, suiteContext } from '../support/at-end.js';
import { chromium, needsChromium, startBrowser, withPageOf } from '../support/chromium.js';
import { ingest, testNode } from '../support/node.js';
import { tempFolder } from '../support/temp.js';

const SCENES = [
  { datetime: '2024-06-01T10:00:00Z', cloud: 40, seed: 1 },
  { datetime: '2024-06-11T10:00:00Z', cloud: 0, seed: 2 },
  { datetime: '2024-07-01T10:00:00Z', cloud: 0, seed: 3 },
];

const suite = suiteContext();
/** Most tests read this node, and change nothing. */
let node: TilewrightNode;
let url: string;
let browser: Browser;

before(async () => {
  ({ node } = await nodeWithScenes(suite, SCENES));
  url = await node.listen('127.0.0.1', 0);
  if (chromium) browser = await startBrowser();
});
after(() => browser?.close());

test('all resources of the page are served, and external ones are forbidden', async () => {
  const get = (url: string, headers = {}) => node.server.inject({ url, headers });
  const page = await get('/map');
  assert.match(String(page.headers['content-type']), /text\/html/);
  const policy = String(page.headers['content-security-policy']);
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /http|\*|unsafe/);
  assert.doesNotMatch(page.body, /https?:|<style|<script>|style=/);
  const wanted = [...page.body.matchAll(/(?:src|href)="(map\/[^"]+)"/g)].map(([, path]) => `/${path}`);
  assert.equal(wanted.length, 5);
  wanted.push('/map/land-110m.json', '/map/land-50m.json');
  const seen = new Set<string>();
  for (const path of wanted) {
    if (seen.has(path)) continue;
    seen.add(path);
    const answer = await get(path);
    assert.equal(answer.statusCode, 200, path);
    const type = path.endsWith('.css') ? /text\/css/ : path.endsWith('.json') ? /json/ : /javascript/;
    assert.match(String(answer.headers['content-type']), type);
    assert.equal((await get(path, { 'if-none-match': answer.headers.etag })).statusCode, 304);
    if (!/leaflet\.js|topojson\.js|json$/.test(path))
      for (const [, name] of answer.body.matchAll(/from '\.\/(.*?)'/g)) wanted.push(`/map/${name}`);
  }
  assert.ok(seen.size > 8);
});

/**
 * Opens the page of a server and closes it after `look`. Fails where a script failed, something was
 * written to the console, an answer was an error (other than what is `expected`), or another host was asked.
 */
async function inBrowser(
  url: string,
  width: number,
  look: (page: Page) => Promise<void>,
  expected = /^$/,
): Promise<void> {
  await withPageOf(browser, width, async (page) => {
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('response', (answer) => {
      if (answer.status() >= 400) complaints.push(`${answer.status()} ${answer.url()}`);
    });
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && origin !== new URL(url).origin) complaints.push(`asks ${request.url()}`);
    });
    await page.goto(`${url}/map`);
    await look(page);
    assert.deepEqual(
      complaints.filter((complaint) => !expected.test(complaint)),
      [],
    );
  });
}

/** Pixels of a picture as the browser shows it, red, green, blue and opacity. */
function drawn(picture: Locator): Promise<{ src: string; pixels: number[] }> {
  return picture.evaluate((node) => {
    const image = node as HTMLImageElement;
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext('2d')!;
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    return { src: image.src, pixels: [...data] };
  });
}

test('a browser shows the map, and the dates and values of a place', needsChromium, async () => {
  await inBrowser(url, 1200, async (page) => {
    const box = (await page.locator('#map').boundingBox())!;
    const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };

    /** The map tile in the middle of the map shows what the server answers for it. */
    const sameAsServer = async (query: RegExp) => {
      await page.waitForFunction((pattern) => {
        const shown = [...document.querySelectorAll<HTMLImageElement>('.leaflet-tile')];
        const right = (one: HTMLImageElement) => new RegExp(pattern).test(one.src);
        return shown.length > 0 && shown.every((one) => right(one) && one.matches('.leaflet-tile-loaded'));
      }, query.source);
      const index = await page.evaluate(({ x, y }) => {
        const holds = ({ left, right, top, bottom }: DOMRect) =>
          left <= x && x < right && top <= y && y < bottom;
        return [...document.querySelectorAll('.leaflet-tile')].findIndex((one) =>
          holds(one.getBoundingClientRect()),
        );
      }, middle);
      const { src, pixels } = await drawn(page.locator('.leaflet-tile').nth(index));
      const { pathname, search } = new URL(src);
      const answer = await pictureOf(node, pathname + search);
      const opaque = answer.pixels.filter((value, i) => i % 4 === 3 && value === 255).length;
      assert.ok(opaque > 1000, `${opaque} pixels of ${src} show something`);
      // Transparent pixels have no defined colour.
      for (let i = 0; i < pixels.length; i += 4)
        if (answer.pixels[i + 3] === 255)
          assert.deepEqual(pixels.slice(i, i + 4), [...answer.pixels.subarray(i, i + 4)], `pixel ${i / 4}`);
    };

    await sameAsServer(/\.png\?$/);
    assert.equal((await page.locator('path.cell').count()) > 0, true, 'outlines of tiles');
    await page.selectOption('#look', { label: 'NDVI' });
    await sameAsServer(/expression=ndvi/);
    await page.selectOption('#mosaic', 'median');
    await sameAsServer(/expression=ndvi.*&pixel_selection=median/);
    await page.selectOption('#mosaic', '');
    await page.selectOption('#look', { label: 'One band' });
    await page.selectOption('#band', { index: 3 });
    await page.selectOption('#colours', 'viridis');
    await sameAsServer(/expression=10m_b4&colormap_name=viridis/);

    // Beside the middle, which is on the edge of cells.
    await page.mouse.click(middle.x + 40, middle.y + 30);
    await page.waitForSelector('#place .chart');
    const dates = await page.locator('#place li a').allTextContents();
    assert.deepEqual(dates, ['2024-07-01 10:00', '2024-06-11 10:00', '2024-06-01 10:00']);
    const geometry = await page.locator('#place h2').textContent();
    assert.match(geometry!, /^47\.8\d+°N, 15\.0\d+°E$/);
    assert.equal(await page.locator('#place figcaption').textContent(), 'nir, 3 of 3 dates are clear');
    assert.equal(await page.locator('#place .dot').count(), 3, 'all dates are clear in the middle');

    await page.fill('#from', '2024-06-05');
    await page.fill('#to', '2024-06-30');
    await page.waitForFunction(() => document.querySelectorAll('#place li').length === 1);
    assert.deepEqual(await page.locator('#place li a').allTextContents(), ['2024-06-11 10:00']);
    assert.equal(await page.locator('#message').textContent(), '');
  });
});

/** Pixels of a web map from one place to another, right and down. */
function pixelsBetween(zoom: number, from: [number, number], to: [number, number]): [number, number] {
  const side = 256 * 2 ** zoom;
  const down = ([, lat]: [number, number]) =>
    Math.asinh(Math.tan((lat * Math.PI) / 180)) * (-side / (2 * Math.PI));
  return [((to[0] - from[0]) / 360) * side, down(to) - down(from)];
}

/** A node with seven dates of a spectrum whose band at 850 nm is bad; on the newest date but one nothing is known. */
async function nodeWithSpectra(t: TestContext): Promise<TilewrightNode> {
  const folder = await tempFolder(t);
  const node = await testNode(t, join(folder, 'data'));
  const [side, count, hole] = [60, 20, -9999];
  for (let day = 1; day <= 7; day++) {
    const next = random(day);
    // Wavelengths out of order, as where one detector is listed after the other.
    const wavelengths = Array.from({ length: count }, (_, band) => 450 + 50 * ((band + 7) % count));
    const bands = wavelengths.map(() => {
      const value = 100 + Math.floor(4000 * next());
      // The sixth day has a tile, but at one pixel alone.
      return Array.from({ length: side * side }, (_, i) => (day === 6 && i > 0 ? hole : value));
    });
    writeEnvi(join(folder, `day${day}.bil`), {
      ...{ width: side, height: side, bands, type: 'int16', interleave: 'bil' },
      lines: [
        'map info = {UTM, 1, 1, 500000, 5300000, 30, 30, 33, North, WGS-84}',
        ...[
          `data ignore value = ${hole}`,
          'wavelength units = Nanometers',
          'reflectance scale factor = 10000',
        ],
        `acquisition time = 2024-06-0${day}T10:00:00Z`,
        `wavelength = {${wavelengths.join()}}`,
        `bbl = {${wavelengths.map((nm) => Number(nm !== 850)).join()}}`,
      ],
    });
    const { failed } = await ingest(node, {
      ...{ href: join(folder, `day${day}.hdr`), collection: 'cubes', precision: 5 },
    });
    assert.deepEqual(failed, []);
  }
  return node;
}

test(
  'a click on a spectrum draws it for the newest dates, with gaps where bands are bad',
  needsChromium,
  async (t) => {
    const node = await nodeWithSpectra(t);
    await inBrowser(await node.listen('127.0.0.1', 0), 1200, async (page) => {
      await page.waitForSelector('.leaflet-tile-loaded');
      const box = (await page.locator('#map').boundingBox())!;
      const [, zoom, lat0, lon0] = /map=(\d+)\/([-\d.]+)\/([-\d.]+)/.exec(page.url())!;
      const [x, y] = pixelsBetween(Number(zoom), [Number(lon0), Number(lat0)], [15.012, 47.845]);
      await page.mouse.click(box.x + box.width / 2 + x, box.y + box.height / 2 + y);
      await page.waitForSelector('#place .key');
      const shown = ['2024-06-07', '2024-06-05', '2024-06-04', '2024-06-03', '2024-06-02'];
      assert.deepEqual(await page.locator('#place .key span').allTextContents(), shown);
      const chart = page.locator('#place .chart').last();
      assert.deepEqual(await chart.locator('path.line title').allTextContents(), shown);
      const labels = await chart.locator('text').allTextContents();
      assert.deepEqual(labels.slice(-2), ['450 nm', '1400 nm']);

      const [, degrees] = /place=([-\d.]+\/[-\d.]+)/.exec(page.url())!;
      const [lat, lon] = degrees!.split('/').map(Number);
      const payload = { geometry: { type: 'Point', coordinates: [lon, lat] }, collections: ['cubes'] };
      const answer = (await node.server.inject({ method: 'POST', url: '/spectra', payload })).json();
      const paths = await chart
        .locator('path.line')
        .evaluateAll((nodes) => nodes.map((one) => one.getAttribute('d')!));
      const drawn: [x: number, y: number][] = [];
      const wanted: [nanometres: number, value: number][] = [];
      for (const [i, path] of paths.entries()) {
        // One gap: 400 nm of bands before 850 nm, and then the others.
        assert.match(path, /^M[^M]*M[^M]*$/);
        const points = path.split(/[ML]/).slice(1);
        assert.equal(points.length, 19);
        drawn.push(...points.map((one) => one.split(' ').map(Number) as [number, number]));
        const entry = answer.spectra.find(({ datetime }: { datetime: string }) =>
          datetime.startsWith(shown[i]!),
        );
        const { bands } = answer.sensors[entry.sensor];
        const good = entry.values.flatMap((value: number, band: number) =>
          bands[band].bad_band ? [] : [[bands[band].wavelength, value]],
        );
        wanted.push(...good.sort(([a]: [number], [b]: [number]) => a - b));
      }
      for (const axis of [0, 1] as const) {
        const [at, of] = [drawn.map((one) => one[axis]), wanted.map((one) => one[axis])];
        const [low, high] = [of.indexOf(Math.min(...of)), of.indexOf(Math.max(...of))];
        const slope = (at[high]! - at[low]!) / (of[high]! - of[low]!);
        for (const [i, value] of of.entries())
          assert.ok(Math.abs(at[i]! - at[low]! - slope * (value - of[low]!)) < 0.02, `point ${i}`);
      }
      // No two lines have one colour.
      const colours = await chart
        .locator('path.line')
        .evaluateAll((nodes) => nodes.map((one) => getComputedStyle(one).stroke));
      assert.equal(new Set(colours).size, shown.length);

      await page.fill('#to', '2024-06-03');
      await page.waitForFunction(() => document.querySelectorAll('#place .key span').length === 3);
      assert.equal(await page.locator('#message').textContent(), '');
    });
  },
);

test('a link restores the state of the page and the legend', needsChromium, async () => {
  const { features } = (await node.server.inject('/search?limit=1&sortby=-pixel_coverage')).json();
  // A corner of cells: up to four of them touch it.
  const [lon, lat] = features[0].bbox as number[];
  let link = '';
  await inBrowser(url, 1200, async (page) => {
    await page.waitForSelector('.leaflet-tile-loaded');
    assert.equal(await page.locator('#legend').isHidden(), true, 'true colour needs none');
    await page.selectOption('#look', { label: 'One band' });
    await page.selectOption('#band', { index: 3 });
    await page.selectOption('#colours', 'magma');
    await page.fill('#low', '0.1');
    await page.fill('#high', '0.4');
    await page.fill('#from', '2024-06-05');
    await page.waitForFunction(() => document.querySelector('#legend')?.textContent?.includes('0.4'));
    assert.equal(await page.locator('#legend').innerText(), 'nir\n≤ 0.1\n≥ 0.4');
    await page.waitForSelector('#busy', { state: 'hidden' });
    link = page.url();
    assert.match(link, /#map=\d+\/-?[\d.]+\/-?[\d.]+&collection=test&from=2024-06-05&look=band&band=10m_b4/);
  });
  const moved = `${link.replace(/map=\d+/, 'map=16')}&place=${lat}/${lon}`;
  const look = async (page: Page) => {
    await page.goto(moved);
    await page.waitForSelector('.leaflet-tile-loaded[src*="magma"][src*="rescale=0.1"]');
    await page.waitForSelector('#place .chart');
    const fields = ['#from', '#low', '#colours'].map((field) => page.inputValue(field));
    assert.deepEqual(await Promise.all(fields), ['2024-06-05', '0.1', 'magma']);
    const dates = await page.locator('#place li a').allTextContents();
    assert.deepEqual(dates, ['2024-07-01 10:00', '2024-06-11 10:00'], 'each date of one cell');
    assert.match(page.url(), /map=16\/.*place=/);
    await page.goto(`${url}/map#collection=none&look=none&map=99&place=x`);
    await page.waitForSelector('.leaflet-tile-loaded:not([src*=magma])');
    assert.equal(await page.locator('#message').textContent(), '');
  };
  await inBrowser(url, 1200, look);
});

test('if reads need a token, the page asks for it and shows the map with it', needsChromium, async (t) => {
  const { node: open, folder } = await nodeWithScenes(t, SCENES.slice(1, 2));
  await open.close();
  const node = await openNode({ data: join(folder, 'data'), memory: 128e6, cores: 1, readToken: 'secret' });
  atEnd(t, () => node.close());
  const url = await node.listen('127.0.0.1', 0);
  for (const path of ['/collections', '/xyz/test/tilejson.json', '/openapi.json'])
    assert.equal((await fetch(url + path)).status, 401, path);
  const look = async (page: Page) => {
    await page.waitForSelector('#access:not([hidden])');
    assert.equal(await page.locator('#message').textContent(), 'This server requires a token.');
    await page.fill('#token', 'wrong');
    await page.click('#access button');
    await page.waitForFunction(() =>
      document.querySelector('#message')?.textContent?.includes('refused this token'),
    );
    await page.fill('#token', 'secret');
    await page.click('#access button');
    await page.waitForSelector('.leaflet-tile-loaded[src^="blob:"]');
    assert.equal(await page.locator('#access').isHidden(), true);
    const shown = await Promise.all((await page.locator('.leaflet-tile-loaded').all()).map(drawn));
    assert.ok(
      shown.some(({ pixels }) => pixels.filter((value, i) => i % 4 === 3 && value === 255).length > 1000),
    );
    const box = (await page.locator('#map').boundingBox())!;
    await page.mouse.click(box.x + box.width / 2 + 40, box.y + box.height / 2 + 30);
    await page.waitForSelector('#place li img[src^="blob:"]');
    assert.doesNotMatch(page.url(), /secret/);
  };
  await inBrowser(url, 1200, look, /\b401\b/);
});

test('the map shows land without tiles, on both sides of the antimeridian', needsChromium, async () => {
  const look = async (page: Page) => {
    await page.waitForSelector('.leaflet-tile-loaded');
    /** Opacity of the land at places, when the view is drawn. */
    const opacityAt = async (view: string, file: string, places: [lon: number, lat: number][]) => {
      await page.goto('about:blank');
      const arrived = page.waitForResponse((answer) => answer.url().endsWith(file));
      await page.goto(`${url}/map#map=${view}`);
      await arrived;
      await page.waitForFunction(() => {
        const canvas = document.querySelector<HTMLCanvasElement>('.leaflet-land-pane canvas');
        const data = canvas?.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data;
        return data?.some((value) => value > 0);
      });
      const [zoom, lat, lon] = view.split('/').map(Number) as [number, number, number];
      const box = (await page.locator('#map').boundingBox())!;
      return page.evaluate(
        (points) => {
          const canvas = document.querySelector<HTMLCanvasElement>('.leaflet-land-pane canvas')!;
          const { left, top, width } = canvas.getBoundingClientRect();
          return points.map(([x, y]) => {
            const scale = canvas.width / width;
            return canvas.getContext('2d')!.getImageData((x - left) * scale, (y - top) * scale, 1, 1).data[3];
          });
        },
        places.map((place): [number, number] => {
          const [x, y] = pixelsBetween(zoom, [lon, lat], place);
          return [box.x + box.width / 2 + x, box.y + box.height / 2 + y];
        }),
      );
    };
    // Siberia, Chukotka beyond the antimeridian, Alaska, and sea south of them.
    const places: [number, number][] = [
      [170, 67],
      [186, 67],
      [205, 65],
      [180, 45],
      [190, 45],
    ];
    assert.deepEqual(await opacityAt('3/60/179', 'land-110m.json', places), [255, 255, 255, 0, 0]);
    assert.deepEqual(
      await opacityAt('6/47/12', 'land-50m.json', [
        [12, 47],
        [12.8, 44.6],
      ]),
      [255, 0],
    );
    assert.equal(await page.locator('.leaflet-control-attribution a[href*=naturalearthdata]').count(), 1);
    await page.uncheck('#land');
    await page.waitForFunction(
      () => !document.querySelector('.leaflet-control-attribution a[href*=naturalearth]'),
    );
  };
  // Chromium warns about the test's own reading of the canvas.
  await inBrowser(url, 1200, look, /willReadFrequently/);
});

test('the page fits a phone', needsChromium, async () => {
  await inBrowser(url, 390, async (page) => {
    await page.waitForSelector('.leaflet-tile-loaded');
    const map = (await page.locator('#map').boundingBox())!;
    assert.ok(map.width === 390 && map.height > 300, 'the map has the width');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, 'nothing is wider');
    await page.click('summary');
    await page.selectOption('#look', { label: 'NDVI' });
    await page.waitForSelector('.leaflet-tile-loaded[src*=ndvi]');
  });
});
