/** Writes every sample below a folder: `node dist/data-samples/main.js FOLDER`. */
import { join } from 'node:path';
import {
  PAIR_DATES,
  writeBrokenFiles,
  writeLandsatLikeScene,
  writeSafe,
  writeSentinelLikeSeries,
} from './index.js';

const [folder, ...rest] = process.argv.slice(2);
if (folder === undefined || folder.startsWith('-') || rest.length > 0) {
  process.stderr.write('usage: node dist/data-samples/main.js FOLDER\n');
  process.exitCode = 2;
} else {
  const series = await writeSentinelLikeSeries(join(folder, 'sentinel-like'));
  const pairs = await writeSentinelLikeSeries(join(folder, 'cloud-pairs'), { dates: PAIR_DATES });
  const landsat = await writeLandsatLikeScene(join(folder, 'landsat-like'));
  const level2 = await writeSafe(join(folder, 'sentinel-safe'), { level: 'L2A' });
  const level1 = await writeSafe(join(folder, 'sentinel-safe'), { level: 'L1C' });
  const broken = await writeBrokenFiles(join(folder, 'broken'));
  const paths = [
    ...[...series, ...pairs].map((file) => file.path),
    landsat.mtlPath,
    ...Object.values(landsat.bandPaths),
    level2.path,
    level1.path,
    ...broken,
  ];
  process.stdout.write(`${paths.join('\n')}\n`);
}
