import { Command, type Option } from 'commander';
import type { IngestOptions } from '../../../ingest/index.js';
import { isRemoteAddress } from '../../../utils/remote-address.js';
import { withConnection } from '../../cli-connection.js';
import {
  addOptions,
  createOption,
  optionValues,
  type TargetOptions,
  withTarget,
} from '../../options/index.js';
import { logToStderr } from '../../output/index.js';
import { ingestOptions } from '../ingest-options.js';
import { type RemoteFlags, remoteInputs, remoteOptions, WITH_STAC } from '../ingest-remote-options.js';
import { printSubscription } from './subscriptions-command.js';

type SubscribeFlags = TargetOptions & IngestOptions & RemoteFlags & { every: string; name?: string };

/** The flags of `ingest` that describe a repeated search. */
const SEARCH_FLAGS = [
  ...['collection', 'grid', 'precision', 'bbox', 'datetime', 'bands', 'cloudTest', 'compress'],
];

/** The help of flags whose meaning for `ingest` depends on `--from-stac`, which is always given here. */
const SEARCH_HELP: Record<string, string> = {
  fromStac:
    'STAC API, static catalog, ItemCollection or Item whose scenes are ingested; --collection, --datetime and --bands select scenes and assets',
  collection: 'collections of the archive to search, separated by commas; by default all',
  datetime:
    'dates to search: 2024, 2024-06, 2024-06-01, or start/end, also with an open end, such as 2024-05/..',
  bands: 'assets or bands to read, such as red,nir,scl',
};

/** An option of `ingest` with the help that fits a repeated search. */
function ofSearch(option: Option): Option {
  option.description = SEARCH_HELP[option.attributeName()] ?? option.description.replace(WITH_STAC, '');
  return option;
}

export function subscribeCommand(): Command {
  const inputs = ingestOptions()
    .filter((option) => SEARCH_FLAGS.includes(option.attributeName()))
    .map(ofSearch);
  // Servers read with credentials of their own.
  const remote = remoteOptions()
    .filter((option) => option.attributeName() !== 'remoteCredentials')
    .map(ofSearch)
    .map((option) => (option.attributeName() === 'fromStac' ? option.makeOptionMandatory() : option));
  const command = addOptions(
    new Command('subscribe').description(
      'repeat "ingest --from-stac" at intervals while a server runs; "tilewright subscriptions" shows the results',
    ),
    [
      ...remote,
      createOption(
        '--every <time>',
        'time between two rounds, from 1m to 30d, such as 30m, 6h or 1d',
      ).makeOptionMandatory(),
      createOption(
        '--name <name>',
        'id of the subscription (small letters, digits and -); by default it follows from the search',
      ),
      ...inputs,
    ],
  );
  return withTarget(command).action(async (flags: SubscribeFlags) => {
    const { every, name } = flags;
    const fail = (text: string): never => command.error(text);
    if (!isRemoteAddress(flags.fromStac!))
      fail('error: --from-stac needs a URL, because it is searched again');
    const search = await remoteInputs(flags, optionValues(inputs, flags), fail);
    await withConnection(
      flags,
      async ({ client, name: where }) => {
        const request = { ...(name !== undefined && { name }), every, inputs: search };
        printSubscription(await client.subscribe(request), flags.format);
        if (where === flags.data)
          logToStderr(
            `no server has ${where} open: rounds start when "tilewright serve --allow-host HOST" runs, with the hosts of the catalog and of its files`,
          );
      },
      { create: true },
    );
  });
}
