/** Makes the command executable. npm does this when it links the command, but not after a later build. */
import { chmodSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

chmodSync(fileURLToPath(new URL('../command/main.js', import.meta.url)), 0o755);
