/** The longest time that a cheap request waits while the server answers one of the dearest requests that it accepts, or refuses one. */
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../support/bench.js';
import { treeCpuSeconds } from '../support/measure-tree.js';

interface HeavyRequest {
  what: string;
  path?: '/search' | '/aggregate';
  body: object;
}

const cql2 = (filter: object) => ({ 'filter-lang': 'cql2-json', filter });
const id = { property: 'id' };
const WORLD = { west: -179, south: -80, east: 179, north: 80 };

/** A star with so many corners, whose every second one is near its centre. */
function star(corners: number, { west, south, east, north } = WORLD): object {
  const ring = Array.from({ length: corners }, (_, i) => {
    const angle = (2 * Math.PI * i) / corners;
    const reach = i % 2 === 0 ? 0.2 : 0.5;
    return [
      (west + east) / 2 + (east - west) * reach * Math.cos(angle),
      (south + north) / 2 + (north - south) * reach * Math.sin(angle),
    ];
  });
  return { type: 'Polygon', coordinates: [[...ring, ring[0]]] };
}

function boxes(count: number): object {
  const coordinates = Array.from({ length: count }, (_, i) => {
    const [x, y] = [-179 + (i % 350), -80 + Math.floor(i / 350) * 5];
    return [
      [
        [x, y],
        [x + 0.3, y],
        [x + 0.3, y + 0.3],
        [x, y + 0.3],
        [x, y],
      ],
    ];
  });
  return { type: 'MultiPolygon', coordinates };
}

export const heavyRequests: HeavyRequest[] = [
  {
    what: 'page of 10,000 Items, by id',
    body: { limit: 10_000, sortby: [{ field: 'id', direction: 'asc' }] },
  },
  { what: 'page of 10,000 Items, newest first', body: { limit: 10_000 } },
  { what: 'id LIKE of two words', body: cql2({ op: 'like', args: [id, '%b2%c1%'] }) },
  { what: 'id LIKE of 400 words', body: cql2({ op: 'like', args: [id, `${'%a'.repeat(400)}z`] }) },
  {
    what: 'CASEI(id) compared',
    body: cql2({ op: '>', args: [{ op: 'casei', args: [id] }, 'sentinel-2-l2a_s2b'] }),
  },
  {
    what: '20 comparisons of ids',
    body: cql2({ op: 'or', args: Array.from({ length: 20 }, (_, i) => ({ op: '<', args: [id, `a${i}`] })) }),
  },
  {
    what: '99 comparisons of ids',
    body: cql2({ op: 'or', args: Array.from({ length: 99 }, (_, i) => ({ op: '<', args: [id, `a${i}`] })) }),
  },
  { what: 'star of 9,000 corners', body: { intersects: star(9_000) } },
  { what: '1,900 boxes', body: { intersects: boxes(1_900) } },
  {
    what: 'S_TOUCHES with a star of 9,000 corners',
    body: cql2({ op: 's_touches', args: [{ property: 'geometry' }, star(9_000)] }),
  },
  {
    what: '60 stars of 150 corners',
    body: cql2({
      op: 'or',
      args: Array.from({ length: 60 }, () => ({
        op: 's_intersects',
        args: [{ property: 'geometry' }, star(150)],
      })),
    }),
  },
  {
    what: 'all counts over a star of 9,000 corners',
    path: '/aggregate',
    body: {
      intersects: star(9_000),
      aggregations: ['total_count', 'datetime_frequency', 'grid_geohash_frequency'],
    },
  },
  {
    what: '10,000 ids',
    body: { ids: Array.from({ length: 10_000 }, (_, i) => `sentinel-2-l2a_none${i}_g9q8yy`) },
  },
];

export interface Waits {
  what: string;
  status: number;
  /** Medians of the rounds: of the longest wait of a cheap request, the time to the whole answer, and the CPU time of the server, ms. */
  wait: number;
  answer: number;
  cpu: number;
}

/** Sends each request while another client asks for a small document, again 5 ms after each answer. */
export async function waitsBeside(
  url: string,
  processes: number[],
  requests: readonly HeavyRequest[],
  rounds: number,
): Promise<Waits[]> {
  const all: Waits[] = [];
  for (const { what, path = '/search', body } of requests) {
    const rows: Omit<Waits, 'what'>[] = [];
    for (let round = 0; round < rounds; round++) {
      let isOver = false;
      let wait = 0;
      const probing = (async () => {
        while (!isOver) {
          const begun = performance.now();
          await (await fetch(`${url}/conformance`)).arrayBuffer();
          wait = Math.max(wait, performance.now() - begun);
          await sleep(5);
        }
      })();
      const cpu = treeCpuSeconds(processes);
      const begun = performance.now();
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      for await (const _ of answer.body!);
      const milliseconds = performance.now() - begun;
      isOver = true;
      await probing;
      const cpuSeconds = treeCpuSeconds(processes) - cpu;
      rows.push({ status: answer.status, wait, answer: milliseconds, cpu: 1e3 * cpuSeconds });
    }
    const of = (pick: (row: Omit<Waits, 'what'>) => number) => median(rows.map(pick));
    all.push({
      what,
      status: rows[0]!.status,
      wait: of((row) => row.wait),
      answer: of((row) => row.answer),
      cpu: of((row) => row.cpu),
    });
  }
  return all;
}
