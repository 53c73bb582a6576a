/** Other ways to spread keys over nodes: a ring of hashed tokens, and rendezvous hashing. Neither knows how large the keys are. */
import { createHash } from 'node:crypto';

export interface WeightedNode {
  id: string;
  weight: number;
}

/** The node of each key, as its place among the nodes. */
export type Peer = (keys: readonly string[], nodes: readonly WeightedNode[]) => Int32Array;

/** The first 48 bits of SHA-1, as a number in [0, 1). */
function point(text: string): number {
  return createHash('sha1').update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}

const points = new Map<string, number>();

/** Kept, because each is asked for again and again. */
function pointOfKey(key: string): number {
  const known = points.get(key) ?? point(key);
  points.set(key, known);
  return known;
}

/** Consistent hashing (Karger et al., 1997) with so many tokens a node for each unit of weight. */
export function ring(tokens: number): Peer {
  return (keys, nodes) => {
    const owned = nodes
      .flatMap(({ id, weight }, node) =>
        Array.from({ length: tokens * weight }, (_, i) => ({ at: point(`${id}#${i}`), node })),
      )
      .sort((a, b) => a.at - b.at);
    const at = Float64Array.from(owned, (token) => token.at);
    return Int32Array.from(keys, (key) => owned[firstFrom(at, pointOfKey(key)) % owned.length]!.node);
  };
}

/** The place of the first of some ascending numbers that is not below another. */
function firstFrom(numbers: Float64Array, least: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Rendezvous hashing (Thaler and Ravishankar, 1998): the node with the highest score, -weight / ln(hash of key and node). */
export const rendezvous: Peer = (keys, nodes) => {
  const seeds = nodes.map(({ id }) => Math.floor(point(id) * 2 ** 32));
  return Int32Array.from(keys, (key) => {
    const hashed = Math.floor(pointOfKey(key) * 2 ** 32);
    let best = 0;
    let highest = -Infinity;
    nodes.forEach(({ weight }, node) => {
      const score = -weight / Math.log((mixed(hashed ^ seeds[node]!) + 0.5) / 2 ** 32);
      if (score > highest) [best, highest] = [node, score];
    });
    return best;
  });
};

/** 32 bits mixed well: the finaliser of MurmurHash3. */
function mixed(bits: number): number {
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
