/** `tilewright export`: writes the tiles of a region as one GeoTIFF. */
import { Command, InvalidArgumentError } from 'commander';
import type { ExportResults } from '../../derive/index.js';
import { formatDuration } from '../../html/index.js';
import { plural } from '../../utils/text.js';
import { runJob, withConnection } from '../connection.js';
import {
  addOptions,
  createOption,
  type JobOptions,
  splitBands,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { print, printJson, printWarnings } from '../output.js';

type ExportFlags = JobOptions & { layer?: string; bands?: string; output: string };

export function exportCommand(): Command {
  const command = addOptions(
    new Command('export').description(
      'write the tiles of a region as one Cloud Optimized GeoTIFF; tiles are complete, not clipped to the region; of several dates, the least cloudy one that is clear at a pixel counts',
    ),
    [
      createOption(
        '--output <path>',
        'the file to write, .tif or .tiff; an existing file is replaced',
        parseTiffPath,
      ).makeOptionMandatory(),
      createOption(
        '--layer <model>',
        'the tiles that the models of this kind have made; for cloud-removal, also the raw tiles without cloud',
      )
        .choices(['ndvi', 'ndmi', 'cloud-removal'])
        .conflicts(['bands', 'source']),
      createOption('--bands <list>', 'names of bands, or expressions, such as red,nir or ndvi'),
    ],
  );
  return withJobOptions(command).action(async (flags: ExportFlags) => {
    if (flags.layer === undefined && flags.bands === undefined)
      command.error("error: required option '--layer <model>' or '--bands <list>' not specified");
    const { layer, bands } = flags;
    const inputs = { filter: toFilterParams(flags), layer, bands: bands && splitBands(bands) };
    return withConnection(flags, async ({ client }) => {
      const { job, results } = await runJob('tiles', (hooks) =>
        client.run<ExportResults>('export', inputs, hooks),
      );
      await client.download(job, results.file, flags.output);
      if (flags.format === 'json') return printJson({ job, ...results, file: flags.output });
      const { width, height, dataType, crs, tiles, filled, withoutCloud, seconds } = results;
      const kinds = filled === undefined ? '' : ` (${filled} filled, ${withoutCloud} without cloud)`;
      print(
        `${flags.output}: ${plural(tiles, 'tile')}${kinds}, ${width} x ${height} px, ${dataType}, ${crs}, ${formatDuration(seconds)}`,
      );
      printWarnings(results);
    });
  });
}

function parseTiffPath(value: string): string {
  if (/\.tiff?$/i.test(value)) return value;
  throw new InvalidArgumentError('It must end in .tif or .tiff, because the file is a GeoTIFF.');
}
