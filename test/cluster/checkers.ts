/** The rules that a history must follow. The rules are pure functions of the history. */
import type {
  Burst,
  Count,
  Derived,
  Event,
  History,
  JobEnd,
  Read,
  SceneState,
  Seen,
  TileRead,
  UpkeepRun,
  Write,
} from './history.js';

export interface Violation {
  rule: string;
  detail: string;
  /** The evidence. */
  events: Event[];
}

const isHalf = (seen: Seen): seen is { half: string } => typeof seen === 'object';

/** A scene is complete or absent in every answer. A partial answer may lack tiles, but has tiles of a single delivery. */
export function wholeScenes(reads: Read[]): Violation[] {
  return reads.flatMap((read) =>
    Object.entries(read.scenes).flatMap(([scene, seen]) =>
      isHalf(seen)
        ? [
            {
              rule: 'whole scenes',
              detail: `${scene} in an answer of ${read.node}: ${seen.half}`,
              events: [read],
            },
          ]
        : [],
    ),
  );
}

/** No tile appears twice in an answer, and an answer of one page has as many tiles as its count says. */
export function exactAnswers(reads: Read[]): Violation[] {
  return reads.flatMap((read) => {
    const { node, twice, matched, returned } = read;
    const faults: string[] = [];
    if (twice.length > 0) faults.push(`${node} has answered ${twice.join(', ')} more than once`);
    if (matched !== returned) faults.push(`${node} counts ${matched} tiles and has answered ${returned}`);
    return faults.map((detail) => ({ rule: 'exact answers', detail, events: [read] }));
  });
}

/** No job has worked on a tile twice, even if its tasks ran on several nodes, and some of them again on others. */
export function exactResults(jobs: JobEnd[]): Violation[] {
  return jobs.flatMap((job) => {
    const twice = twiceIn(job.tiles);
    const detail = `a job of ${job.node} has ${twice.join(', ')} more than once`;
    return twice.length > 0 ? [{ rule: 'exact results', detail, events: [job] }] : [];
  });
}

/**
 * The answers of a node do not go back: they contain what was acknowledged through this node before, and what this node has returned
 * before, or something later; and nothing that was never written or was refused.
 */
export function noWayBack(writes: Write[], reads: Read[]): Violation[] {
  const violations: Violation[] = [];
  for (const [scene, all] of byScene(writes)) {
    const made = all.filter(({ outcome }) => outcome !== 'refused');
    for (const node of new Set(reads.map((read) => read.node))) {
      const seen = reads.filter((read) => read.node === node && !read.partial && scene in read.scenes);
      violations.push(...wayBackOf(scene, made, seen));
    }
  }
  return violations;
}

/** The rule for one scene through one node. Writes count from 1; 0 is before the first. */
function wayBackOf(scene: string, made: Write[], reads: Read[]): Violation[] {
  const answers = [...reads].sort((a, b) => a.invoked - b.invoked);
  const known: { at: number; since: number; event: Event }[] = [];
  for (const [i, write] of made.entries())
    if (write.outcome === 'done' && write.node === reads[0]?.node)
      known.push({ at: i + 1, since: write.ended, event: write });
  const violations: Violation[] = [];
  for (const read of answers) {
    const state = read.scenes[scene]!;
    if (isHalf(state)) continue;
    const before = known.filter(({ since }) => since <= read.invoked);
    const last = before.reduce((a, b) => (b.at > a.at ? b : a), { at: 0, since: 0, event: read as Event });
    const at = firstFrom(last.at, state, made, read.ended);
    if (at !== undefined) {
      known.push({ at, since: read.ended, event: read });
      continue;
    }
    const isKnown = firstFrom(0, state, made, read.ended) !== undefined;
    const detail = isKnown
      ? `${read.node} answers ${nameOf(state)} of ${scene}, though it had ${nameOf(stateAt(last.at, made))} before`
      : `${read.node} answers ${nameOf(state)} of ${scene}, which nobody has written`;
    violations.push({
      rule: 'no way back',
      detail,
      events: [...made, ...(last.event === read ? [] : [last.event]), read],
    });
  }
  return violations;
}

const stateAt = (at: number, made: Write[]): SceneState => (at === 0 ? 'absent' : made[at - 1]!.to);

/** The first write from `from` on that leads to a state and had started by then. */
function firstFrom(from: number, state: SceneState, made: Write[], ended: number): number | undefined {
  for (let at = from; at <= made.length; at++) {
    if (at > 0 && made[at - 1]!.invoked > ended) return undefined;
    if (stateAt(at, made) === state) return at;
  }
  return undefined;
}

/** After the recovery, every node returns what was acknowledged last, completely, and all nodes return the same. */
export function nothingLost(writes: Write[], last: Read[]): Violation[] {
  const violations: Violation[] = [];
  const scenes = byScene(writes);
  for (const read of last) {
    if (read.partial)
      violations.push({ rule: 'healed', detail: `${read.node} answers in part`, events: [read] });
    for (const [scene, state] of Object.entries(read.scenes)) {
      if (isHalf(state)) continue;
      const made = (scenes.get(scene) ?? []).filter(({ outcome }) => outcome !== 'refused');
      const allowed = finalStates(made);
      if (!allowed.includes(state))
        violations.push({
          rule: 'nothing lost',
          detail: `${scene} is ${nameOf(state)} at ${read.node}, but should be ${allowed.map(nameOf).join(' or ')}`,
          events: [...made, read],
        });
    }
    const [first] = last;
    if (JSON.stringify(first!.scenes) !== JSON.stringify(read.scenes))
      violations.push({
        rule: 'all answer alike',
        detail: `${first!.node} and ${read.node} differ`,
        events: [first!, read],
      });
  }
  return violations;
}

/** The possible states after the last write; if its outcome is unknown, also the state before. */
function finalStates(made: Write[]): SceneState[] {
  const at = made.length;
  const states = [stateAt(at, made)];
  if (made.at(-1)?.outcome === 'unknown') states.push(stateAt(at - 1, made));
  return [...new Set(states)];
}

/** In the end, counts match the found tiles. `sizeOf` is the number of tiles of a scene in a state. */
export function exactCounts(
  counts: Count[],
  last: Read[],
  sizeOf: (scene: string, delivery: number) => number,
): Violation[] {
  return counts.flatMap((count) => {
    const read = last.find(({ node }) => node === count.node);
    if (!read) return [];
    const scenes = Object.entries(read.scenes).flatMap(([scene, state]) =>
      typeof state === 'number' ? [[scene, sizeOf(scene, state)]] : [],
    );
    const found = JSON.stringify(scenes.sort());
    const listed = JSON.stringify(Object.entries(count.scenes).sort());
    const faults: string[] = [];
    if (count.tiles !== read.returned) faults.push(`counts ${count.tiles} tiles and finds ${read.returned}`);
    if (listed !== found) faults.push(`lists scenes ${listed} and finds ${found}`);
    const events = [count, read];
    return faults.map((fault) => ({ rule: 'exact counts', detail: `${count.node} ${fault}`, events }));
  });
}

/** A tile that a node has just returned is missing only if a later change of its scene has started. */
export function noFalseAbsence(writes: Write[], tiles: TileRead[]): Violation[] {
  const scenes = byScene(writes);
  return tiles.flatMap((tile) => {
    if (tile.outcome !== 'gone') return [];
    const made = (scenes.get(tile.scene) ?? []).filter(({ outcome }) => outcome !== 'refused');
    const shown = made.findIndex(({ to }) => to === tile.delivery);
    if (made.slice(shown + 1).some(({ invoked }) => invoked <= tile.ended)) return [];
    const detail = `${tile.node} says that ${tile.tile}/${tile.group} is gone, which it had just shown: ${tile.why}`;
    return [{ rule: 'no false absence', detail, events: [...made, tile] }];
  });
}

/** The bytes of a tile are correct from any source; after the recovery, they are always available. */
export function rightBytes(during: TileRead[], last: TileRead[]): Violation[] {
  const of = (reads: TileRead[], bad: TileRead['outcome'][]) =>
    reads
      .filter(({ outcome }) => bad.includes(outcome))
      .map((read) => ({
        rule: 'right bytes',
        detail: `${read.tile}/${read.group} from ${read.node}: ${read.outcome}${read.why ? `, ${read.why}` : ''}`,
        events: [read],
      }));
  return [...of(during, ['wrong', 'failed']), ...of(last, ['wrong', 'failed', 'gone', 'away'])];
}

/**
 * After the last derivation, the derived tiles are those of the current deliveries of the scenes, and these are the deliveries that
 * were acknowledged last. `filesOf` returns the checksums of the correct files.
 */
export function freshDerivations(
  writes: Write[],
  all: Derived[],
  filesOf: (scene: string, delivery: number) => ReadonlyMap<string, number>,
): Violation[] {
  const made = byScene(writes);
  return all.flatMap((derived) =>
    Object.entries(derived.scenes).flatMap(([scene, { delivery, files }]) => {
      const faults: string[] = [];
      const of = (made.get(scene) ?? []).filter(({ outcome }) => outcome !== 'refused');
      const allowed = finalStates(of);
      if (!allowed.includes(delivery))
        faults.push(`is ${nameOf(delivery)}, but should be ${allowed.map(nameOf).join(' or ')}`);
      const right = typeof delivery === 'number' ? filesOf(scene, delivery) : new Map<string, number>();
      const missing = [...right.keys()].filter((file) => !(file in files));
      const extra = Object.keys(files).filter((file) => !right.has(file));
      const stale = [...right].filter(([file, sum]) => file in files && files[file] !== sum);
      if (missing.length > 0) faults.push(`lacks ${missing.length} derived files, like ${missing[0]}`);
      if (extra.length > 0) faults.push(`has ${extra.length} derived files too many, like ${extra[0]}`);
      if (stale.length > 0)
        faults.push(
          `has ${stale.length} of ${right.size} derived files of another delivery than ${delivery}, like ${stale[0]![0]}`,
        );
      return faults.map((fault) => ({
        rule: 'fresh derivations',
        detail: `${scene} at ${derived.node} ${fault}`,
        events: [...of, derived],
      }));
    }),
  );
}

/** While all nodes are healthy, each of many concurrent searches is answered completely. */
export function fullBursts(bursts: Burst[]): Violation[] {
  return bursts
    .filter(({ isHealthy, partial, failed }) => isHealthy && partial + failed > 0)
    .map((burst) => ({
      rule: 'full bursts',
      detail: `of ${burst.searches} searches at once ${burst.node} answered ${burst.partial} in part and ${burst.failed} not at all: ${burst.why}`,
      events: [burst],
    }));
}

/** Checkpoints that one run may write: one, and one more for each node that was faster. */
const MOST_MANIFESTS = 3;

/**
 * A checkpoint and a garbage collection finish however many commits arrive in the meantime: a run writes only a few checkpoints. Unless a
 * fault has kept all of them from finishing, both have finished at least once.
 */
export function upkeepFinishes(runs: UpkeepRun[]): Violation[] {
  const violations = runs
    .filter(({ manifests }) => manifests > MOST_MANIFESTS)
    .map((run): Violation => {
      const { work, manifests, commits, invoked, ended } = run;
      const detail = `a ${work} wrote ${manifests} checkpoints in ${Math.round(ended - invoked)} ms, while ${commits} commits came`;
      return { rule: 'upkeep finishes', detail, events: [run] };
    });
  if (runs.length === 0 || runs.some(({ outcome }) => outcome === 'failed')) return violations;
  for (const wanted of ['checkpoint', 'sweep'] as const)
    if (!runs.some(({ work }) => work === wanted))
      violations.push({ rule: 'upkeep finishes', detail: `no ${wanted} has finished`, events: runs });
  return violations;
}

export interface LoggedCommit {
  seq: number;
  claim: string;
  fence: number;
  segment: string;
  slots: string;
}

/** The log after a checkpoint: its numbers have no gap up to its head, none appears twice, and no lock has committed twice. */
export function soundLog(checkpoint: number, head: number, entries: LoggedCommit[]): Violation[] {
  const faults: string[] = [];
  const numbers = entries.map(({ seq }) => seq);
  for (const seq of twiceIn(numbers)) faults.push(`number ${seq} is there twice`);
  for (let seq = checkpoint + 1; seq <= head; seq++)
    if (!numbers.includes(seq)) faults.push(`number ${seq} of ${head} is missing`);
  for (const seq of numbers)
    if (seq > head || seq <= checkpoint) faults.push(`number ${seq} is none of ${checkpoint + 1} to ${head}`);
  for (const claim of twiceIn(entries.map(({ claim, fence }) => `${claim} of fence ${fence}`)))
    faults.push(`the claim ${claim} has committed twice`);
  for (const segment of twiceIn(entries.map(({ segment }) => segment)))
    faults.push(`segment ${segment} is named twice`);
  return faults.map((detail) => ({ rule: 'sound log', detail, events: [] }));
}

/** Every entry of the log has an equal copy in the archive. `copies` has their text by number. */
export function soundCopies(entries: LoggedCommit[], copies: Map<number, string>): Violation[] {
  return entries.flatMap((entry) => {
    const { seq, segment } = entry;
    const copy = copies.get(seq);
    const wanted = JSON.stringify(copyOf(entry));
    let detail: string;
    if (copy === undefined) detail = `commit ${seq} (segment ${segment}) has no copy in the store`;
    else if (copy !== wanted) detail = `commit ${seq} is ${wanted} in etcd, but ${copy} in the store`;
    else return [];
    return [{ rule: 'sound log', detail, events: [] }];
  });
}

const copyOf = ({ seq, segment, slots, claim, fence }: LoggedCommit) => ({
  seq,
  segment,
  slots,
  claim,
  fence,
});

/** The records in the data folder of a node, and those that the log has for its slots: text by table and key. */
export interface ReplicaContent {
  node: string;
  /** The last commit that the folder contains. */
  applied: number;
  expected: Map<string, string>;
  held: Map<string, string>;
}

/** When all writes have ended, the folder of every node contains exactly the records of its slots in the log. */
export function sameReplicas(head: number, replicas: ReplicaContent[]): Violation[] {
  return replicas.flatMap(({ node, applied, expected, held }) => {
    const faults: string[] = [];
    if (applied !== head) faults.push(`has applied commit ${applied} of ${head}`);
    const missing = [...expected.keys()].filter((key) => !held.has(key));
    const extra = [...held.keys()].filter((key) => !expected.has(key));
    const other = [...expected].filter(([key, text]) => held.has(key) && held.get(key) !== text);
    if (missing.length > 0) faults.push(`lacks ${missing.length} records: ${missing.slice(0, 3).join(', ')}`);
    if (extra.length > 0)
      faults.push(`has ${extra.length} records too many: ${extra.slice(0, 3).join(', ')}`);
    for (const [key, text] of other.slice(0, 3))
      faults.push(`holds ${key} as ${held.get(key)?.slice(0, 200)} instead of ${text.slice(0, 200)}`);
    return faults.map((fault) => ({ rule: 'same replicas', detail: `${node} ${fault}`, events: [] }));
  });
}

export interface SeenPlacement {
  node: string;
  version: number;
  owners: number;
  /** Owners of each slot. */
  slots: { node: string; state: string }[][];
}

/** All nodes know the same placement, in which every slot has its owners, all of them running and available. */
export function wholePlacement(placements: SeenPlacement[], running: string[]): Violation[] {
  const faults = new Set<string>();
  const versions = placements.map(({ node, version }) => `${version} at ${node}`);
  if (new Set(placements.map(({ version }) => version)).size > 1)
    faults.add(`nodes know different placements: ${versions.join(', ')}`);
  for (const { slots, owners, node } of placements) {
    const wanted = Math.min(owners, running.length);
    const lacking = slots.filter(
      (of) => of.filter(({ state }) => state === 'available').length !== wanted || of.length !== wanted,
    );
    if (lacking.length > 0)
      faults.add(
        `${lacking.length} slots have not ${wanted} owners that answer and no others, as ${node} knows it: ${JSON.stringify(lacking[0])}`,
      );
    const gone = new Set(
      slots
        .flat()
        .map((owner) => owner.node)
        .filter((id) => !running.includes(id)),
    );
    if (gone.size > 0) faults.add(`${[...gone].join(', ')} own slots and do not run, as ${node} knows it`);
  }
  return [...faults].map((detail) => ({ rule: 'whole placement', detail, events: [] }));
}

/** Answers of a node about jobs: a text for each path. */
export interface JobAnswers {
  node: string;
  answers: ReadonlyMap<string, string>;
}

/** All nodes list the same jobs, and know the same state, log and results of each. */
export function sameJobs([first, ...others]: JobAnswers[]): Violation[] {
  if (!first) return [];
  return others.flatMap(({ node, answers }) =>
    [...new Set([...first.answers.keys(), ...answers.keys()])].flatMap((path) => {
      const [one, other] = [first.answers.get(path), answers.get(path)];
      if (one === other) return [];
      const detail = `${path} is ${excerpt(one, other)} at ${first.node}, and ${excerpt(other, one)} at ${node}`;
      return [{ rule: 'same jobs', detail, events: [] }];
    }),
  );
}

/** The part of a text that begins shortly before its first difference to another one. */
function excerpt(text: string | undefined, other = ''): string {
  if (text === undefined) return 'missing';
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  return JSON.stringify(text.slice(Math.max(0, at - 40), at + 120));
}

/** The correct results, from a single node. */
export interface Truth {
  /** Number of tiles of a delivery. */
  sizeOf(scene: string, delivery: number): number;
  /** Checksums of the files of the tiles that are derived from a delivery. */
  filesOf(scene: string, delivery: number): ReadonlyMap<string, number>;
}

/** Applies all rules; `healed` is the time after which the cluster had to be recovered. */
export function check(history: Pick<History, 'of'>, healed: number, truth: Truth): Violation[] {
  const writes = history.of('write');
  const reads = history.of('read');
  const tiles = history.of('tile');
  const isLast = ({ invoked }: { invoked: number }) => invoked >= healed;
  return [
    ...wholeScenes(reads),
    ...exactAnswers(reads.filter(({ partial }) => !partial)),
    ...exactResults(history.of('job')),
    ...noWayBack(writes, reads),
    ...nothingLost(writes, reads.filter(isLast)),
    ...exactCounts(history.of('count'), reads.filter(isLast), truth.sizeOf),
    ...noFalseAbsence(writes, tiles),
    ...freshDerivations(writes, history.of('derived'), truth.filesOf),
    ...fullBursts(history.of('burst')),
    ...upkeepFinishes(history.of('upkeep')),
    ...rightBytes(
      tiles.filter((tile) => !isLast(tile)),
      tiles.filter(isLast),
    ),
  ];
}

function byScene(writes: Write[]): Map<string, Write[]> {
  const scenes = new Map<string, Write[]>();
  for (const write of [...writes].sort((a, b) => a.invoked - b.invoked))
    scenes.set(write.scene, [...(scenes.get(write.scene) ?? []), write]);
  return scenes;
}

function twiceIn<T>(all: T[]): T[] {
  return [...new Set(all.filter((one, i) => all.indexOf(one) !== i))];
}

const nameOf = (state: SceneState) => (state === 'absent' ? 'nothing' : `delivery ${state}`);
