import { Command } from 'commander';
import type { ExportResults } from '../../../derive/index.js';
import { formatDuration } from '../../../html/index.js';
import { plural } from '../../../utils/plural.js';
import { withConnection } from '../../cli-connection.js';
import { runJob } from '../../cli-run-job.js';
import {
  addOptions,
  createOption,
  type JobOptions,
  splitBands,
  toFilterParams,
  withJobOptions,
} from '../../options/index.js';
import { print, printJson } from '../../output/index.js';

type ExportFlags = JobOptions & { layer?: string; bands?: string; output: string };

/** The tiles, as CQL2, and the bands that the models of a kind make. A raw tile without cloud has no cloud-free tile. */
const LAYERS: Record<string, { tiles: string; bands: string[] }> = {
  ndvi: { tiles: "source = 'predicted'", bands: ['ndvi'] },
  ndmi: { tiles: "source = 'predicted'", bands: ['ndmi'] },
  'cloud-removal': {
    tiles: "source = 'cloud-free' OR (source = 'raw' AND eo:cloud_cover = 0)",
    bands: ['red', 'green', 'blue'],
  },
};

export function exportCommand(): Command {
  const command = addOptions(
    new Command('export').description(
      'write the tiles of a region as one Cloud Optimized GeoTIFF; if tiles of several dates have data, the newest one counts',
    ),
    [
      createOption(
        '--output <path>',
        'the file to write; an existing file is replaced',
      ).makeOptionMandatory(),
      createOption('--layer <model>', 'the tiles that the models of this kind have made')
        .choices(Object.keys(LAYERS))
        .conflicts(['bands', 'source']),
      createOption('--bands <list>', 'names of bands, or expressions, such as red,nir or ndvi'),
    ],
  );
  return withJobOptions(command).action(async (flags: ExportFlags) => {
    if (flags.layer === undefined && flags.bands === undefined)
      command.error("error: required option '--layer <model>' or '--bands <list>' not specified");
    const layer = flags.layer === undefined ? undefined : LAYERS[flags.layer];
    const params = toFilterParams(flags);
    const conditions = [flags.filter, layer?.tiles].flatMap((one) => (one === undefined ? [] : [`(${one})`]));
    const filter = layer ? { ...params, filter: conditions.join(' AND ') } : params;
    const inputs = { filter, bands: layer?.bands ?? splitBands(flags.bands!) };
    return withConnection(flags, async ({ client }) => {
      const { job, results } = await runJob('tiles', (hooks) =>
        client.run<ExportResults>('export', inputs, hooks),
      );
      await client.download(job, results.file, flags.output);
      if (flags.format === 'json') return printJson({ job, ...results, file: flags.output });
      const { width, height, dataType, crs, tiles, seconds } = results;
      print(
        `${flags.output}: ${plural(tiles, 'tile')}, ${width} x ${height} px, ${dataType}, ${crs}, ${formatDuration(seconds)}`,
      );
    });
  });
}
