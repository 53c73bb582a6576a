// Writes the zone of the machine as a config file of the server. Without the label, the file sets no zone.
import { readFile, writeFile } from 'node:fs/promises';

const { MACHINE, KUBERNETES, ACCOUNT, OUTPUT } = process.env;
const token = (await readFile(`${ACCOUNT}/token`, 'utf8')).trim();
const address = `${KUBERNETES}/api/v1/nodes/${MACHINE}`;
const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
if (!answer.ok) throw new Error(`${address} answers ${answer.status}: ${await answer.text()}`);
const { metadata } = await answer.json();
const zone = metadata.labels?.['topology.kubernetes.io/zone'];
await writeFile(OUTPUT, JSON.stringify(zone ? { zone } : {}));
