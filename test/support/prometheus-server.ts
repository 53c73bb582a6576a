/** A real Prometheus. Tests that need it are skipped where it is not installed (Debian: `prometheus`). */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../dht/server-processes.js';
import { atEnd } from './at-end.js';
import { eventually } from './eventually.js';
import { tempFolder } from './temp.js';

const isInstalled = ['prometheus', 'promtool'].every((name) => spawnSync(name, ['--version']).status === 0);

/** For `skip`: false, or why. */
export const noPrometheus = isInstalled ? false : 'prometheus or promtool is not on PATH';

/** Long enough for some scrapes on a machine that is busy with other things. */
export const SCRAPE_TIMEOUT_MS = 60_000;

interface Answer<Data> {
  status: 'success' | 'error';
  error?: string;
  data: Data;
}

export interface Rule {
  name: string;
  health: 'ok' | 'unknown' | 'err';
  lastError?: string;
}

export class PrometheusServer {
  private constructor(private readonly url: string) {}

  /** Scrapes the servers at `urls` and evaluates the rules of a file, both every second. Ends with the test. */
  static async start(
    t: { after(work: () => Promise<void>): void },
    urls: string[],
    rules: string,
  ): Promise<PrometheusServer> {
    const folder = await tempFolder(t);
    const targets = urls.map((url) => new URL(url).host);
    const configuration = {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: [rules],
      scrape_configs: [{ job_name: 'tilewright', static_configs: [{ targets }] }],
    };
    // JSON is YAML.
    await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configuration));
    const address = `127.0.0.1:${await freePort()}`;
    const server = spawn(
      'prometheus',
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=${address}`,
      ],
      { stdio: 'ignore' },
    );
    const kill = () => server.kill('SIGKILL');
    process.once('exit', kill);
    atEnd(t, async () => {
      process.off('exit', kill);
      kill();
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
    });
    const isReady = async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok;
    await eventually('Prometheus is ready', isReady, SCRAPE_TIMEOUT_MS);
    return new PrometheusServer(`http://${address}`);
  }

  /** Number of series that a query finds. Throws if the query is wrong. */
  async count(query: string): Promise<number> {
    const { result } = await this.get<{ result: unknown[] }>(`query?query=${encodeURIComponent(query)}`);
    return result.length;
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.get<{ groups: { rules: Rule[] }[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  private async get<Data>(path: string): Promise<Data> {
    const answer = (await (await fetch(`${this.url}/api/v1/${path}`)).json()) as Answer<Data>;
    if (answer.status !== 'success') throw new Error(`${path}: ${answer.error}`);
    return answer.data;
  }
}
