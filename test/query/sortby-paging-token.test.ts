/** The order of a search and its paging tokens: accepted and refused ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Filter } from '../../src/query/index.js';
import {
  decodePagingToken,
  encodePagingToken,
  parseSortby,
  searchDigest,
} from '../../src/query/parameters.js';
import type { SortOrder } from '../../src/storage/index.js';

test('an order is read from a text and from a list of fields', () => {
  assert.deepEqual(parseSortby(undefined), []);
  const byCloud = { column: 'cloud', descending: false };
  for (const given of [
    'eo:cloud_cover,-datetime',
    '+eo:cloud_cover,-datetime',
    ' eo:cloud_cover,-datetime ',
    '+properties.eo:cloud_cover,-properties.datetime',
    [{ field: 'eo:cloud_cover' }, { field: 'properties.datetime', direction: 'desc' }],
    [
      { field: 'eo:cloud_cover', direction: 'asc' },
      { field: 'datetime', direction: 'desc' },
    ],
  ])
    assert.deepEqual(parseSortby(given), [byCloud, { column: 'start', descending: true }], `${given}`);
  // The first of two keys of one column counts.
  assert.deepEqual(parseSortby('-id,+id'), [{ column: 'id', descending: true }]);
  assert.deepEqual(parseSortby('id,-properties.id,-created'), [
    { column: 'id', descending: false },
    { column: 'created', descending: true },
  ]);
  for (const [name, column] of [
    ['id', 'id'],
    ['collection', 'collection'],
    ['created', 'created'],
    ['pixel_coverage', 'coverage'],
    ['platform', 'platform'],
    ['source', 'source'],
    ['geocode', 'geocode'],
  ])
    assert.deepEqual(parseSortby(name), [{ column, descending: false }]);
});

test('an invalid order is refused with the field and the valid fields', () => {
  for (const [given, named] of [
    ['cloud', /cloud.*datetime, id, collection/s],
    ['--id', /-id/],
    ['a.properties.id', /a\.properties\.id/],
    ['constructor', /constructor/],
    ['', /datetime/],
    [5, /5/],
    [[5], /5/],
    [[null], /null/],
    [[{ field: 3 }], /\{"field":3\}/],
    [[{ field: 'id', direction: 'down' }], /down/],
    [[{ field: 'x'.repeat(200), direction: 1 }], /x{40}/],
    [{ field: 'id' }, /field/],
  ] as [unknown, RegExp][])
    assert.throws(() => parseSortby(given), { code: 'TW_QUERY_SORT', message: named });
  assert.throws(
    () => parseSortby([{ field: 'y'.repeat(200), direction: 1 }]),
    ({ message }: Error) => !/y{61}/.test(message),
  );
});

const order: SortOrder = [
  { column: 'cloud', descending: false },
  { column: 'platform', descending: true },
];
const filter: Filter = { op: '=', property: 'collection', value: 'a' };

test('a token is decoded to its cursor only in the same search', () => {
  const digest = searchDigest(filter, order);
  assert.match(digest, /^[-\w]{12}$/);
  assert.notEqual(digest, searchDigest(filter, []));
  assert.notEqual(digest, searchDigest({ ...filter, value: 'b' }, order));
  fc.assert(
    fc.property(fc.integer(), fc.string(), fc.string(), fc.boolean(), (start, collection, id, hasKeys) => {
      const place = { start, collection, id, ...(hasKeys && { keys: [null, 'landsat-8'] }) };
      const token = encodePagingToken(place, digest);
      assert.match(token, /^[-\w]+$/);
      assert.deepEqual(decodePagingToken(token, digest, order), place);
      assert.throws(() => decodePagingToken(token, 'another', order), {
        code: 'TW_QUERY_TOKEN_OTHER_SEARCH',
      });
    }),
    { seed: 42, numRuns: 50 },
  );
});

test('a token that was not issued is refused', () => {
  const refused = (value: unknown, of = order) => {
    const token =
      typeof value === 'string' ? value : Buffer.from(JSON.stringify(value)).toString('base64url');
    assert.throws(() => decodePagingToken(token, 'd', of), { code: 'TW_QUERY_TOKEN' }, JSON.stringify(value));
  };
  const fine = ['d', [5, 'x'], 1, 'c', 'i'];
  const token = Buffer.from(JSON.stringify(fine)).toString('base64url');
  assert.deepEqual(decodePagingToken(token, 'd', order).keys, [5, 'x']);
  refused('');
  refused('%%%');
  refused('x');
  refused(5);
  refused(fine.slice(1));
  refused([...fine, 1]);
  for (const [at, values] of [
    [0, [5, null]],
    [1, [5, null, {}, [5], [5, 'x', 1], ['5', 'x'], [5, 5], [{}, 'x'], [5, []]]],
    [2, ['1', null]],
    [3, [1, null]],
    [4, [1, null]],
  ] as [number, unknown[]][])
    for (const value of values) refused(fine.with(at, value as string));
  // Numbers are compared as numbers, all other columns as text.
  for (const column of ['start', 'end', 'cloud', 'coverage', 'created'] as const) {
    const by = [{ column, descending: false }] as unknown as SortOrder;
    assert.ok(
      decodePagingToken(Buffer.from(JSON.stringify(fine.with(1, [5]))).toString('base64url'), 'd', by),
    );
    refused(fine.with(1, ['5']), by);
  }
  refused(fine.with(1, [5]), [{ column: 'geocode', descending: false }]);
  // Another encoding of the same cursor was not issued.
  refused(Buffer.from(JSON.stringify(fine, null, 1)).toString('base64url'));
  refused(`${token}==`);
});
