/** The commands `subscribe` and `subscriptions`. The rounds of a subscription are jobs. */
import { Command, type Option } from 'commander';
import type { SubscriptionDocument } from '../../client/index.js';
import type { IngestOptions } from '../../ingest/index.js';
import { isRemoteAddress, plural } from '../../utils/text.js';
import { withConnection } from '../connection.js';
import {
  addOptions,
  allowHostOption,
  createOption,
  optionValues,
  remoteCredentialsOption,
  type TargetOptions,
  withResources,
  withTarget,
} from '../options.js';
import { logToStderr, print, printJson, printTable } from '../output.js';
import { ingestOptions, type RemoteFlags, remoteInputs, remoteOptions, WITH_STAC } from './ingest-options.js';
import { followAndPrint } from './jobs.js';

type SubscriptionsFlags = TargetOptions & {
  pause?: boolean;
  resume?: boolean;
  run?: boolean;
  remove?: boolean;
  allowHost?: string[];
  remoteCredentials?: string;
};

const WHEN = 'with --run without a server: ';

export function subscriptionsCommand(): Command {
  const command = addOptions(
    new Command('subscriptions')
      .description('list subscriptions; or show, pause, resume, run or remove a subscription')
      .argument('[id]', 'id of a subscription'),
    [
      createOption('--pause', 'start no further rounds').conflicts(['resume', 'run', 'remove']),
      createOption('--resume', 'start rounds again; an overdue one starts at once').conflicts([
        'run',
        'remove',
      ]),
      createOption('--run', 'start a round now, and follow its job').conflicts('remove'),
      createOption('--remove', 'remove the subscription; its tiles stay'),
      allowHostOption(WHEN),
      remoteCredentialsOption(WHEN),
    ],
  );
  return withTarget(withResources(command)).action(
    async (id: string | undefined, flags: SubscriptionsFlags) => {
      const { pause = false, resume = false, run = false, remove = false, format } = flags;
      if (id === undefined && (pause || resume || run || remove))
        command.error('error: --pause, --resume, --run and --remove need the id of a subscription');
      return withConnection(flags, async ({ client }) => {
        if (id === undefined) {
          const subscriptions = await client.subscriptions();
          if (format === 'json') printJson({ subscriptions });
          else printList(subscriptions);
          return;
        }
        if (remove) {
          await client.removeSubscription(id);
          if (format === 'json') printJson({ removed: id });
          else print(`subscription ${id} removed`);
          return;
        }
        if (run) {
          const { jobID } = await client.runSubscription(id);
          logToStderr(`job ${jobID} is a round of ${id}`);
          return followAndPrint(client, jobID, format);
        }
        const state = pause ? 'paused' : resume ? 'active' : undefined;
        printSubscription(
          await (state ? client.changeSubscription(id, { state }) : client.subscription(id)),
          format,
        );
      });
    },
  );
}

function printSubscription(subscription: SubscriptionDocument, format: string): void {
  if (format === 'json') {
    printJson(subscription);
    return;
  }
  const { id, state, every, nextRun, lastRound } = subscription;
  print(`subscription ${id}: ${state}, every ${every}`);
  print(searchText(subscription));
  if (lastRound)
    print(
      `last round ${lastRound.started}, ${roundText(lastRound)}${lastRound.job ? ` (job ${lastRound.job})` : ''}`,
    );
  if (nextRun) print(`next round ${nextRun}`);
}

function printList(subscriptions: SubscriptionDocument[]): void {
  const rows = subscriptions.map((subscription) => {
    const { id, state, every, lastRound, nextRun } = subscription;
    return [
      ...[id, state, every, lastRound?.started ?? '-', nextRun ?? '-'],
      ...[lastRound ? roundText(lastRound) : 'no round yet', searchText(subscription)],
    ];
  });
  printTable([['subscription', 'state', 'every', 'last round', 'next round', 'result', 'search'], ...rows]);
}

function roundText({ status, result, error }: NonNullable<SubscriptionDocument['lastRound']>): string {
  if (error) return `${status}: ${error.message} [${error.code}]`;
  if (!result) return status;
  const { ingested, unchanged, failed, tiles } = result;
  const counts = `${plural(ingested, 'scene')} ingested with ${plural(tiles, 'tile')}, ${unchanged} unchanged`;
  return `${status}: ${counts}${failed > 0 ? `, ${failed} failed` : ''}`;
}

function searchText({ inputs }: SubscriptionDocument): string {
  const { stac, bbox, collection } = inputs;
  const { url, collections, datetime, filter, maxCloud, limit, all, assets } = stac;
  const conditions = {
    ...{ collections, bbox, datetime, 'max-cloud': maxCloud, limit, all, bands: assets, into: collection },
    filter: typeof filter === 'object' ? JSON.stringify(filter) : filter,
  };
  const given = Object.entries(conditions).filter(([, value]) => value !== undefined);
  return [url, ...given.map(([name, value]) => `${name} ${value}`)].join(' ');
}

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
