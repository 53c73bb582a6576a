/** Writes every sample below a folder: `node dist/data-samples/main.js FOLDER`. */
import { join } from 'node:path';
import { writeBrokenFiles, writeLandsatLikeScene, writeSentinelLikeSeries } from './index.js';

const [folder, ...rest] = process.argv.slice(2);
if (folder === undefined || folder.startsWith('-') || rest.length > 0) {
  process.stderr.write('usage: node dist/data-samples/main.js FOLDER\n');
  process.exitCode = 2;
} else {
  const series = await writeSentinelLikeSeries(join(folder, 'sentinel-like'));
  const landsat = await writeLandsatLikeScene(join(folder, 'landsat-like'));
  const broken = await writeBrokenFiles(join(folder, 'broken'));
  const paths = [
    ...series.map((file) => file.path),
    landsat.mtlPath,
    ...Object.values(landsat.bandPaths),
    ...broken,
  ];
  process.stdout.write(`${paths.join('\n')}\n`);
}
