/** `tilewright serve`: serves the API of a data folder, alone or as a node of a cluster. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { Command } from 'commander';
import { messageOf } from '../../errors.js';
import type { NodeConfig } from '../../node.js';
import {
  addOptions,
  type CommonOptions,
  createOption,
  parseBytesOption,
  parseListenOption,
  parseNumberOption,
  parseOriginsOption,
  parsePortOption,
  parsePositiveIntegerOption,
  remoteCredentialsOption,
  serverHostOption,
  splitList,
  withCloudModel,
  withCommon,
  withData,
  withResources,
} from '../options.js';
import { logToStderr, printJson } from '../output.js';
import { stopSignal } from '../process.js';

interface ServeFlags extends CommonOptions, Omit<NodeConfig, 'cluster'> {
  host: string;
  port: number;
  allowFolder: string[];
  allowHost: string[];
  remoteCredentials?: string;
  store?: string;
  etcd?: string;
  clusterName: string;
  clusterListen?: NodeConfig['clusterListen'];
  advertise?: string;
  secret?: string[];
  zone: string;
  weight: number;
  owners?: number;
  grace: number;
}

/** A shorter secret could be guessed from a recorded message. */
const MIN_SECRET_LENGTH = 16;

/** Matches the public secrets in deploy/env.example. */
const EXAMPLE_SECRET = /^change-?me/i;

/** Ends the command if a secret is one of the examples. */
function rejectExampleSecrets({ token, readToken, secret }: ServeFlags, command: Command): void {
  for (const [name, values] of Object.entries({
    token: [token],
    'read-token': [readToken],
    secret: secret ?? [],
  }))
    if (values.some((value) => value !== undefined && EXAMPLE_SECRET.test(value)))
      command.error(
        `error: --${name} is an example, which is public; use a random one, such as the output of "openssl rand -hex 32"`,
      );
}

/** Matches hosts that stand for all addresses of the machine. */
const WILDCARD_HOST = /^(0\.0\.0\.0|\[?::\]?|)$/;

/** The cluster options of the flags; undefined for a single node. */
function clusterConfig(flags: ServeFlags, command: Command): NodeConfig['cluster'] {
  const { store, etcd, clusterName: name, zone, weight, owners, clusterListen } = flags;
  const { host, port } = clusterListen ?? flags;
  const grace = flags.grace * 1000;
  if (store === undefined) {
    if (etcd !== undefined) command.error('error: --etcd needs --store, the object store of the cluster');
    if (flags.cache !== undefined)
      command.error('error: --cache needs --store; without an object store, the local files are not a cache');
    return undefined;
  }
  if (!(weight > 0)) command.error(`error: --weight ${weight} is not above 0`);
  const servers = etcd === undefined ? [] : splitList(etcd);
  if (clusterListen && servers.length === 0)
    command.error('error: --cluster-listen needs --etcd; a node without etcd gets no messages of others');
  if (servers.length > 0 && !flags.secret?.length)
    command.error('error: --etcd needs --secret, which all nodes share; set it with TILEWRIGHT_SECRET');
  if (flags.secret && flags.secret.length > 2)
    command.error('error: --secret has more than two values; a cluster changes from one secret to one other');
  if (servers.length > 0 && flags.secret!.some((secret) => secret.length < MIN_SECRET_LENGTH))
    command.error(
      `error: --secret is shorter than ${MIN_SECRET_LENGTH} characters; use a random one, such as the output of "openssl rand -hex 32"`,
    );
  if (flags.advertise === undefined && port === 0)
    command.error(
      `error: --${clusterListen ? 'cluster-listen with port' : 'port'} 0 needs --advertise, because other nodes must know the address`,
    );
  if (flags.advertise === undefined && servers.length > 0 && WILDCARD_HOST.test(host))
    command.error(
      `error: ${clusterListen ? `--cluster-listen ${host}:${port}` : `--host ${host}`} needs --advertise, such as http://192.0.2.7:${port}: the address at which other nodes reach this machine`,
    );
  const advertise = flags.advertise ?? `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  const secrets = flags.secret ?? [randomBytes(32).toString('hex')];
  const config = { store, etcd: servers, name, advertise, zone, weight, secrets, grace };
  return owners === undefined ? config : { ...config, owners };
}

const append = (value: string, all: unknown) => [...((all as string[] | undefined) ?? []), value];

export function serveCommand(): Command {
  const command = addOptions(new Command('serve').description('serve the HTTP API of a data folder'), [
    createOption(
      '--host <host>',
      'address to listen on; an address other than loopback needs a token',
    ).default('127.0.0.1'),
    createOption('--port <port>', 'port to listen on; 0 uses a free one', parsePortOption).default(8080),
    createOption('--token <token>', 'token required for writes and jobs'),
    createOption('--read-token <token>', 'token required for reads; without it, reads need no token'),
    createOption(
      '--rate-limit <n>',
      'requests per second from one address; 0 means no limit; default: 200 if the server has a token',
      parseNumberOption,
    ),
    createOption(
      '--cors <origins>',
      'origins whose web pages may read, such as https://example.org, separated by commas; "*" for all, "none" for none; default: all if the server has a token, else none',
      parseOriginsOption,
    ),
    createOption(
      '--public-url <url>',
      'URL at which clients reach the server through a proxy; all links in answers begin with it',
    ),
    createOption(
      '--trust-proxy <addresses>',
      'proxies whose X-Forwarded-For, -Proto and -Host are trusted: addresses, ranges or "loopback", separated by commas',
      splitList,
    ),

    createOption(
      '--store <url>',
      'object store of tile files, shared by the nodes of a cluster: s3://bucket/prefix or file:///folder',
    ),
    createOption(
      '--etcd <urls>',
      'addresses of etcd, which coordinates the nodes of a cluster, separated by commas',
    ),
    createOption('--cluster-name <name>', 'name of the cluster in etcd').default('default'),
    createOption(
      '--cluster-listen <host:port>',
      'address for messages of other nodes alone, which --host and --port then refuse',
      parseListenOption,
    ),
    createOption(
      '--advertise <url>',
      'address at which other nodes reach this node; default: the address of --cluster-listen, or of --host and --port',
    ),
    createOption(
      '--secret <secret>',
      'secret that all nodes of a cluster share; set it with TILEWRIGHT_SECRET, because flags are visible in the process list; two with a comma while it changes: the first signs, both are accepted',
      splitList,
    ),
    createOption('--zone <zone>', 'failure domain of this node, such as a rack').default('default'),
    createOption('--weight <n>', 'share of the tiles relative to other nodes', parseNumberOption).default(1),
    createOption(
      '--owners <n>',
      'number of nodes that own each tile; the first node of a cluster sets it; default 2',
      parsePositiveIntegerOption,
    ),
    createOption(
      '--grace <seconds>',
      'seconds that a node may be away before other nodes take over its slots',
      parsePositiveIntegerOption,
    ).default(30),
    createOption(
      '--cache <size>',
      'with --store: disk space for local tile files; default: all except the reserve',
      parseBytesOption,
    ),
    createOption('--allow-folder <dir>', 'folder from which POST /ingest may read; can be repeated')
      .argParser(append)
      .default([], 'none'),
    serverHostOption().default([], 'none'),
    remoteCredentialsOption(),
    createOption('--max-upload <size>', 'maximum size of an uploaded file', parseBytesOption).default(
      20e9,
      '20GB',
    ),
  ]);
  withCommon(withCloudModel(withResources(withData(command))));
  return command.action(async (flags: ServeFlags) => {
    rejectExampleSecrets(flags, command);
    const signal = stopSignal();
    const cluster = clusterConfig(flags, command);
    const { allowFolder: allowFolders, allowHost: hosts, host, port, token, readToken } = flags;
    const { openNode } = await import('../../node.js');
    const { reservePort, readProxyOptions, requireSafeBinding } = await import('../../api/index.js');
    readProxyOptions(flags, token ?? readToken);
    // A node that joins a cluster gets slots, so it must be able to listen before it joins.
    requireSafeBinding(host, token ?? readToken);
    const reserved = [await reservePort(host, port)];
    const { clusterListen } = flags;
    if (clusterListen) reserved.push(await reservePort(clusterListen.host, clusterListen.port));
    const release = () => Promise.all(reserved.map((end) => end()));
    const node = await openNode({
      ...flags,
      allowFolders,
      hosts: { hosts, anyPublic: false },
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
      // An aborted signal fires no more events.
      if (!signal.aborted) await once(signal, 'abort');
    } finally {
      await node.close();
    }
  });
}
