import { Command } from 'commander';
import { interruptSignal } from '../interrupt.js';
import {
  bytes,
  type CommonOptions,
  flag,
  integer,
  number,
  type ResourceOptions,
  withCloudModel,
  withCommon,
  withData,
  withResources,
} from '../options.js';
import { note, printJson } from '../output.js';

interface ServeFlags extends CommonOptions, ResourceOptions {
  data: string;
  cloudModel?: string;
  host: string;
  port: number;
  token?: string;
  readToken?: string;
  rateLimit?: number;
  allowFolder: string[];
  maxUpload: number;
}

const append = (value: string, all: unknown) => [...((all as string[] | undefined) ?? []), value];

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('answer the HTTP API over a data folder')
    .addOption(
      flag('--host <host>', 'address to listen on; beyond loopback a token is needed').default('127.0.0.1'),
    )
    .addOption(flag('--port <port>', 'port to listen on; 0 takes a free one', integer).default(8080))
    .addOption(flag('--token <token>', 'token that writes and jobs must carry'))
    .addOption(
      flag('--read-token <token>', 'token that reads must carry, if not --token; else they are open'),
    )
    .addOption(
      flag(
        '--rate-limit <n>',
        'requests a second that one address may make, 0 for any number; 200 where there is a token',
        number,
      ),
    );
  const allow = flag('--allow-folder <dir>', 'folder from which POST /ingest may read; may be given again');
  allow.argParser(append).default([], 'none');
  command.addOption(allow);
  command.addOption(flag('--max-upload <size>', 'longest file that is taken', bytes).default(20e9, '20GB'));
  withCommon(withCloudModel(withResources(withData(command))));
  return command.action(async (flags: ServeFlags) => {
    const signal = interruptSignal();
    const { openNode } = await import('../../node.js');
    const node = await openNode({ ...flags, allowFolders: flags.allowFolder, log: true, resume: true });
    try {
      const url = await node.listen(flags.host, flags.port);
      if (flags.format === 'json') printJson({ url, data: flags.data, node: node.id });
      else note(`tilewright serves ${flags.data} at ${url} (Ctrl-C stops it)`);
      await new Promise<void>((stop) => signal.addEventListener('abort', () => stop(), { once: true }));
    } finally {
      await node.close();
    }
  });
}
