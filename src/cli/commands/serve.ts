import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { Command } from 'commander';
import { messageOf } from '../../errors.js';
import type { NodeConfig } from '../../node.js';
import {
  type CommonOptions,
  createOption,
  parseBytesOption,
  parseNumberOption,
  parsePortOption,
  parsePositiveIntegerOption,
  type ResourceOptions,
  splitList,
  withCloudModel,
  withCommon,
  withData,
  withResources,
} from '../options/option-groups.js';
import { logToStderr, printJson } from '../output/print.js';
import { stopSignal } from '../signals.js';

interface ServeFlags extends CommonOptions, ResourceOptions {
  data: string;
  cloudModel?: string;
  host: string;
  port: number;
  token?: string;
  readToken?: string;
  rateLimit?: number;
  publicUrl?: string;
  trustProxy?: string[];
  allowFolder: string[];
  store?: string;
  etcd?: string;
  clusterName: string;
  advertise?: string;
  secret?: string;
  zone: string;
  weight: number;
  owners?: number;
  grace: number;
  cache?: number;
  maxUpload: number;
}

/** Characters of a secret: a shorter one could be guessed from a message that was listened to. */
const MIN_SECRET_LENGTH = 16;

/** Secrets of deploy/env.example, which everybody can read, begin so. */
const EXAMPLE_SECRET = /^change-?me/i;

/** Ends the command if a secret is one of the examples. */
function rejectExampleSecrets({ token, readToken, secret }: ServeFlags, command: Command): void {
  for (const [name, value] of Object.entries({ token, 'read-token': readToken, secret }))
    if (value !== undefined && EXAMPLE_SECRET.test(value))
      command.error(
        `error: --${name} is that of an example, which everybody knows; take a random one, such as that of "openssl rand -hex 32"`,
      );
}

/** Every address of the machine, of which none is told. */
const WILDCARD = /^(0\.0\.0\.0|\[?::\]?|)$/;

/** What the flags say of a cluster; undefined for a node that is alone with its folder. */
function clusterConfig(flags: ServeFlags, command: Command): NodeConfig['cluster'] {
  const { store, etcd, clusterName: name, zone, weight, owners, host, port } = flags;
  const grace = flags.grace * 1000;
  if (store === undefined) {
    if (etcd !== undefined) command.error('error: --etcd needs --store, where the nodes keep their tiles');
    if (flags.cache !== undefined)
      command.error('error: --cache needs --store; without one the local files are the only ones');
    return undefined;
  }
  if (!(weight > 0)) command.error(`error: --weight ${weight} is not above 0`);
  const servers = etcd === undefined ? [] : splitList(etcd);
  if (servers.length > 0 && !flags.secret)
    command.error('error: --etcd needs --secret, which all nodes share; best by TILEWRIGHT_SECRET');
  if (servers.length > 0 && flags.secret!.length < MIN_SECRET_LENGTH)
    command.error(
      `error: --secret is shorter than ${MIN_SECRET_LENGTH} characters; take a random one, such as that of "openssl rand -hex 32"`,
    );
  if (flags.advertise === undefined && port === 0)
    command.error('error: --port 0 needs --advertise, because other nodes must know the address');
  if (flags.advertise === undefined && servers.length > 0 && WILDCARD.test(host))
    command.error(
      `error: --host ${host} needs --advertise, such as http://192.0.2.7:${port}: the address at which other nodes reach this machine`,
    );
  const advertise = flags.advertise ?? `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const secret = flags.secret ?? randomBytes(32).toString('hex');
  return {
    ...{ store, etcd: servers, name, advertise, zone, weight, secret, grace },
    ...(owners !== undefined && { owners }),
  };
}

const append = (value: string, all: unknown) => [...((all as string[] | undefined) ?? []), value];

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('answer the HTTP API over a data folder')
    .addOption(
      createOption('--host <host>', 'address to listen on; beyond loopback a token is needed').default(
        '127.0.0.1',
      ),
    )
    .addOption(
      createOption('--port <port>', 'port to listen on; 0 takes a free one', parsePortOption).default(8080),
    )
    .addOption(createOption('--token <token>', 'token that writes and jobs must carry'))
    .addOption(
      createOption('--read-token <token>', 'token that reads must carry, if not --token; else they are open'),
    )
    .addOption(
      createOption(
        '--rate-limit <n>',
        'requests a second that one address may make, 0 for any number; 200 where there is a token',
        parseNumberOption,
      ),
    )
    .addOption(
      createOption(
        '--public-url <url>',
        'address at which clients reach the server through a proxy; all links in answers begin with it',
      ),
    )
    .addOption(
      createOption(
        '--trust-proxy <addresses>',
        'proxies whose X-Forwarded-For, -Proto and -Host count: addresses, ranges or "loopback", separated by commas',
        splitList,
      ),
    );
  command
    .addOption(
      createOption(
        '--store <url>',
        'shared store of tile files: s3://bucket/prefix or file:///folder; several nodes form a cluster',
      ),
    )
    .addOption(
      createOption(
        '--etcd <urls>',
        'addresses of etcd, separated by commas, by which nodes of one store agree',
      ),
    )
    .addOption(createOption('--cluster-name <name>', 'name of the cluster in etcd').default('default'))
    .addOption(
      createOption(
        '--advertise <url>',
        'address at which other nodes reach this one; by default from --host and --port',
      ),
    )
    .addOption(
      createOption(
        '--secret <secret>',
        'secret that all nodes of a cluster share; best by TILEWRIGHT_SECRET, which no list of processes shows',
      ),
    )
    .addOption(
      createOption('--zone <zone>', 'what fails together with this node, such as a rack').default('default'),
    )
    .addOption(
      createOption(
        '--weight <n>',
        'share of the tiles beside those of other nodes',
        parseNumberOption,
      ).default(1),
    )
    .addOption(
      createOption(
        '--owners <n>',
        'nodes that hold each tile, fixed by the first node; 2 by default',
        parsePositiveIntegerOption,
      ),
    );
  command.addOption(
    createOption(
      '--grace <seconds>',
      'how long a node is away before others take its place',
      parsePositiveIntegerOption,
    ).default(30),
  );
  command.addOption(
    createOption(
      '--cache <size>',
      'with --store: what tile files may take of the local disk; by default all but the reserve',
      parseBytesOption,
    ),
  );
  const allow = createOption(
    '--allow-folder <dir>',
    'folder from which POST /ingest may read; may be given again',
  );
  allow.argParser(append).default([], 'none');
  command.addOption(allow);
  command.addOption(
    createOption('--max-upload <size>', 'longest file that is taken', parseBytesOption).default(20e9, '20GB'),
  );
  withCommon(withCloudModel(withResources(withData(command))));
  return command.action(async (flags: ServeFlags) => {
    rejectExampleSecrets(flags, command);
    const signal = stopSignal();
    const cluster = clusterConfig(flags, command);
    const { allowFolder: allowFolders, host, port, token, readToken } = flags;
    const { openNode } = await import('../../node.js');
    const { reservePort, readProxyOptions } = await import('../../api/index.js');
    readProxyOptions(flags, token ?? readToken);
    // A node that joins a cluster gets slots, which it must be able to answer for.
    const release = await reservePort(host, port, token ?? readToken);
    const node = await openNode({
      ...flags,
      allowFolders,
      ...(cluster && { cluster }),
      log: true,
      resume: true,
      signal,
    })
      .finally(release)
      .catch((error) => {
        if (error !== signal.reason) throw error;
        logToStderr(`${messageOf(error)} before the start was complete`);
        return undefined;
      });
    if (node === undefined) return;
    try {
      const url = await node.listen(host, port);
      if (flags.format === 'json') printJson({ url, data: flags.data, node: node.id });
      else logToStderr(`tilewright serves ${flags.data} at ${url} (Ctrl-C stops it)`);
      // A signal that has been raised already fires no event.
      if (!signal.aborted) await once(signal, 'abort');
    } finally {
      await node.close();
    }
  });
}
