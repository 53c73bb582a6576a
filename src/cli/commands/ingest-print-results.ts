/** Prints what `ingest` has made, or with `--dry-run` would make. */
import type { LogLine } from '../../client/index.js';
import { formatDuration } from '../../html/index.js';
import type { IngestResults } from '../../ingest/index.js';
import type { Timed } from '../../jobs/index.js';
import { plural } from '../../utils/plural.js';
import { print } from '../output/index.js';

type SceneFacts = Pick<
  IngestResults['scenes'][number],
  'id' | 'collection' | 'tiles' | 'unchanged' | 'replaced'
>;

function lineOf({ collection, id, tiles, unchanged, replaced }: SceneFacts): string {
  const what = unchanged ? 'already ingested, unchanged' : plural(tiles, 'tile');
  return `${collection}  ${id}  ${what}${replaced ? ', replacing the earlier tiles' : ''}`;
}

/** The line that the log of a job has for each scene that ends. */
const LOGGED_SCENE = /^([^\s/]+)\/(\S+): (?:(unchanged)|(\d+) tiles(, replaced)?)$/;

/** Prints the line of each scene once: when the log of the job has it, or with the results. */
export class SceneLines {
  /** How often each line was printed before the results. */
  private readonly printed = new Map<string, number>();

  /** Returns the line of a scene that has ended; undefined if the line of the log is about something else. */
  static of({ level, text }: LogLine): string | undefined {
    const [, collection, id, unchanged, tiles, replaced] = LOGGED_SCENE.exec(text) ?? [];
    if (level !== 'info' || collection === undefined || id === undefined) return undefined;
    const facts = { tiles: Number(tiles ?? 0), unchanged: unchanged !== undefined };
    return lineOf({ collection, id, ...facts, replaced: replaced !== undefined });
  }

  printEarly(line: string): void {
    this.printed.set(line, (this.printed.get(line) ?? 0) + 1);
    print(line);
  }

  printOnce(line: string): void {
    const times = this.printed.get(line) ?? 0;
    if (times === 0) print(line);
    else if (times === 1) this.printed.delete(line);
    else this.printed.set(line, times - 1);
  }
}

/** Prints the scenes that `shown` has not printed, and their sum. */
export function printResults(
  results: Timed<IngestResults>,
  where: string,
  shown: SceneLines,
  dryRun = false,
): void {
  const { scenes, tiles, failed, seconds } = results;
  for (const scene of scenes) {
    const { id, collection, tiles: made, replaced, geocodes, names = [], fetch } = scene;
    if (geocodes) {
      const read = fetch
        ? `, ${plural(fetch.requests, 'request')}, ${(fetch.bytes / 1e6).toFixed(1)} MB`
        : '';
      print(
        `${collection}  ${id}  ${plural(made, 'tile')} at most${replaced ? ', replacing existing tiles' : ''}${read}`,
      );
      for (const { file, ...facts } of names) {
        const texts = Object.entries(facts).map(([name, value]) => `${name} ${value}`);
        print(`  ${file}: ${texts.join(', ')}`);
      }
      for (const geocode of geocodes) print(`  ${geocode}`);
      continue;
    }
    shown.printOnce(lineOf(scene));
  }
  const same = scenes.filter(({ unchanged }) => unchanged).length;
  if (dryRun) {
    printPlan(results, same, where);
    return;
  }
  if (scenes.length === 0) return;
  const kept =
    same === 0 ? '' : same === scenes.length ? ', unchanged' : `, ${plural(same, 'scene')} unchanged`;
  const lost = failed.length > 0 ? `, ${failed.length} failed` : '';
  print(
    `${plural(tiles, 'tile')} of ${plural(scenes.length, 'scene')} in ${where}${kept}${lost}, ${formatDuration(seconds)}`,
  );
}

/** Prints the sum of a dry run. Scenes that are stored count apart, because an ingest would not read them. */
function printPlan({ scenes, failed }: IngestResults, same: number, where: string): void {
  const planned = scenes.filter(({ unchanged }) => !unchanged);
  const tiles = planned.reduce((sum, scene) => sum + scene.tiles, 0);
  const reads = planned.flatMap(({ fetch }) => fetch ?? []);
  const [requests, bytes] = (['requests', 'bytes'] as const).map((of) =>
    reads.reduce((sum, read) => sum + read[of], 0),
  );
  const read =
    reads.length > 0 ? ` with ${plural(requests!, 'request')} and ${(bytes! / 1e6).toFixed(1)} MB` : '';
  const kept = same > 0 ? `; ${plural(same, 'scene')} already ingested, unchanged` : '';
  const lost = failed.length > 0 ? `; ${failed.length} failed` : '';
  if (scenes.length > 0)
    print(
      `would make at most ${plural(tiles, 'tile')} of ${plural(planned.length, 'scene')} in ${where}${read}${kept}${lost}`,
    );
}
