import { Command } from 'commander';
import type { SubscriptionDocument } from '../../../client/index.js';
import { plural } from '../../../utils/plural.js';
import { withConnection } from '../../cli-connection.js';
import {
  addOptions,
  allowHostOption,
  createOption,
  remoteCredentialsOption,
  type TargetOptions,
  withResources,
  withTarget,
} from '../../options/index.js';
import { logToStderr, print, printJson, printTable } from '../../output/index.js';
import { followAndPrint } from './follow-job.js';

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

export function printSubscription(subscription: SubscriptionDocument, format: string): void {
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
