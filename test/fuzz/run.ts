/** Runs targets in processes of their own and gathers what they find. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TargetName } from './targets.js';

export interface Finding {
  target: TargetName;
  /** Number of the input. */
  index: number;
  kind: 'error' | 'slow' | 'memory' | 'crash' | 'hang';
  detail: string;
}

export interface FuzzResult {
  findings: Finding[];
  /** Inputs that a limit of time ended, as it does in ingest. */
  limited: number;
}

/** One input that takes longer hangs. */
const HANG_MS = 60_000;
/** Resident memory of a process. */
const MEMORY_BYTES = 2e9;
const LOOK_MS = 500;
/** Findings of one target after which it is left. */
const MOST_FINDINGS = 20;

/** Inputs [first, end) of a target. A process that hangs or crashes is replaced, and goes on with the next input. */
export async function fuzz(
  target: TargetName,
  seed: number,
  first: number,
  end: number,
): Promise<FuzzResult> {
  const findings: Finding[] = [];
  let limited = 0;
  for (let next = first; next < end && findings.length < MOST_FINDINGS; ) {
    const child = await runChild(target, seed, next, end);
    findings.push(...child.findings);
    limited += child.limited;
    next = child.last + 1;
  }
  return { findings, limited };
}

/** `last`: the last input that was begun. */
function runChild(
  target: TargetName,
  seed: number,
  first: number,
  end: number,
): Promise<FuzzResult & { last: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'tilewright-fuzz-progress-'));
  const progress = join(folder, 'progress');
  const program = fileURLToPath(new URL('./child.js', import.meta.url));
  const args = [
    '--expose-gc',
    '--enable-source-maps',
    program,
    target,
    String(seed),
    String(first),
    String(end),
    progress,
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const findings: Finding[] = [];
  let output = '';
  let errors = '';
  let at = first;
  let since = performance.now();
  let killed: Finding['kind'] | undefined;
  const current = () => {
    try {
      const bytes = readFileSync(progress);
      return bytes.length === 8 ? bytes.readDoubleLE(0) : first;
    } catch {
      // The process has not begun yet.
      return first;
    }
  };
  const watch = setInterval(() => {
    const now = current();
    if (now !== at) {
      at = now;
      since = performance.now();
    }
    if (performance.now() - since > HANG_MS) killed = 'hang';
    if (residentBytes(child.pid) > MEMORY_BYTES) killed = 'memory';
    if (killed) child.kill('SIGKILL');
  }, LOOK_MS);
  child.stdout.on('data', (text) => {
    output += text;
  });
  child.stderr.on('data', (text) => {
    errors = (errors + text).slice(-4000);
  });
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      clearInterval(watch);
      const last = code === 0 ? end : current();
      rmSync(folder, { recursive: true });
      const lines = output.split('\n').filter((line) => line.startsWith('{'));
      const said = lines.map((line): Finding | { limited: number } => JSON.parse(line));
      const found = said.filter((line) => 'kind' in line);
      findings.push(...found);
      if (code !== 0)
        findings.push({
          target,
          index: last,
          kind: killed ?? 'crash',
          detail: `${signal ?? code}: ${errors}`,
        });
      resolve({ findings, limited: said.length - found.length, last });
    });
  });
}

function residentBytes(pid: number | undefined): number {
  try {
    return 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    // The process has ended, or the system has no /proc.
    return 0;
  }
}
