/**
 * `placement`: how evenly tiles are distributed over nodes, and how many bytes move when a node joins or leaves, compared with hashing.
 * Less is better.
 */
import { type Placement, rebalance, SLOTS } from '../../src/dht/index.js';
import { emptyPlacement } from '../../src/dht/placement.js';
import { addNode, removeNode } from '../../src/dht/placement-changes.js';
import { decodePlacement, encodePlacement } from '../../src/dht/placement-store.js';
import { DEFAULT_PREFIX_LENGTHS, slotOf } from '../../src/dht/slots.js';
import { cellBbox, geohash } from '../../src/grid/index.js';
import { PreparedGeometry } from '../../src/query/geometry.js';
import { type BenchOptions, type BenchResult, median, result } from '../support/bench.js';
import { type Peer, rendezvous, ring, type WeightedNode } from './placement-peers.js';

const PREFIX = DEFAULT_PREFIX_LENGTHS.geohash;
/** The peers place whole cells, which suits them best. Rendezvous also places prefixes, which keep neighbours together. */
const PEERS: Record<string, Peer> = {
  'ring of 128': ring(128),
  'ring of 512': ring(512),
  rendezvous,
  'rendezvous of prefixes': (cells, nodes) =>
    rendezvous(
      cells.map((cell) => cell.slice(0, PREFIX)),
      nodes,
    ),
};

/** The contiguous United States, roughly: longitude and latitude around the coast and the borders. */
// biome-ignore format: a list of points
const OUTLINE: [lon: number, lat: number][] = [
  [-124.6, 48.4], [-122.8, 49], [-95.2, 49], [-93, 48.6], [-89.6, 48], [-84.6, 46.5], [-83.5, 45.8],
  [-82.4, 43], [-83.1, 42], [-79, 42.7], [-79, 43.3], [-76.4, 44.1], [-74.8, 45], [-71.4, 45],
  [-70.2, 46.3], [-69.2, 47.4], [-67.8, 47.1], [-67, 44.8], [-70.6, 43], [-70, 41.7], [-73.8, 40.6],
  [-75.2, 38.3], [-76, 36.9], [-75.6, 35.3], [-77.9, 33.9], [-81.1, 32], [-81.4, 30.4], [-80.1, 26.8],
  [-80.5, 25.2], [-81.8, 26.1], [-82.8, 27.9], [-84, 30.1], [-89.4, 30.2], [-89.4, 29.1], [-93.8, 29.7],
  [-97.3, 27.6], [-97.2, 25.9], [-99.1, 26.4], [-101.4, 29.8], [-103.1, 29], [-104.5, 29.6],
  [-106.5, 31.8], [-108.2, 31.4], [-111.1, 31.3], [-114.8, 32.5], [-117.1, 32.5], [-120.6, 34.5],
  [-121.9, 36.6], [-123.8, 39.3], [-124.4, 40.4], [-124.1, 44],
];

export async function benchPlacement({ short, log }: BenchOptions): Promise<BenchResult[]> {
  const land = new PreparedGeometry({ type: 'Polygon', coordinates: [[...OUTLINE, OUTLINE[0]!]] });
  const [west, south, east, north] = land.bbox;
  const cells = geohash
    .cover({ west, south, east, north }, short ? 4 : 5)
    .filter((geocode) => land.intersects(cellBbox(geohash, geocode), true));
  log(`${cells.length} cells`);
  const size = short ? 10 : 50;
  const results: BenchResult[] = [];
  for (const [spread, bytes] of [
    ['equal cells', cells.map(() => 1)],
    ['skewed cells', skewed(cells.length)],
  ] as const) {
    const tiles = new Tiles(cells, bytes);
    for (const [what, weightOf] of [
      ['', () => 1],
      [', capacities 1:2:4', (i: number) => 2 ** (i % 3)],
    ] as const) {
      const nodes = Array.from({ length: size }, (_, i) => nodeOf(i, weightOf(i)));
      results.push(...evenness(`${spread}${what}`, tiles, nodes));
      log(`${spread}${what}: evenness done`);
    }
    results.push(...movement(spread, tiles, size));
  }
  return [...results, ...times(new Tiles(cells, skewed(cells.length)), size, short ? 3 : 9)];
}

/** Bytes of cells between 1 and 40, most of them small; the same in every run. */
function skewed(count: number): number[] {
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return Array.from({ length: count }, () => 1 + Math.floor(40 * random() ** 3));
}

function nodeOf(i: number, weight: number) {
  return { id: `node-${String(i).padStart(3, '0')}`, zone: '', weight };
}

class Tiles {
  readonly bytesOfSlots = new Float64Array(SLOTS);
  readonly total: number;

  constructor(
    readonly cells: readonly string[],
    readonly bytes: readonly number[],
  ) {
    cells.forEach((cell, i) => {
      this.bytesOfSlots[slotOf('geohash', cell, PREFIX)]! += bytes[i]!;
    });
    this.total = bytes.reduce((a, b) => a + b, 0);
  }

  /** Bytes on each of the nodes. */
  onNodes(owners: Int32Array, nodes: number): Float64Array {
    const loads = new Float64Array(nodes);
    owners.forEach((node, i) => {
      loads[node]! += this.bytes[i]!;
    });
    return loads;
  }
}

/** Bytes of each slot's owners by node. */
function loadsOf({ nodes, slots }: Placement, bytes: Float64Array): Float64Array {
  const places = new Map(nodes.map(({ id }, place) => [id, place]));
  const loads = new Float64Array(nodes.length);
  slots.forEach((owners, slot) => {
    for (const { node, state } of owners) if (state !== 'leaving') loads[places.get(node)!]! += bytes[slot]!;
  });
  return loads;
}

/** Standard deviation of bytes over weight, in percent of the mean. */
function deviation(loads: Float64Array, nodes: readonly WeightedNode[]): number {
  const each = nodes.map(({ weight }, i) => loads[i]! / weight);
  const mean = each.reduce((a, b) => a + b, 0) / each.length;
  return (100 * Math.sqrt(each.reduce((sum, x) => sum + (x - mean) ** 2, 0) / each.length)) / mean;
}

function evenness(
  what: string,
  tiles: Tiles,
  nodes: readonly (WeightedNode & { zone: string })[],
): BenchResult[] {
  const bytes = tiles.bytesOfSlots;
  const of = (placement: Placement) => deviation(loadsOf(placement, bytes), placement.nodes);
  const begun = emptyPlacement(DEFAULT_PREFIX_LENGTHS, 1);
  const unmeasured = nodes.reduce((placement, node) => addNode(placement, node), begun);
  const first = nodes.slice(0, 3).reduce((placement, node) => addNode(placement, node), begun);
  let grown = rebalance(first, bytes);
  let worst = of(grown);
  for (const node of nodes.slice(3)) {
    grown = addNode(grown, node, bytes);
    worst = Math.max(worst, of(grown));
  }
  const peers = Object.fromEntries(
    Object.entries(PEERS).map(([name, peer]) => [
      name,
      deviation(tiles.onNodes(peer(tiles.cells, nodes), nodes.length), nodes),
    ]),
  );
  const title = `sd of bytes on ${nodes.length} nodes, ${what}`;
  const unit = '% of the mean';
  return [
    result(`${title}: before bytes are known`, unit, of(unmeasured), peers),
    result(`${title}: rebalanced`, unit, of(rebalance(unmeasured, bytes)), peers),
    result(`${title}: grown one by one from 3`, unit, of(grown), peers),
    result(`${title}: the worst on the way`, unit, worst),
    result(`${title}: grown, then rebalanced`, unit, of(rebalance(grown, bytes)), peers),
  ];
}

/** Bytes that a change gives new owners. */
function moved(before: Placement, after: Placement, bytes: Float64Array): number {
  let sum = 0;
  after.slots.forEach((owners, slot) => {
    for (const { node, state } of owners) {
      const isNew = state !== 'leaving' && !before.slots[slot]!.some((owner) => owner.node === node);
      if (isNew) sum += bytes[slot]!;
    }
  });
  return sum;
}

/** Bytes that move when a node joins, relative to its share, and when a node leaves, relative to what it had. */
function movement(what: string, tiles: Tiles, size: number): BenchResult[] {
  const bytes = tiles.bytesOfSlots;
  const nodes = Array.from({ length: size }, (_, i) => nodeOf(i, 1));
  const newcomer = nodeOf(size, 1);
  const goer = nodes[size >> 1]!;
  const share = tiles.total / (size + 1);
  const joins: Record<string, number> = {};
  const leaves: Record<string, number> = {};
  for (const [name, peer] of Object.entries(PEERS)) {
    const ids = (all: readonly WeightedNode[]) => [...peer(tiles.cells, all)].map((node) => all[node]!.id);
    const before = ids(nodes);
    const movedBy = (after: string[]) =>
      after.reduce((sum, id, i) => sum + (id === before[i] ? 0 : tiles.bytes[i]!), 0);
    const had = before.reduce((sum, id, i) => sum + (id === goer.id ? tiles.bytes[i]! : 0), 0);
    joins[name] = movedBy(ids([...nodes, newcomer])) / share;
    leaves[name] = movedBy(ids(nodes.filter((node) => node !== goer))) / had;
  }
  return [1, 2].flatMap((owners) => {
    const before = rebalance(
      nodes.reduce(
        (placement, node) => addNode(placement, node),
        emptyPlacement(DEFAULT_PREFIX_LENGTHS, owners),
      ),
      bytes,
    );
    const had = loadsOf(before, bytes)[size >> 1]!;
    const title = `${what}, ${owners} ${owners === 1 ? 'owner' : 'owners'}: bytes moved when a node`;
    return [
      result(
        `${title} joins, over its share`,
        'x',
        moved(before, addNode(before, newcomer, bytes), bytes) / (owners * share),
        owners === 1 ? joins : {},
      ),
      result(
        `${title} leaves, over what it had`,
        'x',
        moved(before, removeNode(before, goer.id, bytes), bytes) / had,
        owners === 1 ? leaves : {},
      ),
    ];
  });
}

function times(tiles: Tiles, size: number, rounds: number): BenchResult[] {
  const bytes = tiles.bytesOfSlots;
  const nodes = Array.from({ length: size }, (_, i) => nodeOf(i, 1));
  const unmeasured = nodes.reduce(
    (placement, node) => addNode(placement, node),
    emptyPlacement(DEFAULT_PREFIX_LENGTHS, 2),
  );
  const placement = rebalance(unmeasured, bytes);
  const text = encodePlacement(placement);
  const work: Record<string, () => unknown> = {
    'a node joins': () => addNode(placement, nodeOf(size, 1), bytes),
    'a node is removed': () => removeNode(placement, nodes[size >> 1]!.id, bytes),
    'rebalanced by bytes': () => rebalance(unmeasured, bytes),
    'written as text': () => encodePlacement(placement),
    'read from text': () => decodePlacement(text),
  };
  const milliseconds = (run: () => unknown) => {
    const begin = performance.now();
    run();
    return performance.now() - begin;
  };
  return [
    ...Object.entries(work).map(([name, run]) =>
      result(
        `${size} nodes, 2 owners: ${name}`,
        'ms',
        median(Array.from({ length: rounds }, () => milliseconds(run))),
      ),
    ),
    result(`${size} nodes, 2 owners: the document`, 'kB', text.length / 1e3),
  ];
}
