import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderReport } from '../../src/cli/report/index.js';
import { fakeReport } from './fake-report.js';

const VOID = new Set([
  'meta',
  'link',
  'br',
  'hr',
  'img',
  'input',
  'col',
  'path',
  'line',
  'rect',
  'circle',
  'polyline',
]);

/** Every tag that opens also closes, in order. */
function assertWellFormed(html: string): void {
  const body = html.replace(
    /<script>[\s\S]*?<\/script>|<style>[\s\S]*?<\/style>|<!doctype[^>]*>|<!--[\s\S]*?-->/gi,
    '',
  );
  const open: string[] = [];
  for (const [tag, slash, name, rest] of body.matchAll(/<(\/?)([a-zA-Z][\w-]*)([^>]*)>/g)) {
    if (slash) assert.equal(open.pop(), name, `${tag} closes what is open`);
    else if (!VOID.has(name) && !rest.endsWith('/')) open.push(name);
  }
  assert.deepEqual(open, []);
}

test('the report shows every place, scene and command, and loads nothing', () => {
  const report = fakeReport({});
  const html = renderReport(report);
  assertWellFormed(html);
  for (const { geocode } of report.training.models) assert.ok(html.includes(geocode));
  for (const { id } of report.scenes) assert.ok(html.includes(id));
  for (const command of report.next) assert.ok(html.includes(command.replaceAll('&', '&amp;')));
  assert.doesNotMatch(html, /https?:\/\//);
  assert.doesNotMatch(html, /<link|@import|url\((?!data:)/);
});

test('no text of the input becomes markup', () => {
  const evil = '<script>alert(1)</script>"\'&';
  const report = fakeReport({});
  report.title = evil;
  report.machine = evil;
  report.collection.id = evil;
  report.query = { ...report.query, command: evil, description: evil };
  report.next = [evil];
  for (const scene of report.scenes)
    Object.assign(scene, { id: evil, platform: evil, size: evil, bands: [evil], warnings: [evil] });
  for (const tile of report.tiles) Object.assign(tile, { scene: evil, preview: `${evil}` });
  report.training.engine = evil;
  report.training.skipped = [{ geocode: 'u26xg', reason: evil }];
  const html = renderReport(report);
  assert.ok(!html.includes('<script>alert'));
  assertWellFormed(html);
});

test('reports without models, of one tile, of one date, of many tiles', () => {
  const empty = fakeReport({});
  empty.training = {
    ...empty.training,
    models: [],
    skipped: [{ geocode: 'u26xg', reason: 'too few' }],
    pooled: null,
  };
  assertWellFormed(renderReport(empty));
  const one = fakeReport({});
  one.tiles = one.tiles.slice(0, 1);
  one.scenes = one.scenes.slice(0, 1);
  one.tiles[0].cloudCover = null;
  assertWellFormed(renderReport(one));
  const many = fakeReport({});
  many.tiles = Array.from({ length: 300 }, (_, i) => ({ ...many.tiles[i % many.tiles.length], id: `t${i}` }));
  assertWellFormed(renderReport(many));
});
