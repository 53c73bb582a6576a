/** The completion scripts, run by the shells themselves. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { tilewright } from '../support/command.js';
import { tempFolder } from '../support/temp.js';

const skipWithout = (shell: string) =>
  spawnSync(shell, ['--version']).status === 0 ? false : `${shell} is not on PATH`;

/** Sources the script in the shell and runs `command`; the typed words are its arguments. Returns the lines that it prints. */
async function completer(t: TestContext, shell: string, command: string) {
  const folder = await tempFolder(t);
  const script = join(folder, 'completion');
  const { stdout, code } = await tilewright('completion', shell);
  assert.equal(code, 0);
  await writeFile(script, stdout);
  return (...typed: string[]) =>
    execFileSync(shell, ['-c', `source '${script}'; ${command}`, ...typed], {
      encoding: 'utf8',
      cwd: folder,
      env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
      .split('\n')
      .filter((line) => line !== '');
}

type Complete = (...typed: string[]) => string[];

function checkWords(complete: Complete) {
  assert.deepEqual(complete('tilewright', 'tr'), ['train']);
  assert.deepEqual(complete('tilewright', 'node', 'dr'), ['drain']);
  assert.deepEqual(complete('tilewright', 'search', '--min-co'), ['--min-coverage']);
  assert.deepEqual(complete('tilewright', 'node', 'drain', '--dat'), ['--data']);
  assert.ok(!complete('tilewright', 'train', '--').includes('--curriculum'), 'a hidden flag is offered');
  assert.deepEqual(complete('tilewright', 'search', '--format', '').sort(), ['json', 'text']);
  assert.deepEqual(complete('tilewright', 'analyse', 'classify', '--split', 'p'), ['place']);
  assert.deepEqual(complete('tilewright', 'completion', '').sort(), ['bash', 'fish', 'zsh']);
}

/** Without words of the script, bash and zsh complete file names. */
function checkFileNames(complete: Complete) {
  for (const words of [
    ['ingest', ''],
    ['ingest', 'a'],
    ['search', '--config', ''],
    ['ingest', '"$(touch ran)'],
  ])
    assert.deepEqual(complete('tilewright', ...words), [], words.join(' '));
  assert.ok(complete('tilewright', 'search', '').includes('--limit'), 'a command without arguments');
}

test('bash completes commands, flags, values and file names', async (t) => {
  const complete = await completer(
    t,
    'bash',
    `word=mine; IFS=:; COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _tilewright; [ $word = mine ] && printf "%s\\n" "\${COMPREPLY[@]}"`,
  );
  checkWords(complete);
  checkFileNames(complete);
});

test('zsh completes commands, flags, values and file names', { skip: skipWithout('zsh') }, async (t) => {
  const complete = await completer(
    t,
    'zsh',
    // The options are those of `compgen` in bashcompinit, which calls the function. The words arrive as $0, $1 ...
    `typed=("$0" "$@"); function run { emulate -L sh; setopt kshglob noshglob braceexpand; COMP_WORDS=("\${typed[@]}");
    COMP_CWORD=$((\${#typed[@]} - 1)); _tilewright; print -l -- "\${(M)COMPREPLY[@]:#\${typed[COMP_CWORD]}*}" }; run`,
  );
  checkWords(complete);
  checkFileNames(complete);
});

test('fish completes commands, flags, values and file names', { skip: skipWithout('fish') }, async (t) => {
  const complete = await completer(t, 'fish', 'complete -C "$argv" | string replace -r "\\t.*" ""; true');
  checkWords(complete);
});

test('a shell without a script is refused', async () => {
  for (const shell of ['csh', 'BASH', '']) {
    const { code, stderr } = await tilewright('completion', shell);
    assert.equal(code, 2);
    assert.match(stderr, /bash, zsh, fish/);
  }
});
