/** Textures against scikit-image (test/fixtures/training/reference_texture.py), and properties that hold for every image. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { type GreyImage, greyLevels, TEXTURE_NAMES, textureOf } from '../../../src/training/texture/glcm.js';

interface Case {
  width: number;
  height: number;
  kind: 'waves' | 'noise' | 'steps' | 'constant';
  masked: number;
  texture: number[];
}

const cases: Case[] = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/training/texture.json', import.meta.url), 'utf8'),
);

function fraction(i: number, factor: number): number {
  const value = 43758.5453 * Math.sin(factor * (i + 1));
  return value - Math.floor(value);
}

/** The formula of reference_texture.py. */
function imageOf({ width, height, kind, masked }: Case): GreyImage {
  const level = {
    waves: (_: number, row: number, column: number) =>
      Math.floor(128 + 60 * Math.sin(column / 7) + 50 * Math.cos(row / 5 + column / 11)),
    noise: (i: number) => 1 + Math.floor(255 * fraction(i, 12.9898)),
    steps: (_: number, row: number, column: number) =>
      1 + 84 * ((Math.floor(column / 5) + Math.floor(row / 3)) % 4),
    constant: () => 77,
  }[kind];
  const levels = Uint8Array.from({ length: width * height }, (_, i) => {
    if (fraction(i, 78.233) < masked) return 0;
    return Math.min(255, level(i, Math.floor(i / width), i % width));
  });
  return { width, height, levels };
}

for (const one of cases)
  test(`texture of ${one.width}x${one.height} ${one.kind}, ${one.masked} masked, matches scikit-image`, () => {
    const texture = textureOf(imageOf(one));
    for (const [i, expected] of one.texture.entries()) {
      const actual = texture![i]!;
      const bound = 1e-6 * Math.max(1, Math.abs(expected));
      assert.ok(Math.abs(actual - expected) <= bound, `${TEXTURE_NAMES[i]}: ${actual} is not ${expected}`);
    }
  });

const images = fc
  .record({ width: fc.integer({ min: 4, max: 20 }), height: fc.integer({ min: 4, max: 20 }) })
  .chain(({ width, height }) =>
    fc.uint8Array({ minLength: width * height, maxLength: width * height }).map((bytes) => {
      const levels = Uint8Array.from(bytes, (level) => level || 1);
      return { width, height, levels };
    }),
  );

function same(a: GreyImage, b: GreyImage): void {
  const [first, second] = [textureOf(a)!, textureOf(b)!];
  for (const [i, value] of first.entries())
    assert.ok(Math.abs(value - second[i]!) <= 1e-9 * Math.max(1, Math.abs(value)), TEXTURE_NAMES[i]);
}

test('an image turned by 180 degrees, or mirrored, has the same texture', () => {
  fc.assert(
    fc.property(images, ({ width, height, levels }) => {
      const image = { width, height, levels };
      same(image, { width, height, levels: levels.toReversed() });
      const mirrored = levels.map(
        (_, i) => levels[Math.floor(i / width) * width + (width - 1 - (i % width))]!,
      );
      same(image, { width, height, levels: mirrored });
    }),
    { seed: 1 },
  );
});

test('values are finite and within their ranges', () => {
  fc.assert(
    fc.property(images, (image) => {
      for (const [i, value] of textureOf(image)!.entries()) {
        const [property] = TEXTURE_NAMES[i]!.split(' ');
        const most = { contrast: 254 ** 2, dissimilarity: 254 }[property!] ?? 1 + 1e-9;
        assert.ok(
          value >= (property === 'correlation' ? -1 - 1e-9 : 0) && value <= most,
          `${property} ${value}`,
        );
      }
    }),
    { seed: 1 },
  );
});

test('an image without an unmasked pair has no texture', () => {
  assert.equal(textureOf({ width: 8, height: 8, levels: new Uint8Array(64) }), null);
  assert.equal(
    textureOf({ width: 3, height: 3, levels: new Uint8Array(9).fill(5) }),
    null,
    'none at distance 3',
  );
  assert.equal(textureOf({ width: 0, height: 0, levels: new Uint8Array() }), null);
});

test('grey levels use one scale, and 0 for masked pixels', () => {
  const plane = Float32Array.of(-0.1, 0, 0.175, 0.35, 2, Number.NaN, Infinity, 0.2);
  const usable = Uint8Array.of(1, 1, 1, 1, 1, 1, 1, 0);
  const levels = greyLevels({ red: plane, green: plane, blue: plane }, usable);
  assert.deepEqual([...levels], [1, 1, 128, 255, 255, 0, 0, 0]);
  const [red, green, blue] = [0.35, 0, 0].map((value) => Float32Array.of(value));
  assert.deepEqual([...greyLevels({ red: red!, green: green!, blue: blue! }, Uint8Array.of(1))], [77]);
});
