/** `tilewright tensor`: stacks the dates of a cell as a NumPy file or a GeoTIFF. */
import { statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import type { Client } from '../../client/index.js';
import type { TensorFile, TensorResults } from '../../derive/index.js';
import { formatDuration } from '../../html/index.js';
import type { Timed } from '../../jobs/index.js';
import { plural } from '../../utils/text.js';
import { runJob, withConnection } from '../connection.js';
import { oneFileOnly } from '../errors.js';
import {
  addOptions,
  createOption,
  type JobOptions,
  parseNumberOption,
  splitBands,
  toFilterParams,
  withJobOptions,
} from '../options.js';
import { logToStderr, print, printJson } from '../output.js';

type TensorFlags = JobOptions & {
  bands: string;
  resolution?: number;
  as?: 'npy' | 'tif';
  stored?: boolean;
  output: string;
};

export function tensorCommand(): Command {
  const command = addOptions(
    new Command('tensor').description(
      'stack bands and expressions of all dates of a cell at one size, as a NumPy file or a GeoTIFF',
    ),
    [
      createOption(
        '--bands <list>',
        'names of bands, or expressions, such as red,nir,mask,ndvi,red/green; for spectra also 860nm or 12; <collection>/<name> reads a band from that collection only',
      ).makeOptionMandatory(),
      createOption(
        '--output <path>',
        'a file ending in .npy or .tif, or a folder',
        parseOutput,
      ).makeOptionMandatory(),
      createOption('--as <kind>', 'if --output is a folder: type of the files in it; default npy').choices([
        'npy',
        'tif',
      ]),
      createOption(
        '--resolution <metres>',
        'pixel size in metres; default: the pixel size of the finest data band',
        parseNumberOption,
      ),
      createOption('--stored', 'write the stored numbers instead of physical values'),
    ],
  );
  return withJobOptions(command).action(async (flags: TensorFlags) => {
    const single = kindOf(flags.output);
    if (single !== undefined && flags.as !== undefined && flags.as !== single)
      command.error(
        `error: --as ${flags.as} contradicts the type of --output ${flags.output}; leave --as out`,
      );
    return withConnection(flags, async ({ client }) => {
      const { resolution, stored, output } = flags;
      const format = single ?? flags.as ?? 'npy';
      const bands = splitBands(flags.bands);
      const inputs = { filter: toFilterParams(flags), bands, resolution, format, stored };
      const { job, results } = await runJob('cells', (hooks) =>
        client.run<TensorResults>('tensor', inputs, hooks),
      );
      if (single && results.files.length > 1) throw oneFileOnly(output, results.files.length);
      if (!single) await mkdir(output, { recursive: true });
      const pathOf = ({ name }: TensorFile) => (single ? output : join(output, name));
      for (const file of results.files) await download(client, job, file, pathOf(file));
      if (flags.format === 'json') printJson({ job, ...results });
      else printResults(results, pathOf);
      if (results.files.length > 0) return;
      logToStderr('error: no tile matches the filter');
      process.exitCode = 1;
    });
  });
}

/** The type of a single file; undefined for a folder. */
function kindOf(output: string): 'npy' | 'tif' | undefined {
  const [, kind] = /\.(npy|tiff?)$/i.exec(output) ?? [];
  return isFolder(output) ? undefined : (kind?.toLowerCase().slice(0, 3) as 'npy' | 'tif' | undefined);
}

const isFolder = (path: string) =>
  /[\\/]$/.test(path) || statSync(path, { throwIfNoEntry: false })?.isDirectory();

function parseOutput(output: string): string {
  if (isFolder(output) || kindOf(output) !== undefined || !/\.[a-z][a-z0-9]{0,9}$/i.test(output))
    return output;
  throw new InvalidArgumentError(
    `Files of the type ${extname(output)} are not written. End it in .npy or .tif, or in / for a folder.`,
  );
}

/** Downloads a file. A NumPy file comes with a JSON file that describes its axes. */
async function download(client: Client, job: string, { name }: TensorFile, path: string): Promise<void> {
  await client.download(job, name, path);
  const sidecar = (file: string) => file.replace(/\.npy$/i, '.json');
  if (name.endsWith('.npy')) await client.download(job, sidecar(name), sidecar(path));
}

function printResults(
  { files, skipped, seconds }: Timed<TensorResults>,
  pathOf: (file: TensorFile) => string,
): void {
  for (const file of files) print(`${pathOf(file)}: ${file.dataType}, ${file.shape.join(' x ')}`);
  const taken = files.flatMap(({ substitutes }) => substitutes);
  for (const line of new Set(taken.map((one) => `${one.collection} has no ${one.asked}: using ${one.taken}`)))
    logToStderr(line);
  for (const [reason, number] of Object.entries(skipped))
    print(`${plural(number, 'cell')} skipped: ${reason}`);
  print(`${plural(files.length, 'file')}, ${formatDuration(seconds)}`);
}
